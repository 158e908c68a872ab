"""A slow consumer stops its producer while memory stays flat, and stops no neighbour."""

from __future__ import annotations

import resource
import threading
import time

import pyarrow as pa
import pytest

from engine.errors import TaskCancelledError
from engine.exchange.page_reader import gate_batches
from tests.exchange.world import World, descriptor, partition_id

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
BATCH = pa.record_batch({"k": list(range(500)), "s": ["x" * 100] * 500}, schema=SCHEMA)


def stands_at(emitted: list[int]) -> int:
    """Return how many were emitted when no more come: for so long that only a producer that waits is so slow."""
    seen, since = -1, time.monotonic()
    while len(emitted) != seen or not emitted or time.monotonic() - since < 0.5:
        if len(emitted) != seen:
            seen, since = len(emitted), time.monotonic()
        time.sleep(0.01)
    return seen


@pytest.mark.parametrize("kind", ["GLOBAL", "FORWARD", "BROADCAST"])
def test_a_slow_consumer_stops_the_producer_and_memory_stays_flat(world: World, kind: str) -> None:
    partition = world.partition(descriptor(1, kind))
    writer = world.writer(partition, SCHEMA)
    emitted: list[int] = []

    def produce() -> None:
        for number in range(200):
            writer.emit(BATCH)
            emitted.append(number)
        writer.finish()

    world.run(produce)
    stopped_at = stands_at(emitted)
    assert 0 < stopped_at < 10
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gate = world.gate([partition.id])
    rows = 0
    for number, batch in enumerate(gate_batches(gate, SCHEMA, 500)):
        rows += batch.num_rows
        if number < 10:
            time.sleep(0.005)
            assert len(emitted) <= stopped_at + rows // 500 + 8
    gate.close()
    world.join()
    assert rows == 200 * 500
    assert world.network.peak_count <= partition.pool.maximum
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB
    assert partition.blocked_ns > 0


def test_a_blocked_writer_stops_its_own_reader(world: World) -> None:
    """One thread reads and writes: when the second exchange is full, the first one fills up too."""
    first = world.partition(descriptor(1, "GLOBAL", identity=partition_id(0)))
    second = world.partition(descriptor(1, "GLOBAL", identity=partition_id(1)))
    source, relay = world.writer(first, SCHEMA), world.writer(second, SCHEMA)
    emitted: list[int] = []

    def produce() -> None:
        for number in range(100):
            source.emit(BATCH)
            emitted.append(number)
        source.finish()

    def pass_on() -> None:
        gate = world.gate([first.id])
        for batch in gate_batches(gate, SCHEMA, 500):
            relay.emit(batch)
        relay.finish()
        gate.close()

    world.run(produce)
    world.run(pass_on)
    assert 0 < stands_at(emitted) < 20
    gate = world.gate([second.id])
    assert sum(batch.num_rows for batch in gate_batches(gate, SCHEMA)) == 50_000
    gate.close()
    world.join()


def test_a_stalled_consumer_does_not_stop_a_neighbour_s_partition(world: World) -> None:
    stalled = world.partition(descriptor(1, "GLOBAL", identity=partition_id(0)))
    running = world.partition(descriptor(1, "GLOBAL", identity=partition_id(1)))

    def produce(subtask: int) -> None:
        writer = world.writer((stalled, running)[subtask], SCHEMA)
        for _ in range(50):
            writer.emit(BATCH)
        writer.finish()

    blocked = threading.Thread(target=lambda: world.run(lambda: produce(0)))
    blocked.start()
    blocked.join()
    world.run(lambda: produce(1))
    gate = world.gate([running.id])
    assert sum(batch.num_rows for batch in gate_batches(gate, SCHEMA)) == 25_000
    gate.close()
    stalled.cancel()
    world.join()
    assert isinstance(world.failures[0], TaskCancelledError)


def test_cancel_wakes_a_blocked_writer_and_a_blocked_reader(world: World) -> None:
    full = world.partition(descriptor(2, "REBALANCE", identity=partition_id(0)))
    writer = world.writer(full, SCHEMA)
    empty = world.partition(descriptor(1, "GLOBAL", identity=partition_id(1)))
    gate = world.gate([empty.id])

    def produce() -> None:
        try:
            while True:
                writer.emit(BATCH)
        finally:
            writer.close()

    world.run(produce)
    world.run(gate.next)
    while not full.pool.is_waiting:
        time.sleep(0.001)
    full.cancel()
    gate.cancel()
    world.join()
    assert [type(failure) for failure in world.failures] == [TaskCancelledError] * 2
    gate.close()
    assert world.network.in_use == 0
