"""Rows that leave the process have all values inside, rows that arrive have wide ones outside, byte for byte."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError
from engine.records.row_codec import RowCodec
from engine.records.whole_rows import rows_inside, rows_outside
from tests.records.test_outside_values import LIMIT, ValuesInMemory, codec_of, store

__all__ = ["store"]

BATCH = pa.record_batch(
    {
        "k": pa.array([1, None, 3, 4, 5], pa.int64()),
        "text": ["short", "w" * 300, None, "", "x" * LIMIT],
        "n": pa.array([1, 2, None, 4, 5], pa.int16()),
        "blob": pa.array([b"b" * 1000, None, b"c", b"d" * (LIMIT - 1), b"e" * 5000], pa.large_binary()),
        "list": [["a" * 70, "b" * 70], None, ["c"], [], ["d" * 200, None]],
    }
)


def test_rows_with_values_outside_and_whole_rows_become_each_other(store: ValuesInMemory) -> None:
    whole = RowCodec(BATCH.schema).to_rows(BATCH)
    codec = codec_of(BATCH.schema, store)
    with_references = codec.to_rows(BATCH)
    assert len(store.values) == 6
    assert rows_inside(codec, with_references) == whole
    moved = rows_outside(codec, whole)
    assert moved is not None
    # The places in the store are others, the rows the same.
    assert len(moved) == len(with_references)
    assert len(store.values) == 12
    assert rows_inside(codec, moved) == whole
    assert codec.from_rows(moved).equals(BATCH)
    # what lies outside already stays where it is
    assert rows_outside(codec, moved) is None
    assert rows_inside(codec, whole) == whole


def test_columns_that_stay_inside_do(store: ValuesInMemory) -> None:
    whole = RowCodec(BATCH.schema).to_rows(BATCH)
    codec = codec_of(BATCH.schema, store, inside=(1, 4))
    moved = rows_outside(codec, whole)
    assert moved is not None
    assert sorted(map(len, store.values)) == [1000, 5000]
    assert codec.from_rows(moved).equals(BATCH)


def test_narrow_rows_and_rows_without_an_owner_are_not_changed(store: ValuesInMemory) -> None:
    narrow = BATCH.slice(2, 2)
    whole = RowCodec(BATCH.schema).to_rows(narrow)
    assert rows_outside(codec_of(BATCH.schema, store), whole) is None
    assert rows_outside(RowCodec(BATCH.schema), RowCodec(BATCH.schema).to_rows(BATCH)) is None
    assert store.values == []


@pytest.mark.parametrize("position", [0, 32, 36])
def test_a_damaged_row_is_refused(store: ValuesInMemory, position: int) -> None:
    whole = bytearray(RowCodec(BATCH.schema).to_rows(BATCH.slice(0, 1)))
    whole[position + 2] ^= 0x40
    with pytest.raises(CorruptBlockError):
        rows_outside(codec_of(BATCH.schema, store), whole)
    assert store.values == []
