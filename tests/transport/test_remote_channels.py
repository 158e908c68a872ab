"""Partitions of one process's manager read through real sockets by gates of another's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.errors import (
    ConfigurationError,
    PartitionConnectionError,
    PartitionNotFoundError,
    PartitionReleasedError,
    ProducerFailedError,
    TaskCancelledError,
)
from engine.exchange import input_channel
from engine.exchange.elements import OversizedRow
from engine.exchange.input_gate import NOTHING_YET, InputGate
from engine.exchange.page_reader import gate_batches
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from engine.rpc.credentials import Credentials
from engine.transport.data_address import DataAddress
from tests.exchange.conftest import assert_nothing_is_open, open_descriptors
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor, partition_id
from tests.transport.remote_world import RemoteWorld

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
KINDS = ("HASH", "FORWARD", "BROADCAST", "GLOBAL", "REBALANCE", "SHUFFLE", "RESCALE")


def batch_of(start: int, count: int = 100, width: int = 20) -> pa.RecordBatch:
    keys = range(start, start + count)
    texts = [None if key % 7 == 0 else f"{key:x}" * (1 + width // 4) for key in keys]
    return pa.record_batch({"k": list(keys), "s": texts}, schema=SCHEMA)


BATCHES = [
    *(batch_of(100 * number) for number in range(30)),
    batch_of(9000, 2, 40_000),
    batch_of(9500, 3),
    batch_of(10_000, 2000),
]


def rows_of(batches: Any) -> list[dict[str, Any]]:
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["k"])


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Any]:
    threads = threading.active_count()
    descriptors = open_descriptors()
    worlds: list[RemoteWorld] = []

    def make(with_unix: bool = True, **options: Any) -> RemoteWorld:
        folder = tmp_path / str(len(worlds))
        folder.mkdir()
        worlds.append(RemoteWorld(folder, with_unix, **options))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()
    assert_nothing_is_open(threads, descriptors)


@pytest.fixture
def world(make_world: Any) -> RemoteWorld:
    return make_world()


def produce(world: World, partition: Any, batches: Any = BATCHES, timeout_ms: int = -1) -> None:
    def work() -> None:
        writer = world.writer(partition, SCHEMA, timeout_ms)
        try:
            for batch in batches:
                writer.emit(batch)
            writer.finish()
        finally:
            writer.close()

    world.run(work)


def read_all(world: World, gate: InputGate) -> list[pa.RecordBatch]:
    got: list[pa.RecordBatch] = []

    def work() -> None:
        got.extend(gate_batches(gate, SCHEMA))
        gate.close()

    world.run(work)
    return got


@pytest.mark.parametrize("with_unix", [True, False])
@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
@pytest.mark.parametrize("kind", KINDS)
def test_remote_readers_get_the_rows_that_local_ones_get(
    make_world: Any, kind: str, result_type: Any, with_unix: bool
) -> None:
    world = make_world(with_unix)
    count = 1 if kind in ("FORWARD", "GLOBAL") else 3
    keys = ["k"] if kind == "HASH" else []
    far, near = (
        side.partition(descriptor(count, kind, keys, result_type, partition_id(number)))
        for number, side in enumerate((world.far, world.near))
    )
    for side, partition in ((world.far, far), (world.near, near)):
        produce(side, partition)
    remote = [read_all(world.near, world.gate([far.id], index)) for index in range(count)]
    local = [read_all(world.near, world.near.gate([near.id], index)) for index in range(count)]
    world.join()
    if kind in ("SHUFFLE", "REBALANCE"):  # begin at a random channel
        remote, local = ([[batch for one in side for batch in one]] for side in (remote, local))
    assert [rows_of(one) for one in remote] == [rows_of(one) for one in local]
    assert sum(len(rows_of(one)) for one in remote) == (count if kind == "BROADCAST" else 1) * 5005


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
def test_a_gate_with_a_buffer_for_no_channel_makes_progress(make_world: Any, result_type: Any) -> None:
    world = make_world(segments=40)
    hoarder = world.near.network.local_pool(40, 40, "hoarder")
    hoarded = [hoarder.request(0) for _ in range(40)]
    partitions = [
        world.far.partition(descriptor(1, "GLOBAL", result_type=result_type, identity=partition_id(n)), (1, 8))
        for n in range(4)
    ]
    for partition in partitions:
        produce(world.far, partition)
    got = read_all(world.near, world.gate([partition.id for partition in partitions], 0))
    world.join()
    assert len(rows_of(got)) == 4 * 5005
    for buffer in hoarded:
        buffer.recycle()


def test_channels_in_order_come_in_order(world: RemoteWorld) -> None:
    partitions = [world.far.partition(descriptor(1, "GLOBAL", identity=partition_id(n)), (1, 3)) for n in range(3)]
    for number, partition in enumerate(partitions):
        produce(world.far, partition, [batch_of(1000 * number + 100 * n) for n in range(10)])
    got = read_all(world.near, world.gate([partition.id for partition in partitions], in_order=True))
    world.join()
    assert [key for batch in got for key in batch["k"].to_pylist()] == list(range(3000))


def test_one_connection_carries_all_channels_and_goes_with_the_last(world: RemoteWorld) -> None:
    partitions = [world.far.partition(descriptor(1, "GLOBAL", identity=partition_id(n))) for n in range(5)]
    gates = [world.gate([partition.id]) for partition in partitions]
    for gate in gates:
        assert gate.poll(0) is NOTHING_YET
    assert world.near_plane.connections.connection_count == 1
    assert world.far_plane.server.connection_count == 1
    for gate in gates:
        assert world.near_plane.connections.connection_count == 1
        gate.close()
    assert world.near_plane.connections.connection_count == 0


def test_a_partition_that_is_registered_later_is_found_at_once(
    world: RemoteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_BACKOFF_MS", "LAST_BACKOFF_MS"):
        monkeypatch.setattr(input_channel, name, 600_000)
    gate = world.gate([partition_id()])
    assert gate.poll(50) is NOTHING_YET
    produce(world.far, world.far.partition(descriptor(1, "GLOBAL")))
    got = read_all(world.near, gate)
    world.join(60)
    assert len(rows_of(got)) == 5005


def test_a_partition_that_never_comes_is_an_error_after_the_last_back_off(
    world: RemoteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_channel, "FIRST_BACKOFF_MS", 5)
    monkeypatch.setattr(input_channel, "LAST_BACKOFF_MS", 20)
    gate = world.gate([partition_id(attempt=1)])
    world.far.partition(descriptor(1, "GLOBAL"))  # of the attempt before
    with pytest.raises(PartitionNotFoundError, match="back-off"):
        gate.next()
    gate.close()


def test_the_producers_failure_reaches_the_consumer(world: RemoteWorld) -> None:
    partition = world.far.partition(descriptor(1, "GLOBAL"))
    writer = world.far.writer(partition, SCHEMA, timeout_ms=0)
    writer.emit(batch_of(1))
    gate = world.gate([partition.id])
    gate.next().recycle()
    partition.fail(ValueError("row 17"))
    with pytest.raises(ProducerFailedError, match="row 17"):
        while True:
            gate.next().recycle()
    writer.close()
    gate.close()


def test_a_partition_released_under_its_reader_is_an_error_of_its_own(world: RemoteWorld) -> None:
    partition = world.far.partition(descriptor(1, "FORWARD"))
    gate = world.gate([partition.id])
    assert gate.poll(0) is NOTHING_YET
    partition.release()
    with pytest.raises((PartitionReleasedError, PartitionNotFoundError)):
        gate.next()
    gate.close()


@pytest.mark.parametrize("method", [InputGate.cancel, InputGate.close])
def test_cancel_wakes_a_waiting_reader_and_lets_the_producer_go(world: RemoteWorld, method: Any) -> None:
    partition = world.far.partition(descriptor(1, "GLOBAL"), (1, 3))
    writer = world.far.writer(partition, SCHEMA, timeout_ms=0)
    gate = world.gate([partition.id])
    began = threading.Event()

    def read() -> None:
        while True:
            gate.next().recycle()
            began.set()

    world.near.run(read)
    writer.emit(batch_of(1))
    assert began.wait(30)
    method(gate)
    world.near.join(30)
    assert isinstance(world.near.failures.pop(), TaskCancelledError)
    gate.close()
    with pytest.raises(PartitionReleasedError):
        while True:
            writer.emit(batch_of(1))
    writer.close()


@pytest.mark.parametrize("end", ["server", "client"])
def test_a_broken_connection_names_partition_and_peer_and_a_new_one_is_opened(world: RemoteWorld, end: str) -> None:
    first, second = (world.far.partition(descriptor(1, "GLOBAL", identity=partition_id(n))) for n in range(2))
    writer = world.far.writer(first, SCHEMA, timeout_ms=0)
    writer.emit(batch_of(1))
    gate = world.gate([first.id])
    gate.next().recycle()
    if end == "server":
        (server,) = world.far_plane.server._servers
        server.shut_down("pulled out")
    else:
        world.near_plane.connections._peers[world.far_plane.address].connection.shut_down("pulled out")
    with pytest.raises(PartitionConnectionError) as caught:
        gate.next()
    assert str(first.id) in str(caught.value)
    assert world.far_plane.address in str(caught.value)
    writer.close()
    produce(world.far, second)
    got = read_all(world.near, world.gate([second.id]))
    world.join()
    assert len(rows_of(got)) == 5005
    gate.close()


def test_nobody_there_is_an_error_that_says_where(world: RemoteWorld) -> None:
    for address in ("127.0.0.1:1", "unix:/no/such/socket"):
        missing = InputChannelDescriptor(partition_id(), PartitionLocation.REMOTE, 0, address)
        gate = InputGate((missing,), world.near.manager, reads=world.reads(1))
        with pytest.raises(PartitionConnectionError, match=address):
            gate.next()
        gate.close()


def test_with_a_secret_rows_are_read_by_those_who_know_it(make_world: Any) -> None:
    world = make_world(with_unix=False, credentials=Credentials(b"s" * 32))
    partition = world.far.partition(descriptor(1, "GLOBAL"))
    produce(world.far, partition)
    got = read_all(world.near, world.gate([partition.id]))
    world.join()
    assert len(rows_of(got)) == 5005


def test_off_loopback_nothing_listens_without_a_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="secret"):
        RemoteWorld(tmp_path, with_unix=False, bind_host="0.0.0.0")


def test_a_stalled_channel_holds_its_buffers_and_nobody_elses(world: RemoteWorld) -> None:
    stalled, busy = (world.far.partition(descriptor(1, "GLOBAL", identity=partition_id(n)), (1, 4)) for n in range(2))
    endless = iter(lambda: batch_of(0), None)
    stalled_gate, busy_gate = world.gate([stalled.id]), world.gate([busy.id])

    def produce_until_released(partition: Any) -> None:
        writer = world.far.writer(partition, SCHEMA, timeout_ms=0)
        try:
            for batch in endless:
                writer.emit(batch)
        except PartitionReleasedError:
            pass
        finally:
            writer.close()

    def count_pages(number: int) -> int:
        most = 0
        for _ in range(number):
            busy_gate.next().recycle()
            most = max(most, world.near.network.in_use)
        return most

    world.far.run(lambda: produce_until_released(busy))
    alone = count_pages(200)
    world.far.run(lambda: produce_until_released(stalled))
    stalled_gate.next().recycle()  # it has begun, and then nobody reads it any more
    while stalled.pool.available:  # its producer has come to a stand
        count_pages(1)
    sent = stalled.total_buffers
    with_neighbour = count_pages(2000)
    assert stalled.total_buffers - sent <= 4 + 2 + 8 + 1, "the stalled channel went on"
    assert with_neighbour - alone <= 2 + 8, "more than its exclusive and floating buffers"
    busy_gate.close()
    stalled_gate.close()
    world.join()


def test_a_large_row_and_a_large_batch_are_put_together(world: RemoteWorld) -> None:
    wide = batch_of(1, 1, 400_000)
    rows, batches = (
        world.far.partition(descriptor(1, kind, identity=partition_id(n)))
        for n, kind in enumerate(("GLOBAL", "FORWARD"))
    )
    for partition in (rows, batches):
        produce(world.far, partition, [wide])
    gate = world.gate([rows.id])
    row = gate.next()
    assert isinstance(row, OversizedRow)
    assert row.size > 100_000
    gate.close()
    gate = world.gate([batches.id])
    batch = gate.next()
    batch.validate(full=True)
    assert batch.equals(wide)
    assert gate.next() is None
    gate.close()
    world.join()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("unix:/a/b|127.0.0.1:40123", ("/a/b", "127.0.0.1", 40123)),
        ("host:1", ("", "host", 1)),
        ("unix:/a", ("/a", "", 0)),
        ("[::1]:80", ("", "::1", 80)),
    ],
)
def test_an_address_is_text(text: str, parts: tuple[str, str, int]) -> None:
    assert DataAddress.parse(text) == parts
    assert str(DataAddress.parse(text)) == text


@pytest.mark.parametrize("text", ["", "host", "host:", "host:0", "host:99999", ":80", "host:8o"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no data address"):
        DataAddress.parse(text)
