"""Columns that are kept for readers: stored BROADCAST and FORWARD results of batches of many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError
from engine.exchange.batch_stream import batch_of, stream_of
from engine.exchange.blocking_data import DataState
from engine.exchange.blocking_partition import BlockingPartition
from engine.exchange.buffer_pool import BufferKind
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.input_gate import InputGate
from engine.exchange.page_reader import gate_batches
from engine.exchange.ready_queue import ReadyQueue
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from engine.graph.subpartition_share import PARTS, WHOLE
from tests.exchange.world import BLOCKING, World, descriptor, partition_id

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])


def rows(start: int, count: int, width: int = 8) -> pa.RecordBatch:
    keys = range(start, start + count)
    texts = [None if key % 7 == 0 else f"{key:0{width}d}" for key in keys]
    return pa.record_batch({"k": list(keys), "s": texts}, schema=SCHEMA)


#: many rows, few, many again: what is written first is read first; the last one is written in several parts
MIXED = [rows(0, 3000), rows(3000, 5), rows(3005, 700), rows(3705, 60_000)]


def stored(
    world: World, batches: Sequence[pa.RecordBatch], kind: str = "BROADCAST", consumers: int = 2
) -> BlockingPartition:
    partition = world.partition(descriptor(consumers, kind, result_type=BLOCKING), bounds=(2, 60))
    writer = world.writer(partition, SCHEMA)

    def produce() -> None:
        try:
            for batch in batches:
                writer.emit(batch)
            writer.finish()
        finally:
            writer.close()

    world.run(produce)
    world.join()
    assert isinstance(partition, BlockingPartition)
    return partition


def kinds_of(partition: BlockingPartition, part: tuple[int, int] = WHOLE) -> list[int]:
    view = partition.create_view(0, ReadyQueue(1), 0, part=part)
    kinds = []
    while (element := view.poll()[0]) is not END_OF_PARTITION:
        kinds.append(element.kind)
        element.recycle()
    view.release()
    return kinds


def read(world: World, consumer: int = 0, part: tuple[int, int] = WHOLE) -> list[int]:
    channel = InputChannelDescriptor(partition_id(), PartitionLocation.LOCAL, consumer, part=part)
    gate = InputGate((channel,), world.manager)
    keys: list[int] = []

    def consume() -> None:
        for batch in gate_batches(gate, SCHEMA):
            batch.validate(full=True)
            keys.extend(batch["k"].to_pylist())

    world.run(consume)
    world.join()
    gate.close()
    return keys


@pytest.mark.parametrize("kind", ["BROADCAST", "FORWARD"])
@pytest.mark.parametrize("is_spilled", [False, True])
def test_readers_get_all_rows_in_the_order_of_their_writing(world: World, kind: str, is_spilled: bool) -> None:
    consumers = 2 if kind == "BROADCAST" else 1
    partition = stored(world, MIXED if is_spilled else MIXED[:3], kind, consumers)
    assert partition.data.state is (DataState.FILE if is_spilled else DataState.MEMORY)
    expected = list(range(partition.rows))
    assert partition.rows == (63_705 if is_spilled else 3705)
    for consumer in (*range(consumers), 0):  # any number of times
        assert read(world, consumer) == expected
    assert not world.failures


def test_batches_of_many_rows_are_columns_and_those_of_few_are_rows(world: World) -> None:
    partition = stored(world, MIXED[:3])
    kinds = kinds_of(partition)
    assert kinds.count(BufferKind.LAST_BATCH) == 2
    assert kinds.count(BufferKind.ROWS) == 1
    assert kinds.index(BufferKind.ROWS) == kinds.index(BufferKind.LAST_BATCH) + 1


def test_a_large_batch_is_written_in_parts_of_which_a_share_of_the_result_has_some(world: World) -> None:
    partition = stored(world, [rows(0, 60_000, width=60)])
    assert kinds_of(partition).count(BufferKind.LAST_BATCH) >= 4
    shares = [read(world, part=(begin, begin + PARTS // 4)) for begin in range(0, PARTS, PARTS // 4)]
    assert sorted(key for share in shares for key in share) == list(range(60_000))
    assert sum(map(bool, shares)) > 1
    assert not world.failures


def test_rows_of_many_bytes_stay_rows(world: World) -> None:
    partition = stored(world, [rows(0, 600, width=3000)])
    assert set(kinds_of(partition)) == {int(BufferKind.ROWS)}
    assert read(world) == list(range(600))
    assert not world.failures


def test_other_kinds_of_stored_results_have_rows(world: World) -> None:
    assert set(kinds_of(stored(world, [rows(0, 3000)], "GLOBAL", 1))) == {int(BufferKind.ROWS)}


@pytest.mark.parametrize("damage", [lambda content: content[:-200], lambda content: b"\xff" * 64, lambda _: b""])
def test_bytes_that_are_no_batch_are_an_error(damage: Callable[[bytes], bytes]) -> None:
    content = bytes(stream_of(rows(0, 1000)))
    assert batch_of(bytearray(content)).equals(rows(0, 1000))
    with pytest.raises(CorruptBlockError, match="are not a batch"):
        batch_of(bytearray(damage(content)))
