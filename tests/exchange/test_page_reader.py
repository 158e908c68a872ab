from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptBlockError, SpillError
from engine.exchange.buffer_pool import unpooled_buffer
from engine.exchange.page_reader import PageReader, gate_batches
from engine.memory import value_stores
from tests.exchange.world import World, descriptor
from tests.records.test_outside_values import ValuesInMemory, codec_of, store

__all__ = ["store"]

SCHEMA = pa.schema([("k", pa.int64())])


def write(world: World, rows: int, per_batch: int) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"), (2, 2))
    writer = world.writer(partition, SCHEMA, timeout_ms=0)

    def work() -> None:
        for start in range(0, rows, per_batch):
            writer.emit(pa.record_batch({"k": list(range(start, min(start + per_batch, rows)))}, schema=SCHEMA))
        writer.finish()

    world.run(work)


def test_small_pages_become_batches_of_useful_size_with_a_pool_of_two(world: World) -> None:
    write(world, 20_000, 100)
    gate = world.gate([descriptor(1).id])
    batches = list(gate_batches(gate, SCHEMA))
    gate.close()
    world.join()
    assert [key for batch in batches for key in batch["k"].to_pylist()] == list(range(20_000))
    assert max(batch.num_rows for batch in batches) <= 32768
    assert len(batches) <= 5


def test_batches_are_bounded_by_rows_and_bytes(world: World) -> None:
    write(world, 5000, 1000)
    gate = world.gate([descriptor(1).id])
    batches = list(gate_batches(gate, SCHEMA, 300, 2000))
    gate.close()
    world.join()
    assert sum(batch.num_rows for batch in batches) == 5000
    assert max(batch.num_rows for batch in batches) <= 300


@given(st.integers(1, 500), st.integers(1, 100))
def test_one_page_of_many_rows_is_cut_into_even_batches(rows: int, max_rows: int) -> None:
    page = b"".join((16).to_bytes(4, "little") + bytes(4) + k.to_bytes(8, "little") for k in range(rows))
    reader = PageReader(SCHEMA, max_rows)
    assert reader.has_room_for(1 << 30)
    reader.add(unpooled_buffer(page))
    assert reader.staged_rows == rows
    batches = reader.take_batches()
    sizes = [batch.num_rows for batch in batches]
    assert max(sizes) <= max_rows
    assert max(sizes) - min(sizes) <= 1
    assert [key for batch in batches for key in batch["k"].to_pylist()] == list(range(rows))
    assert (reader.staged_rows, reader.staged_bytes, reader.take_batches()) == (0, 0, [])


def test_values_outside_of_rows_count_for_the_size_of_a_batch(store: ValuesInMemory) -> None:
    texts = [chr(97 + number % 26) * (200 + 40 * number) for number in range(40)] + ["huge" * 3000, None, "short"]
    batch = pa.record_batch({"k": range(len(texts)), "s": pa.array(texts, pa.large_string())})
    reader = PageReader(batch.schema, max_bytes=5000)
    reader.add(unpooled_buffer(codec_of(batch.schema, store).to_rows(batch)))
    coming = reader.take_batches()
    assert (reader.staged_rows, reader.staged_bytes) == (0, 0)
    # What is staged meanwhile has memory of its own.
    reader.add(unpooled_buffer(codec_of(batch.schema, store).to_rows(batch.slice(41))))
    batches = list(coming)
    assert pa.Table.from_batches(batches) == pa.Table.from_batches([batch])
    assert len(batches) > 8
    assert all(len(piece) == 1 or sum(map(len, filter(None, piece["s"].to_pylist()))) <= 5000 for piece in batches)
    assert [row for piece in reader.take_batches() for row in piece.to_pylist()] == batch.slice(41).to_pylist()


def test_values_outside_that_are_gone_when_their_batch_is_asked_for_are_an_error(store: ValuesInMemory) -> None:
    batch = pa.record_batch({"s": ["x" * 4000] * 4})
    reader = PageReader(batch.schema, max_bytes=5000)
    reader.add(unpooled_buffer(codec_of(batch.schema, store).to_rows(batch)))
    coming = iter(reader.take_batches())
    assert next(coming) == batch.slice(0, 1)
    value_stores.forget(store.number)
    with pytest.raises(SpillError):
        next(coming)


@pytest.mark.parametrize("content", [b"12345678", bytes(8), b"\x20" + bytes(15)])
def test_bytes_that_are_no_rows_are_an_error_and_the_page_is_recycled(content: bytes) -> None:
    page = unpooled_buffer(content)
    with pytest.raises(CorruptBlockError, match="whole rows"):
        PageReader(SCHEMA).add(page)
    assert page.is_recycled


def test_batches_by_reference_pass_through_untouched(world: World) -> None:
    partition = world.partition(descriptor(1, "FORWARD"))
    writer = world.writer(partition, SCHEMA)
    batch = pa.record_batch({"k": [1]}, schema=SCHEMA)
    writer.emit(batch)
    writer.finish()
    gate = world.gate([partition.id])
    assert next(iter(gate_batches(gate, SCHEMA))) is batch
    gate.close()
