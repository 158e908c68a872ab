"""Very large batches that are handed over by reference."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.exchange import reference_writer
from engine.exchange.page_reader import gate_batches
from tests.exchange.world import World, descriptor

SCHEMA = pa.schema([("n", pa.int64()), ("blob", pa.binary())])
BLOB = bytes(reference_writer.LARGE_BYTES)


def batch_of(index: int, blob: bytes = BLOB) -> pa.RecordBatch:
    return pa.record_batch([pa.array([index]), pa.array([blob])], schema=SCHEMA)


@pytest.mark.parametrize(("kind", "count"), [("FORWARD", 1), ("BROADCAST", 3)])
def test_a_very_large_batch_is_waited_for_until_it_is_dropped(world: World, monkeypatch, kind: str, count: int) -> None:
    monkeypatch.setattr(reference_writer, "_PATIENCE_S", 60)
    partition = world.partition(descriptor(count, kind))
    writer = world.writer(partition, SCHEMA)
    events: list[tuple[str, int]] = []

    def write() -> None:
        for index in range(4):
            writer.emit(batch_of(index))
            events.append(("handed over", index))
        writer.finish()
        writer.close()

    def read(subpartition: int) -> None:
        gate = world.gate([partition.id], subpartition)
        for batch in gate_batches(gate, SCHEMA):
            events.append(("read", batch.column(0)[0].as_py()))
            del batch
        gate.close()

    world.run(write)
    for subpartition in range(count):
        world.run(lambda subpartition=subpartition: read(subpartition))
    world.join(60)
    assert world.failures == []
    expected = [event for index in range(4) for event in [("read", index)] * count + [("handed over", index)]]
    assert events == expected


def test_a_receiver_may_keep_very_large_batches(world: World, monkeypatch) -> None:
    monkeypatch.setattr(reference_writer, "_PATIENCE_S", 0.2)
    partition = world.partition(descriptor(1, "FORWARD"))
    writer = world.writer(partition, SCHEMA)
    kept: list[pa.RecordBatch] = []

    def write() -> None:
        for index in range(4):
            writer.emit(batch_of(index))
        writer.finish()
        writer.close()

    def read() -> None:
        gate = world.gate([partition.id], 0)
        kept.extend(gate_batches(gate, SCHEMA))
        gate.close()

    world.run(write)
    world.run(read)
    world.join(60)
    assert world.failures == []
    assert [batch.column(0)[0].as_py() for batch in kept] == list(range(4))
    assert (writer.rows, writer.bytes) == (4, sum(batch.nbytes for batch in kept))


def test_a_small_batch_waits_for_nobody(world: World, monkeypatch) -> None:
    monkeypatch.setattr(reference_writer, "_PATIENCE_S", 1000)
    partition = world.partition(descriptor(1, "FORWARD"))
    writer = world.writer(partition, SCHEMA)
    batch = batch_of(7, b"small")
    writer.emit(batch)
    writer.finish()
    gate = world.gate([partition.id], 0)
    assert gate.next() is batch
    assert gate.next() is None
    gate.close()
