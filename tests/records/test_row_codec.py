"""Rows: what goes in comes out, for every type, null, slice and choice of columns."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import CorruptBlockError, DataError, SchemaError
from engine.records.row_codec import RowCodec
from tests.native import _records_probe as probe
from tests.records.batches import ALL_TYPES, batches, sample_batch, sample_values


def comparable(value: Any) -> Any:
    """Return a value in which every NaN equals every NaN."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    return value


def assert_same(found: pa.RecordBatch, expected: pa.RecordBatch) -> None:
    found.validate(full=True)
    assert found.schema.equals(expected.schema)
    assert comparable(found.to_pylist()) == comparable(expected.to_pylist())


@settings(max_examples=200, deadline=None)
@given(batches(ALL_TYPES))
def test_batches_survive_the_way_through_rows(batch: pa.RecordBatch) -> None:
    codec = RowCodec(batch.schema)
    assert_same(codec.from_rows(codec.to_rows(batch)), batch)


@settings(max_examples=100, deadline=None)
@given(batches(ALL_TYPES), st.data())
def test_a_slice_makes_the_same_rows_as_a_copy(batch: pa.RecordBatch, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, batch.num_rows))
    count = data.draw(st.integers(0, batch.num_rows - start))
    codec = RowCodec(batch.schema)
    rows = probe.encode_range(codec, batch, start, count)
    assert b"".join(rows) == codec.to_rows(batch.slice(start, count))
    assert_same(codec.from_rows(b"".join(rows)), batch.slice(start, count))
    assert all(int.from_bytes(row[:4], "little") == len(row) and len(row) % 8 == 0 for row in rows)


@pytest.mark.parametrize("name", sorted(ALL_TYPES))
def test_each_type_survives_in_a_batch_of_many_chunks(name: str) -> None:
    sample = sample_values(ALL_TYPES[name])
    array = pa.array([sample[index * 7 % 4] for index in range(1601)], ALL_TYPES[name])
    without_nulls = pa.array([sample[index % 3] for index in range(1601)], ALL_TYPES[name])
    batch = pa.record_batch({"a": array, "b": without_nulls}).slice(3)
    codec = RowCodec(batch.schema)
    assert_same(codec.from_rows(codec.to_rows(batch)), batch)


@pytest.mark.parametrize("first", [0, 7, 511, 512, 1024, 1599])
def test_a_null_in_any_chunk_leaves_the_others_valid(first: int) -> None:
    values = [None if row == first else row for row in range(1601)]
    batch = pa.RecordBatch.from_pydict({"n": pa.array(values, pa.int64()), "t": pa.array(map(str, range(1601)))})
    codec = RowCodec(batch.schema)
    found = codec.from_rows(codec.to_rows(batch))
    assert_same(found, batch)
    assert found.column(0).null_count == 1
    assert found.column(1).buffers()[0] is None


def test_all_types_survive_side_by_side() -> None:
    batch = sample_batch()
    codec = RowCodec(batch.schema)
    page = codec.to_rows(batch)
    assert_same(codec.from_rows(page), batch)
    assert_same(codec.from_rows(memoryview(page)), batch)


def test_every_byte_of_a_row_is_written() -> None:
    batch = sample_batch()
    codec = RowCodec(batch.schema)
    assert b"".join(probe.encode_range(codec, batch, 0, batch.num_rows)) == codec.to_rows(batch)


def test_equal_values_are_equal_bytes_whatever_lies_under_a_null() -> None:
    validity = pa.py_buffer(b"\x05")
    garbage = pa.Array.from_buffers(pa.int64(), 3, [validity, pa.array([1, 99, 3]).buffers()[1]])
    text = pa.Array.from_buffers(pa.string(), 3, [validity, *pa.array(["a", "xyz", "c"]).buffers()[1:]])
    batch = pa.record_batch({"number": garbage, "text": text})
    clean = pa.record_batch({"number": pa.array([1, None, 3]), "text": pa.array(["a", None, "c"])})
    codec = RowCodec(batch.schema)
    assert codec.to_rows(batch) == codec.to_rows(clean)


@settings(max_examples=100, deadline=None)
@given(batches(ALL_TYPES, max_rows=8), st.data())
def test_decode_picks_rows_and_columns_and_fills_missing_rows_with_nulls(
    batch: pa.RecordBatch, data: st.DataObject
) -> None:
    codec = RowCodec(batch.schema)
    positions = st.none() | st.integers(0, batch.num_rows - 1) if batch.num_rows else st.none()
    picks = data.draw(st.lists(positions, max_size=20))
    columns = data.draw(st.lists(st.integers(0, batch.num_columns - 1), max_size=6))
    found = probe.decode_picked(codec, codec.to_rows(batch), picks, columns)
    found.validate(full=True)
    assert found.schema.equals(pa.schema([batch.schema.field(column) for column in columns]))
    rows = [
        tuple(batch.column(column)[pick].as_py() if pick is not None else None for column in columns) for pick in picks
    ]
    taken = [list(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]
    taken = taken if columns else [[]] * len(picks)
    assert found.num_rows == len(picks)
    assert comparable(taken) == comparable(rows)


def test_columns_without_nulls_get_no_validity_buffer() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2]), "b": pa.array(["x", None])})
    codec = RowCodec(batch.schema)
    found = codec.from_rows(codec.to_rows(batch))
    assert found.column(0).buffers()[0] is None
    assert found.column(1).buffers()[0] is not None
    assert found.column(1).null_count == 1


def test_many_columns_have_null_bits_of_many_bytes() -> None:
    rng = random.Random(5)
    arrays = {
        f"c{index}": pa.array([rng.choice([None, index, -1]) for _ in range(20)], pa.int16()) for index in range(100)
    }
    batch = pa.record_batch(arrays)
    codec = RowCodec(batch.schema)
    assert_same(codec.from_rows(codec.to_rows(batch)), batch)


def test_batches_of_other_columns_are_refused_by_name() -> None:
    codec = RowCodec(pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int8()))]))
    with pytest.raises(SchemaError, match="1 columns, the rows have 2: a, b"):
        codec.to_rows(pa.record_batch({"a": pa.array([1])}))
    with pytest.raises(SchemaError, match=r"column 'b' of the rows has the type list<item: int8>, .* int16>"):
        codec.to_rows(pa.record_batch({"a": pa.array([1]), "b": pa.array([[1]], pa.list_(pa.int16()))}))


def test_a_null_in_a_column_declared_not_nullable_is_refused() -> None:
    schema = pa.schema([pa.field("key", pa.int64(), nullable=False)])
    codec = RowCodec(schema)
    with pytest.raises(SchemaError, match="'key' is declared not nullable and holds 1 nulls"):
        codec.to_rows(pa.RecordBatch.from_arrays([pa.array([1, None])], schema=schema))


@pytest.mark.parametrize("page", [b"\x08", b"\x07\0\0\0\0\0\0\0", b"\x10\0\0\0\0\0\0\0", b"\0" * 8, b"\xff" * 64])
def test_pages_whose_sizes_do_not_add_up_are_corrupt(page: bytes) -> None:
    with pytest.raises(CorruptBlockError, match="damaged"):
        RowCodec(pa.schema([])).from_rows(page)


def test_a_page_is_walked_up_to_the_capacity() -> None:
    batch = pa.record_batch({"text": pa.array(["a" * size for size in range(10)])})
    page = RowCodec(batch.schema).to_rows(batch)
    assert probe.page_row_count(page, 100) == 10
    assert probe.page_row_count(page, 4) == 4
    assert probe.page_row_count(page[:-8], 100) == -1


def damaged_pages() -> list[tuple[str, pa.RecordBatch]]:
    singles = [
        (name, pa.record_batch({"value": pa.array(sample_values(kind), kind)})) for name, kind in ALL_TYPES.items()
    ]
    return [*singles, ("all", sample_batch())]


@pytest.mark.parametrize(("name", "batch"), damaged_pages(), ids=lambda value: value if isinstance(value, str) else "")
def test_damaged_rows_give_an_error_or_a_value_but_never_crash(name: str, batch: pa.RecordBatch) -> None:
    codec = RowCodec(batch.schema)
    page = bytearray(codec.to_rows(batch))
    patterns = (0x01, 0x80, 0xFF) if name != "all" else (0xFF,)
    refused = 0
    for position in range(len(page)):
        for pattern in patterns:
            page[position] ^= pattern
            try:
                codec.from_rows(page).validate()
            except (CorruptBlockError, DataError):
                refused += 1
            page[position] ^= pattern
    assert refused > 0
    assert_same(codec.from_rows(page), batch)


def test_random_bytes_behind_a_sound_size_never_crash() -> None:
    rng = random.Random(11)
    codec = RowCodec(sample_batch().schema)
    size = codec.fixed_size + 64
    for _ in range(300):
        codec_page = size.to_bytes(4, "little") + rng.randbytes(size - 4)
        with pytest.raises(CorruptBlockError):
            codec.from_rows(codec_page)
