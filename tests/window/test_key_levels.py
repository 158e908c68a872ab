"""In which key rows differ from the row before: over types, nulls, NaN, zeros, and from batch to batch."""

import datetime
import decimal
import math

import pyarrow as pa
import pytest

from engine.window.key_levels import KEYS_MAX, KeyLevels

DAY = datetime.date(2020, 1, 1)
VALUES = {
    pa.int8(): [1, 1, 2, None, None],
    pa.int32(): [1, 1, 2, None, None],
    pa.int64(): [1, 1, 2, None, None],
    pa.uint64(): [1, 1, 2**63, None, None],
    pa.float16(): [1.0, 1.0, math.nan, None, None],
    pa.float32(): [0.0, -0.0, 2.0, None, None],
    pa.float64(): [math.nan, math.nan, 2.0, None, None],
    pa.bool_(): [True, True, False, None, None],
    pa.string(): ["a", "a", "ab", None, None],
    pa.large_binary(): [b"", b"", b"\0", None, None],
    pa.binary(2): [b"ab", b"ab", b"ac", None, None],
    pa.decimal128(20, 2): [decimal.Decimal("1.00"), decimal.Decimal("1.00"), decimal.Decimal("1.01"), None, None],
    pa.decimal256(50, 0): [decimal.Decimal(1), decimal.Decimal(1), decimal.Decimal(2**70), None, None],
    pa.date32(): [DAY, DAY, DAY + datetime.timedelta(1), None, None],
    pa.null(): [None] * 5,
}


def levels_of(batch, keys, sizes):
    levels = KeyLevels(keys)
    found, start = [], 0
    for size in sizes:
        found += levels.of(batch.slice(start, size)).to_pylist()
        start += size
    return found


@pytest.mark.parametrize("sizes", [(5,), (1, 1, 1, 1, 1), (2, 3), (3, 2), (4, 1)], ids=str)
@pytest.mark.parametrize("data_type", VALUES, ids=str)
def test_rows_that_differ_are_found_in_each_type_across_batches(data_type, sizes):
    batch = pa.record_batch({"x": pa.array(VALUES[data_type], data_type)})
    wanted = [0, 2, 2, 2, 2] if data_type == pa.null() else [0, 2, 1, 1, 2]
    assert levels_of(batch, ["x"], sizes) == wanted


def test_the_first_key_that_differs_counts():
    batch = pa.record_batch({"a": [1, 1, 1, 2, 2], "b": ["x", "x", "y", "y", "y"], "c": [1.0, 2.0, 2.0, 2.0, 2.0]})
    assert levels_of(batch, ["a", "b", "c"], (5,)) == [0, 3, 2, 1, 4]
    assert levels_of(batch, ["c", "a"], (2, 3)) == [0, 1, 3, 2, 3]


def test_without_keys_only_the_first_row_begins_something():
    assert levels_of(pa.record_batch({"a": [1, 2, 3]}), [], (1, 2)) == [0, 1, 1]


def test_a_level_is_a_byte():
    with pytest.raises(ValueError, match="at most 254"):
        KeyLevels([str(index) for index in range(KEYS_MAX + 1)])
