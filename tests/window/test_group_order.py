"""Rows group by group against a dict: keys of all types, nulls and NaN, few and many groups, and sliced batches."""

import datetime
import decimal
import itertools
import random

import pyarrow as pa
import pytest

from engine.window.group_order import group_order, order_of_runs

NAN = float("nan")
#: type: values of keys that differ, and what is equal to the first of them
KEYS = {
    "int64": (pa.int64(), [0, -1, 2**62, 7, 5], 0),
    # numbers of a small range for 1000 rows, not for one
    "small int64": (pa.int64(), [5, -1, 7, 300], 5),
    "small int32": (pa.int32(), [5, -1, 7, 300], 5),
    "widest int64": (pa.int64(), [2**63 - 1, -(2**63), 0], 0),
    "only least": (pa.int64(), [-(2**63)], -(2**63)),
    "small date": (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(1970, 1, 9)], datetime.date(1970, 1, 9)),
    "int8": (pa.int8(), [0, -1, 127], 0),
    "float64": (pa.float64(), [0.0, NAN, 1.5, float("inf")], -0.0),
    "float32": (pa.float32(), [0.0, NAN, 1.5], -0.0),
    "bool": (pa.bool_(), [False, True], False),
    "string": (pa.string(), ["", "a", "a longer text", "a longer tex"], ""),
    "large_string": (pa.large_string(), ["", "a", "ab"], ""),
    "decimal": (pa.decimal128(20, 2), [decimal.Decimal("0.00"), decimal.Decimal("-1.50")], decimal.Decimal("0.00")),
    "date": (pa.date32(), [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)], datetime.date(1970, 1, 1)),
    "null": (pa.null(), [None], None),
}


def shown(value):
    """A value of a key as what is equal to others: NaN to NaN, -0.0 to 0.0."""
    return "NaN" if value != value else value


def wanted(rows, keys):
    """Rows by their keys, in the order in which these come."""
    found = {}
    for index, row in enumerate(zip(*(rows.column(key).to_pylist() for key in range(keys)), strict=True)):
        found.setdefault(tuple(map(shown, row)), []).append(index)
    return list(found.values())


def found(rows, keys):
    order, bounds = group_order(rows, keys)
    order, bounds = order.to_pylist(), bounds.to_pylist()
    assert bounds[-1] == len(order) == rows.num_rows
    return [order[begin:end] for begin, end in itertools.pairwise(bounds)]


@pytest.mark.parametrize("count", [1, 2, 40, 1000])
@pytest.mark.parametrize("kind", KEYS)
def test_rows_of_equal_keys_lie_together_as_they_came(kind, count):
    data_type, values, same = KEYS[kind]
    rng = random.Random(count)
    keys = pa.array([rng.choice([*values, same, None]) for _ in range(count + 3)], data_type)
    rows = pa.record_batch({"k": keys, "i": pa.array(range(count + 3))}).slice(3)
    assert found(rows, 1) == wanted(rows, 1)


@pytest.mark.parametrize("groups", [1, 600, 100_000])
def test_two_keys_and_as_many_groups_as_the_table_has_to_grow_for(groups):
    rng = random.Random(groups)
    numbers = [rng.randrange(groups) for _ in range(20_000)]
    rows = pa.record_batch({"a": [f"key {number % 97}" for number in numbers], "b": numbers})
    assert found(rows, 2) == wanted(rows, 2)


def test_runs_in_order_are_their_rows_in_order():
    starts = pa.array([0, 3, 4, 6, 9], pa.int64())
    order, bounds = pa.array([9, 0, 2, 1, 3], pa.int32()).slice(1), pa.array([0, 2, 4], pa.int64())
    rows, places = order_of_runs(order, bounds, starts)
    assert rows.to_pylist() == [0, 1, 2, 4, 5, 3, 6, 7, 8]
    assert places.to_pylist() == [0, 5, 9]


def test_no_rows_have_no_groups():
    assert found(pa.record_batch({"k": pa.array([], pa.int64())}), 1) == []
