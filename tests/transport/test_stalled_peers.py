"""A peer that stops in the middle of a message is noticed in time; one that is silent between two messages may be."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.exchange.page_reader import gate_batches
from engine.rpc.credentials import Credentials
from engine.rpc.tls import Tls
from engine.transport import data_server
from engine.transport.frames import HEADER_BYTES, FrameKind, decode_header
from engine.transport.server_connection import ServerConnection
from tests.exchange.world import descriptor
from tests.rpc.test_tls import contexts
from tests.transport.far_process import SCHEMA, batch_of
from tests.transport.remote_world import RemoteWorld
from tests.transport.test_remote_faults import FlippingProxy, gate_at, reason_of_the_end


class MessageProxy(FlippingProxy):
    """Follows the messages of one direction, frames or TLS records, and damages one of them.

    Of that message it forwards the first ``cut`` bytes and no more, with the connection left open; without a ``cut``
    its header says that it is 4096 bytes longer than it is.
    """

    def __init__(
        self, host: str, port: int, number: int, towards_reader: bool, is_sealed: bool, cut: int | None
    ) -> None:
        self._number = number
        self._is_sealed = is_sealed
        self._cut = cut
        self._start = 0  # of the message, in the stream
        self._header = bytearray()
        self._is_stopped = False
        super().__init__(host, port, 0, towards_reader)

    def changed(self, piece: bytearray, position: int) -> bytearray:
        if self._is_stopped:
            return bytearray()
        header_bytes = 5 if self._is_sealed else HEADER_BYTES
        for index in range(len(piece)):
            place = position + index - self._start
            if self._number == 0 and place == self._cut:
                self._is_stopped = True
                return piece[:index]
            if 0 <= place < header_bytes:
                self._header.append(piece[index])
                if self._number == 0 and self._cut is None and place == 3:
                    piece[index] ^= 0x10
                if place == header_bytes - 1:
                    self._begin_next()
        return piece

    def _begin_next(self) -> None:
        size = int.from_bytes(self._header[3:5], "big") if self._is_sealed else decode_header(self._header)["size"]
        if self._number > 0 or self._cut is None:
            self._start += len(self._header) + size
            self._number -= 1
        self._header.clear()


@pytest.fixture
def make_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    worlds: list[RemoteWorld] = []

    def make(tls: Tls | None, message_s: float) -> RemoteWorld:
        monkeypatch.setattr(data_server, "MESSAGE_S", message_s)
        credentials = Credentials(b"s" * 32)
        worlds.append(RemoteWorld(tmp_path, False, near_options={"tls": tls}, tls=tls, credentials=credentials))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def read_through(world: RemoteWorld, number: int, towards_reader: bool, is_sealed: bool, cut: int | None) -> str:
    """Return why reading ended through a proxy that damages one message."""
    return reason_of_the_end(world, lambda host, port: MessageProxy(host, port, number, towards_reader, is_sealed, cut))


@pytest.mark.parametrize("cut", [1, HEADER_BYTES - 1, HEADER_BYTES + 4])
def test_a_reader_notices_that_the_rest_of_a_frame_does_not_come(make_world: Any, cut: int) -> None:
    assert "stopped in the middle of a message" in read_through(make_world(None, 0.2), 7, True, False, cut)


@pytest.mark.parametrize("cut", [1, HEADER_BYTES - 1])
def test_a_writer_notices_that_the_rest_of_a_frame_does_not_come(make_world: Any, cut: int) -> None:
    assert "closed" in read_through(make_world(None, 0.5), 5, False, False, cut)


@pytest.mark.thorough
@pytest.mark.parametrize("towards_reader", [True, False])
@pytest.mark.parametrize("cut", [None, 1, 4, 5, 20])
def test_a_tls_record_that_never_ends_is_an_error_in_time(
    make_world: Any, own: Path, cut: int | None, towards_reader: bool
) -> None:
    reason = read_through(make_world(contexts(own), 0.5), 14, towards_reader, True, cut)
    if towards_reader and cut is not None:
        assert "stopped in the middle of a message" in reason


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_producer_that_has_nothing_to_say_for_long_is_waited_for(make_world: Any, own: Path, is_sealed: bool) -> None:
    world = make_world(contexts(own) if is_sealed else None, 0.5)
    partition = world.far.partition(descriptor(1, "GLOBAL"), (1, 4))
    may_go_on = threading.Event()

    def work() -> None:
        writer = world.far.writer(partition, SCHEMA, timeout_ms=0)
        writer.emit(batch_of(0))
        assert may_go_on.wait(60)
        writer.emit(batch_of(1))
        writer.finish()
        writer.close()

    world.far.run(work)
    gate = gate_at(world, str(world.far_plane.server.address))
    batches = gate_batches(gate, SCHEMA)
    first = next(batches)
    time.sleep(1.1)  # several time-outs of both sides; whatever the timing, no row may be missing
    may_go_on.set()
    rows = first.num_rows + sum(batch.num_rows for batch in batches)
    gate.close()
    world.join()
    assert rows == batch_of(0).num_rows + batch_of(1).num_rows


def test_who_registers_a_partition_does_not_wait_for_a_peer_that_has_stopped() -> None:
    ours, theirs = socket.socketpair()
    filling = 0
    ours.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            filling += ours.send(b"x" * 65536)
    ours.setblocking(True)
    connection = ServerConnection(ours.fileno(), "stopped", object())
    for _ in range(2):  # twice is once: the peer only wants to know that it is there
        registering = threading.Thread(target=connection.announce_available, args=(3,), daemon=True)
        registering.start()
        registering.join(30)
        assert not registering.is_alive()
    writer = threading.Thread(target=connection.write_loop)
    writer.start()
    assert len(theirs.recv(filling, socket.MSG_WAITALL)) == filling
    header = decode_header(theirs.recv(HEADER_BYTES, socket.MSG_WAITALL))
    connection.shut_down("the test ends")
    writer.join()
    assert theirs.recv(1) == b""
    theirs.close()
    ours.close()
    assert (header["type"], header["channel"]) == (FrameKind.AVAILABLE, 3)
