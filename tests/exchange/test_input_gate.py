"""Input gates: fair over channels, patient with producers that come later, clear about those that fail."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from engine.clock import ManualClock
from engine.errors import (
    NotYetSupportedError,
    PartitionNotFoundError,
    PartitionReleasedError,
    ProducerFailedError,
    TaskCancelledError,
)
from engine.exchange import input_channel, local_input_channel
from engine.exchange.elements import OversizedRow
from engine.exchange.input_gate import NOTHING_YET, InputGate
from engine.exchange.page_reader import gate_batches
from engine.exchange.partition_life import PartitionState
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from tests.exchange.world import BLOCKING, World, descriptor, partition_id

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])


def batch_of(*keys: int) -> pa.RecordBatch:
    return pa.record_batch({"k": list(keys), "s": [f"row {key}" for key in keys]}, schema=SCHEMA)


def forward(world: World, subtask: int = 0) -> Any:
    return world.partition(descriptor(1, "FORWARD", identity=partition_id(subtask)))


def test_a_gate_reads_all_channels_fairly(world: World) -> None:
    partitions = [forward(world, subtask) for subtask in range(3)]
    batches = [[batch_of(10 * subtask + number) for number in range(3)] for subtask in range(3)]
    for partition, own in zip(partitions, batches, strict=True):
        writer = world.writer(partition, SCHEMA)
        for batch in own:
            writer.emit(batch)
        writer.finish()
    gate = world.gate([partition.id for partition in partitions])
    order = [gate.next()["k"][0].as_py() for _ in range(9)]
    assert order == [0, 10, 20, 1, 11, 21, 2, 12, 22]
    assert gate.next() is None
    assert gate.is_finished
    assert gate.next() is None
    assert (gate.elements, gate.bytes) == (9, sum(batch.nbytes for own in batches for batch in own))
    assert [partition.state for partition in partitions] == [PartitionState.RELEASED] * 3
    gate.close()


def test_a_pipelined_partition_goes_when_all_its_consumers_are_done(world: World) -> None:
    partition = world.partition(descriptor(2, "BROADCAST"))
    world.writer(partition, SCHEMA).finish()
    gates = [world.gate([partition.id], index) for index in range(2)]
    assert gates[0].next() is None
    assert partition.state is PartitionState.FINISHED
    assert gates[1].next() is None
    assert partition.state is PartitionState.RELEASED
    for gate in gates:
        gate.close()


def test_a_blocking_partition_is_read_twice_and_after_a_spill_with_the_same_rows(world: World) -> None:
    partition = world.partition(descriptor(2, "HASH", ["k"], BLOCKING), (3, 64))
    writer = world.writer(partition, SCHEMA)
    for start in range(0, 3000, 300):
        writer.emit(batch_of(*range(start, start + 300)))
    writer.finish()
    writer.close()

    def read_all() -> list[list[dict[str, Any]]]:
        rows = []
        for index in range(2):
            gate = world.gate([partition.id], index)
            rows.append([row for batch in gate_batches(gate, SCHEMA) for row in batch.to_pylist()])
            gate.close()
        return rows

    assert partition.file_bytes == 0
    first = read_all()
    second = read_all()
    assert partition.data is not None
    assert partition.data.spill() > 0
    assert partition.file_bytes > 0
    assert partition.spilled_bytes == 0, "a result is nothing that was spilled"
    assert read_all() == second == first
    assert sorted(row["k"] for rows in first for row in rows) == list(range(3000))
    assert partition.state is PartitionState.FINISHED


def test_a_consumer_may_come_before_its_producer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # It is woken by the registration, not by the back-off.
    for name in ("FIRST_BACKOFF_MS", "LAST_BACKOFF_MS"):
        monkeypatch.setattr(input_channel, name, 600_000)
    gate = world.gate([partition_id()])
    got: list[Any] = []
    world.run(lambda: got.append(gate.next()))
    time.sleep(0.02)
    writer = world.writer(forward(world), SCHEMA)
    writer.emit(batch_of(1))
    world.join()
    assert got[0].num_rows == 1
    gate.close()


def test_a_blocking_consumer_waits_for_the_end_of_production(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL", result_type=BLOCKING))
    writer = world.writer(partition, SCHEMA)
    writer.emit(batch_of(1))
    writer.flush()
    gate = world.gate([partition.id])
    assert gate.poll(10) is NOTHING_YET
    writer.finish()
    page = gate.next()
    page.recycle()
    assert gate.next() is None
    gate.close()


def test_requests_back_off_from_100_ms_doubling_to_10_s_and_then_give_up(world: World) -> None:
    clock = ManualClock()
    gate = world.gate([partition_id()], clock=clock)
    waits = []
    with pytest.raises(PartitionNotFoundError, match=r"v0-0-0.*10000 ms") as failure:
        while True:
            assert gate.poll(0) is NOTHING_YET
            retry_at = gate.channels[0].back_off.retry_at_ms
            waits.append(round(retry_at - clock.monotonic_s() * 1000))
            assert gate.poll(0) is NOTHING_YET  # asked too early: nothing changes
            assert gate.channels[0].back_off.retry_at_ms == retry_at
            clock.advance(waits[-1] / 1000 + 0.0001)
    assert waits == [100, 200, 400, 800, 1600, 3200, 6400, 10_000]
    assert failure.value.partition == partition_id()
    gate.close()


def test_a_reader_without_a_time_limit_asks_again_until_it_gives_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_BACKOFF_MS", "LAST_BACKOFF_MS"):
        monkeypatch.setattr(input_channel, name, 1)
    gate = world.gate([partition_id()])
    reader = world.run(gate.next)
    reader.join(10)
    gate.close()
    assert isinstance(world.failures.pop(), PartitionNotFoundError)


def test_a_closed_gate_waits_for_no_registration_any_more(world: World) -> None:
    gate = world.gate([partition_id()])
    assert gate.poll(0) is NOTHING_YET
    assert partition_id() in world.manager._waiting
    gate.close()
    assert not world.manager._waiting


def test_an_old_attempt_is_not_served_the_new_one_s_data(world: World) -> None:
    world.partition(descriptor(1, "FORWARD", identity=partition_id(0, attempt=1)))
    gate = world.gate([partition_id(0, attempt=0)])
    assert gate.poll(10) is NOTHING_YET
    assert not gate.channels[0].is_reading
    gate.close()


def channel(location: PartitionLocation, address: str = "") -> InputChannelDescriptor:
    return InputChannelDescriptor(partition_id(), location, 0, address)


def test_a_remote_channel_is_refused_by_name(world: World) -> None:
    remote = channel(PartitionLocation.REMOTE, "host:1234")
    with pytest.raises(NotYetSupportedError, match="host:1234"):
        InputGate((remote,), world.manager)


@pytest.mark.parametrize("kind", ["FORWARD", "GLOBAL"])
def test_a_producer_that_fails_half_way_surfaces_in_the_waiting_consumer(world: World, kind: str) -> None:
    partition = world.partition(descriptor(1, kind))
    writer = world.writer(partition, SCHEMA, timeout_ms=0)
    writer.emit(batch_of(1))
    gate = world.gate([partition.id])
    element = gate.next()
    if kind == "GLOBAL":
        element.recycle()
    world.run(gate.next)
    time.sleep(0.01)
    partition.fail(ValueError("row 17"))
    world.join()
    assert isinstance(world.failures[0], ProducerFailedError)
    assert "row 17" in str(world.failures[0])
    writer.close()
    gate.close()


def test_a_partition_released_under_its_reader_is_an_error_of_its_own(world: World) -> None:
    partition = forward(world)
    gate = world.gate([partition.id])
    assert gate.poll(0) is NOTHING_YET
    partition.release()
    with pytest.raises(PartitionReleasedError) as failure:
        gate.next()
    assert failure.value.partition == partition.id
    gate.close()


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("method", [InputGate.cancel, InputGate.close])
def test_cancel_wakes_a_waiting_reader(world: World, registered: bool, method: Any) -> None:
    if registered:
        forward(world)
    gate = world.gate([partition_id()])
    world.run(gate.next)
    time.sleep(0.02)
    method(gate)
    world.join()
    assert isinstance(world.failures[0], TaskCancelledError)
    with pytest.raises(TaskCancelledError):
        gate.next()
    gate.close()


def test_a_closed_gate_lets_go_of_what_was_not_read(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"))
    writer = world.writer(partition, SCHEMA, timeout_ms=0)
    gate = world.gate([partition.id])
    for number in range(5):
        writer.emit(batch_of(number))
    gate.next().recycle()
    assert partition.pool.in_use == 4
    gate.close()
    assert partition.pool.in_use == 0
    with pytest.raises(PartitionReleasedError):
        writer.emit(batch_of(9))
    writer.close()


def test_oversized_rows_of_several_channels_are_kept_apart(world: World) -> None:
    partitions = [world.partition(descriptor(1, "GLOBAL", identity=partition_id(n)), (1, 30)) for n in range(3)]
    texts = [letter * 20_000 for letter in "abc"]
    for partition, text in zip(partitions, texts, strict=True):
        writer = world.writer(partition, SCHEMA)
        writer.emit(pa.record_batch({"k": [1], "s": [text]}, schema=SCHEMA))
        writer.finish()
    gate = world.gate([partition.id for partition in partitions])
    element = gate.next()
    assert isinstance(element, OversizedRow)
    assert element.size == len(element.buffer) > 20_000
    rest = [row["s"] for batch in gate_batches(gate, SCHEMA) for row in batch.to_pylist()]
    assert rest == texts[1:]
    gate.close()


def test_a_gate_lets_go_of_all_channels_when_one_of_them_cannot(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = [forward(world, subtask) for subtask in range(2)]
    for subtask, partition in enumerate(partitions):
        writer = world.writer(partition, SCHEMA, timeout_ms=0)
        writer.emit(batch_of(subtask))
    gate = world.gate([partition.id for partition in partitions])
    gate.next()
    release, released = local_input_channel.LocalInputChannel.release, []

    def refuse(channel: local_input_channel.LocalInputChannel) -> None:
        release(channel)
        released.append(channel.index)
        raise OSError(f"channel {channel.index}")

    monkeypatch.setattr(local_input_channel.LocalInputChannel, "release", refuse)
    with pytest.raises(OSError, match="channel 0"):
        gate.close()
    assert released == [0, 1]
