"""Pages of rows become batches of useful size, also when rows are very large or damaged."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptBlockError, ProducerFailedError, SpillError
from engine.exchange.buffer_pool import Buffer, unpooled_buffer
from engine.exchange.elements import OversizedRow
from engine.exchange.input_gate import NOTHING_YET
from engine.exchange.page_reader import PageReader, gate_batches
from engine.memory import value_stores
from engine.records.row_codec import RowCodec
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


class ScriptedGate:
    """Gives elements in order; an error is raised, NOTHING_YET is told only to who does not wait."""

    def __init__(self, *script: object, is_together: bool = False) -> None:
        self.script = list(script)
        #: whether pages behind a page are of the same channel
        self.is_together = is_together
        #: pages out when the gate was waited for
        self.out_while_waiting: list[int] = []
        self.pages = [element for element in script if isinstance(element, Buffer)]
        self._given = 0

    def poll(self, timeout_ms: int) -> object:
        if timeout_ms != 0:
            self.out_while_waiting.append(sum(not page.is_recycled for page in self.pages[: self._given]))
        element = self.script.pop(0)
        if element is NOTHING_YET and timeout_ms != 0:
            element = self.script.pop(0)
        if isinstance(element, Exception):
            raise element
        self._given += isinstance(element, Buffer)
        return element

    def poll_pages(self, pages: list[Buffer], count_max: int, bytes_max: int) -> int:
        size = 0
        while self.is_together and len(pages) < count_max and size < bytes_max and isinstance(self.script[0], Buffer):
            pages.append(self.script.pop(0))
            size += pages[-1].size
            self._given += 1
        return size


def page_of(first: int, count: int) -> Buffer:
    return unpooled_buffer(RowCodec(SCHEMA).to_rows(pa.record_batch({"k": list(range(first, first + count))}, SCHEMA)))


@given(st.lists(st.integers(0, 60), max_size=60), st.data())
def test_pages_that_are_there_are_taken_together_and_in_order(sizes: list[int], data: st.DataObject) -> None:
    script: list[object] = []
    expected: list[int] = []
    for size in sizes:
        begin = len(expected)
        expected += range(begin, begin + max(size, 1))
        if size == 0:
            script.append(pa.record_batch({"k": [begin]}, SCHEMA))
        else:
            script.append(page_of(begin, size))
        script += [NOTHING_YET] * data.draw(st.booleans())
    gate = ScriptedGate(*script, None, is_together=data.draw(st.booleans()))
    found = gate_batches(gate, SCHEMA, data.draw(st.integers(1, 200)), data.draw(st.integers(16, 4000)))
    assert [key for batch in found for key in batch["k"].to_pylist()] == expected
    assert all(page.is_recycled for page in gate.pages)
    assert not any(gate.out_while_waiting)


TEXTS = pa.schema([("k", pa.int64()), ("s", pa.string())])


def test_a_row_larger_than_a_batch_is_decoded_where_it_lies_and_forgotten() -> None:
    batch = pa.record_batch({"k": [0, 1, 2, 3], "s": ["a", "b" * 5000, "c" * 900, "d" * 70_000]}, TEXTS)
    codec = RowCodec(TEXTS)
    rows = [codec.to_rows(batch.slice(index, 1)) for index in range(4)]
    wide, middle, widest = (OversizedRow(bytearray(row)) for row in rows[1:])
    reader_takes = gate_batches(ScriptedGate(unpooled_buffer(rows[0]), wide, middle, widest, None), TEXTS, 100, 4000)
    found = []
    for piece in reader_takes:
        found += piece.to_pylist()
        # of what is given out nobody keeps the row
        assert {1: wide, 3: widest}.get(found[-1]["k"], OversizedRow(bytearray())).size == 0
    assert found == batch.to_pylist()
    assert middle.size == len(rows[2])


def test_a_row_larger_than_a_batch_with_values_outside_is_staged(store: ValuesInMemory) -> None:
    batch = pa.record_batch({"k": [1], "s": ["w" * 9000], **{f"c{n}": ["n" * 90] for n in range(60)}})
    row = codec_of(batch.schema, store).to_rows(batch)
    assert len(row) > 5000
    assert list(gate_batches(ScriptedGate(OversizedRow(bytearray(row)), None), batch.schema, 100, 5000)) == [batch]


@pytest.mark.parametrize("change", [(0, 0x20), (18, 0x40), (22, 0x40)])
def test_a_damaged_row_larger_than_a_batch_is_an_error(change: tuple[int, int]) -> None:
    row = bytearray(RowCodec(TEXTS).to_rows(pa.record_batch({"k": [1], "s": ["b" * 5000]}, TEXTS)))
    position, flipped = change
    row[position] ^= flipped
    with pytest.raises(CorruptBlockError):
        list(gate_batches(ScriptedGate(OversizedRow(row), None), TEXTS, 100, 4000))


def test_pages_in_front_of_an_error_are_recycled() -> None:
    gate = ScriptedGate(page_of(0, 5), page_of(5, 5), ProducerFailedError("gone"))
    with pytest.raises(ProducerFailedError, match="gone"):
        list(gate_batches(gate, SCHEMA))
    assert all(page.is_recycled for page in gate.pages)


def test_of_several_pages_the_damaged_one_is_told() -> None:
    pages = [page_of(0, 5), unpooled_buffer(b"12345678" * 3), page_of(5, 5)]
    with pytest.raises(CorruptBlockError, match="a page of 24 bytes does not consist of whole rows"):
        PageReader(SCHEMA).add(*pages)
    assert all(page.is_recycled for page in pages)
