"""Holding a function against DuckDB or plain Python over values that are at the edge of their types."""

import math
from decimal import Decimal

import duckdb
import pyarrow as pa

from engine.expressions.evaluate import evaluate

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INTEGERS = [0, 1, -1, 2, -7, 63, 64, 1000, 2**31 - 1, -(2**31), 2**53 + 1, INT64_MAX, INT64_MIN + 1, None]
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-300, 1e15 + 0.5, -1e300, math.inf, -math.inf, math.nan, None]
DECIMALS = [Decimal("0.00"), Decimal("1.25"), Decimal("-1.25"), Decimal("99.99"), Decimal("-0.05"), None]
TEXTS = [
    "",
    " ",
    "a",
    "abc",
    "ABC",
    "a,b,,c",
    "straße",
    "añ😀",
    "e\u0301",
    "日本語",
    "a\nb",
    "%_\\",
    "  x ",
    "-12",
    None,
]


def compute(expression, **columns):
    """Return what an expression is over columns, as an Arrow array."""
    arrays = [one if isinstance(one, pa.Array) else pa.array(one) for one in columns.values()]
    return evaluate(expression.expression, pa.RecordBatch.from_arrays(arrays, list(columns)))


def values(expression, **columns):
    """Return what an expression is over columns, as Python's values."""
    return compute(expression, **columns).to_pylist()


def by_duckdb(query, **columns):
    """Return what a SQL expression is over columns, in DuckDB, as Python's values."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("t", pa.table(columns))
    return connection.sql(f"SELECT {query} AS found FROM t").to_arrow_table().column(0).to_pylist()


def same(found, expected, tolerance=0.0):
    """Require equal values: NaN equals NaN, floats within a relative tolerance, null only null."""
    assert len(found) == len(expected)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert (one is None) == (other is None), (index, found, expected)
        if isinstance(one, float) and isinstance(other, float) and math.isfinite(one) and math.isfinite(other):
            assert one == other or abs(one - other) <= tolerance * abs(other), (index, one, other)
        elif isinstance(one, float) and math.isnan(one):
            assert math.isnan(other), (index, one, other)
        else:
            assert one == other, (index, one, other)
