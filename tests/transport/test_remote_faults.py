"""What may happen on the way: flipped bits, a killed process, a neighbour that stands still."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import PartitionConnectionError, PartitionReleasedError
from engine.exchange.input_gate import InputGate
from engine.exchange.page_reader import gate_batches
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from tests.exchange.world import descriptor, partition_id
from tests.transport.far_process import BATCHES, ROWS, SCHEMA, batch_of
from tests.transport.remote_world import RemoteWorld

ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RemoteWorld]:
    world = RemoteWorld(tmp_path, with_unix=False)
    yield world
    world.close()


class FlippingProxy:
    """Forwards one TCP connection and flips one bit of one direction."""

    def __init__(self, host: str, port: int, flip_at: int, towards_reader: bool) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._target = host, port
        self._flip_at = flip_at
        self._towards_reader = towards_reader
        self._sockets: list[socket.socket] = []
        self.seen = bytearray()
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def _serve(self) -> None:
        reader, _ = self._listener.accept()
        writer = socket.create_connection(self._target)
        self._sockets += [reader, writer]
        back = threading.Thread(target=self._forward, args=(writer, reader, self._towards_reader), daemon=True)
        self._threads.append(back)
        back.start()
        self._forward(reader, writer, not self._towards_reader)

    def _forward(self, source: socket.socket, target: socket.socket, flips: bool) -> None:
        position = 0
        with contextlib.suppress(OSError):
            while piece := bytearray(source.recv(65536)):
                changed = self.changed(piece, position) if flips else piece
                position += len(piece)
                self.seen += changed
                target.sendall(changed)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def changed(self, piece: bytearray, position: int) -> bytearray:
        """Return what is sent on instead of a piece of the direction that is damaged."""
        if 0 <= self._flip_at - position < len(piece):
            piece[self._flip_at - position] ^= 0x10
        return piece

    def close(self) -> None:
        for thread in list(self._threads):
            thread.join(30)
        for one in (self._listener, *self._sockets):
            one.close()


def gate_at(world: RemoteWorld, address: str, subpartition: int = 0) -> InputGate:
    channel = InputChannelDescriptor(partition_id(), PartitionLocation.REMOTE, subpartition, address)
    return InputGate((channel,), world.near.manager, reads=world.reads(1))


def produce_until_released(world: RemoteWorld, partition: Any) -> None:
    def work() -> None:
        writer = world.far.writer(partition, SCHEMA, timeout_ms=0)
        with contextlib.suppress(PartitionReleasedError):
            while True:
                writer.emit(batch_of(0))
        writer.close()

    world.far.run(work)


def reason_of_the_end(world: RemoteWorld, proxy_to: Callable[[str, int], FlippingProxy]) -> str:
    """Return why reading through a proxy that damages something ended; what was read before is right."""
    partition = world.far.partition(descriptor(1, "GLOBAL"), (1, 4))
    produce_until_released(world, partition)
    address = world.far_plane.server.address
    proxy = proxy_to(address.host, address.port)
    gate = gate_at(world, proxy.address)
    expected = set(batch_of(0)["k"].to_pylist())
    with pytest.raises(PartitionConnectionError) as caught:
        for batch in gate_batches(gate, SCHEMA, max_rows=200):
            assert set(batch["k"].to_pylist()) <= expected
    assert proxy.address in str(caught.value)
    gate.close()
    partition.release()
    proxy.close()
    world.join()
    return str(caught.value)


TOWARDS_READER = (1, 6, 30, 60, 130, 200, 260, 300, 1000, 3000, 5000, 20_000, 77_777)
TOWARDS_WRITER = (2, 5, 44, 100, 150, 190, 240)


@pytest.mark.parametrize(
    ("flip_at", "towards_reader"),
    [*((offset, True) for offset in TOWARDS_READER), *((offset, False) for offset in TOWARDS_WRITER)],
)
def test_a_flipped_bit_anywhere_is_an_error_and_never_a_wrong_row(
    world: RemoteWorld, flip_at: int, towards_reader: bool
) -> None:
    partition = world.far.partition(descriptor(1, "GLOBAL"), (1, 4))
    produce_until_released(world, partition)
    address = world.far_plane.server.address
    proxy = FlippingProxy(address.host, address.port, flip_at, towards_reader)
    gate = gate_at(world, proxy.address)
    expected = batch_of(0).to_pydict()
    with pytest.raises(PartitionConnectionError) as caught:
        for batch in gate_batches(gate, SCHEMA, max_rows=ROWS):
            assert batch.to_pydict().items() <= expected.items() or set(batch["k"].to_pylist()) <= set(expected["k"])
    assert proxy.address in str(caught.value)
    gate.close()
    partition.release()
    proxy.close()
    world.join()


@contextlib.contextmanager
def far_process(folder: Path, kind: str, amount: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    folder.mkdir()
    command = [sys.executable, "-m", "tests.transport.far_process", str(folder), kind, amount]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
            process.communicate(timeout=60)
        finally:
            process.kill()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["HASH", "BROADCAST"])
@pytest.mark.parametrize("way", [0, 1])
def test_another_process_is_read_as_this_one_is(world: RemoteWorld, tmp_path: Path, kind: str, way: int) -> None:
    with far_process(tmp_path / "process", kind, "rows") as (process, addresses):
        gates = [gate_at(world, addresses.split("|")[way], index) for index in range(2)]
        got: list[list[int]] = [[], []]

        def read(index: int) -> None:
            for batch in gate_batches(gates[index], SCHEMA):
                got[index] += batch["k"].to_pylist()
                assert batch["s"].to_pylist() == [f"row {key}" for key in batch["k"].to_pylist()]
            gates[index].close()

        for index in range(2):
            world.near.run(lambda index=index: read(index))
        world.join()
    assert process.returncode == 0
    everything = list(range(BATCHES * ROWS))
    if kind == "BROADCAST":
        assert got == [everything, everything]
    else:
        assert sorted(got[0] + got[1]) == everything
        assert got[0]
        assert got[1]


@pytest.mark.parametrize("way", [0, 1])
def test_a_killed_process_is_an_error_at_once(world: RemoteWorld, tmp_path: Path, way: int) -> None:
    with far_process(tmp_path / "process", "HASH", "endless") as (process, addresses):
        gate = gate_at(world, addresses.split("|")[way])
        gate.next().recycle()
        process.kill()
        with pytest.raises(PartitionConnectionError, match=r"the connection (was closed|failed)"):
            while True:
                gate.next().recycle()
        gate.close()


def test_a_neighbour_that_stands_still_costs_no_turn(world: RemoteWorld) -> None:
    """Counted in frames: while one channel stands still, every frame that comes is the others'."""
    partitions = [world.far.partition(descriptor(1, "GLOBAL", identity=partition_id(n)), (1, 4)) for n in range(3)]
    for partition in partitions:
        produce_until_released(world, partition)
    stalled, *others = [world.gate([partition.id]) for partition in partitions]
    stalled.next().recycle()
    while partitions[0].pool.available:
        for gate in others:
            gate.next().recycle()
    before = [partition.total_buffers for partition in partitions]
    for _ in range(1500):
        for gate in others:
            gate.next().recycle()
    sent = [partition.total_buffers - start for partition, start in zip(partitions, before, strict=True)]
    assert sent[0] <= 4 + 2 + 8 + 1, "its pool, its credits and the frame at hand"
    assert min(sent[1:]) >= 0.9 * 1500
    assert world.near.network.peak_count <= 3 * (2 + 8) + 3
    for gate in (stalled, *others):
        gate.close()
    world.join()
