"""Floats have one order in expressions, keys and sort: NaN equals NaN and is the greatest, -0.0 equals 0.0."""

import math
import struct

import pyarrow as pa
import pytest

from engine import col, lit, when
from engine.expressions.evaluate import compile_expression

NAN = math.nan
OTHER_NAN = struct.unpack("d", struct.pack("Q", 0xFFF8000000000123))[0]
EDGES = [None, NAN, OTHER_NAN, 0.0, -0.0, 1.5, -1.5, 2.0**24, math.inf, -math.inf, 5e-324]
TYPES = [pa.float64(), pa.float32(), pa.float16()]


def place(value):
    return (1, 0.0) if math.isnan(value) else (0, value + 0.0)


ORACLE = {
    "__eq__": lambda a, b: place(a) == place(b),
    "__ne__": lambda a, b: place(a) != place(b),
    "__lt__": lambda a, b: place(a) < place(b),
    "__le__": lambda a, b: place(a) <= place(b),
    "__gt__": lambda a, b: place(a) > place(b),
    "__ge__": lambda a, b: place(a) >= place(b),
}


def values_of(expression, table):
    batch = table.combine_chunks().to_batches()[0]
    return compile_expression(expression.expression, batch.schema)(batch).to_pylist()


def expected(function, pairs):
    return [None if a is None or b is None else function(a, b) for a, b in pairs]


def stored(values, data_type):
    return pa.array(values, data_type).to_pylist()


@pytest.mark.parametrize("data_type", TYPES, ids=str)
@pytest.mark.parametrize("name", ORACLE)
def test_two_columns_compare_by_the_order_of_keys(name, data_type):
    edges = stored(EDGES, data_type)
    pairs = [(a, b) for a in edges for b in edges] * 2
    left, right = (pa.array([pair[side] for pair in pairs], data_type) for side in (0, 1))
    table = pa.table({"skip": [0] * len(pairs), "a": left, "b": right})
    for first in (0, 1, 7, 120):
        found = values_of(getattr(col("a"), name)(col("b")), table.slice(first))
        assert found == expected(ORACLE[name], pairs[first:])


@pytest.mark.parametrize("data_type", TYPES, ids=str)
@pytest.mark.parametrize("name", ORACLE)
def test_a_column_and_a_constant_compare_by_the_order_of_keys(name, data_type):
    edges = stored(EDGES, data_type)
    table = pa.table({"a": pa.array(edges, data_type)})
    for constant in stored([edge for edge in EDGES if edge is not None], data_type):
        right = values_of(getattr(col("a"), name)(lit(constant, data_type)), table)
        assert right == expected(ORACLE[name], [(value, constant) for value in edges]), constant
        left = values_of(getattr(lit(constant, data_type), name)(col("a")), table)
        assert left == expected(ORACLE[name], [(constant, value) for value in edges]), constant
    assert values_of(getattr(col("a"), name)(lit(None, data_type)), table) == [None] * len(edges)


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_between_is_in_and_when_follow_the_same_order(data_type):
    edges = stored(EDGES, data_type)
    table = pa.table({"a": pa.array(edges, data_type)})
    known = [edge for edge in edges if edge is not None]
    for lower in known:
        for upper in known:
            wanted = [None if v is None else place(lower) <= place(v) <= place(upper) for v in edges]
            assert values_of(col("a").between(lower, upper), table) == wanted
        wanted = [None if value is None else place(value) == place(lower) for value in edges]
        assert values_of(col("a").is_in(lower), table) == wanted
        assert values_of(col("a").is_in([lower, None]), table) == [found or None for found in wanted]
        assert values_of(when(col("a") == lower).then(1).otherwise(0), table) == [int(bool(found)) for found in wanted]
