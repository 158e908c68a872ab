"""Choices between values agree with DuckDB over types and nulls."""

import datetime
import math
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from engine import DataError, SchemaError, coalesce, col, greatest, least, lit
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import FLOATS, by_duckdb, compute, same, values

X, Y = col("x"), col("y")
KINDS = {
    "integers": ([1, 2, -(2**63), None], pa.int64()),
    "floats": ([1.5, -0.0, math.inf, math.nan, None], pa.float64()),
    "texts": (["", "a", "ß", "😀", None], pa.string()),
    "binaries": ([b"", b"\xff", None], pa.binary()),
    "bools": ([True, False, None], pa.bool_()),
    "dates": ([datetime.date(2024, 2, 29), datetime.date(1969, 1, 1), None], pa.date32()),
    "moments": ([datetime.datetime(2024, 2, 29, 1), None], pa.timestamp("us")),
    "decimals": ([Decimal("1.25"), Decimal("-7.00"), None], pa.decimal128(5, 2)),
}
FUNCTIONS = {
    "coalesce": (coalesce(X, Y), "coalesce(x, y)"),
    "if_null": (X.if_null(Y), "ifnull(x, y)"),
    "nullif": (X.nullif(Y), "nullif(x, y)"),
    "least": (least(X, Y), "least(x, y)"),
    "greatest": (greatest(X, Y), "greatest(x, y)"),
    "eq_null_safe": (X.eq_null_safe(Y), "x IS NOT DISTINCT FROM y"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_choices_agree_with_duckdb(function, kind):
    some, data_type = KINDS[kind]
    pairs = list(product(some, some))
    columns = {name: pa.array([pair[place] for pair in pairs], data_type) for place, name in enumerate("xy")}
    expression, query = FUNCTIONS[function]
    same(values(expression, **columns), by_duckdb(query, **columns))


def test_arguments_widen_to_their_common_type():
    assert compute(least(X, Y, 2), x=pa.array([1], pa.int8()), y=[1.5]).to_pylist() == [1.0]
    assert compute(coalesce(X, 2.5), x=pa.array([None], pa.int64())).type == pa.float64()
    found = compute(X.nullif(Y), x=pa.array([1, 2], pa.int8()), y=[1.0, 1.0])
    assert found.type == pa.int8()
    assert found.to_pylist() == [None, 2]
    assert values(X.nullif(2.0), x=[1, 2, None]) == [1, None, None]
    assert values(greatest(X), x=[1, None]) == [1, None]


def test_not_a_number_is_the_greatest_number_and_null_is_passed_over():
    largest = [1.0 if one is None else one if one != one else max(one, 1.0) for one in FLOATS]
    same(values(greatest(X, 1.0), x=FLOATS), largest)
    smallest = [1.0 if one is None or one != one else min(one, 1.0) for one in FLOATS]
    same(values(least(X, 1.0), x=FLOATS), smallest)


def test_a_condition_that_must_hold_fails_with_its_message_where_it_is_false_or_null():
    expression = X.require(Y > 0, "prices are above zero")
    assert values(expression, x=["a", None], y=[1, 2]) == ["a", None]
    assert values(expression, x=pa.array([], pa.string()), y=pa.array([], pa.int64())) == []
    for bad in (0, None):
        with pytest.raises(DataError, match=r"prices are above zero; in a row with x='b', y="):
            values(expression, x=["a", "b"], y=[1, bad])
    with pytest.raises(DataError, match="never"):
        values(X.require(lit(False), "never"), x=[1])


@pytest.mark.parametrize(
    ("data_type", "constant", "found"),
    [
        (pa.int8(), 7, 7),
        (pa.uint8(), 255, 255),
        (pa.int32(), 2.0, 2),
        (pa.float32(), 0.5, 0.5),
        (pa.float64(), 7, 7.0),
        (pa.decimal128(10, 2), 7, Decimal("7.00")),
        (pa.decimal128(10, 2), 0.5, Decimal("0.50")),
        (pa.date32(), "2024-02-29", datetime.date(2024, 2, 29)),
        (pa.date32(), datetime.datetime(2024, 2, 29), datetime.date(2024, 2, 29)),
        (pa.timestamp("ns"), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29)),
        (pa.large_string(), "x", "x"),
        (pa.list_(pa.int32()), [1], [1]),
        (pa.list_(pa.int32()), [], []),
        (pa.int8(), None, None),
    ],
)
def test_a_constant_in_place_of_nulls_gets_the_type_of_the_value(data_type, constant, found):
    column = pa.nulls(2, data_type)
    made = compute(X.fill_null(constant), x=column)
    assert (made.type, made.to_pylist()) == (data_type, [found] * 2)
    assert compute(X.fill_null(Y), x=pa.nulls(1, pa.int8()), y=[7]).type == pa.int64()


@pytest.mark.parametrize(
    ("data_type", "constant"),
    [
        (pa.int8(), 300),
        (pa.int32(), 0.5),
        (pa.float32(), 1e300),
        (pa.decimal128(3, 2), 10),
        (pa.decimal128(10, 2), 0.555),
        (pa.date32(), datetime.datetime(2024, 2, 29, 1)),
    ],
)
def test_a_constant_that_does_not_fit_in_place_of_nulls_is_refused(data_type, constant):
    with pytest.raises(SchemaError, match=r"does not fit into .*: cast the column first"):
        infer_type(X.fill_null(constant).expression, pa.schema({"x": data_type}))


def test_types_without_a_common_one_are_refused():
    schema = pa.schema({"x": pa.int64(), "y": pa.string()})
    for expression in (coalesce(X, Y), least(X, Y), X.nullif(Y), X.eq_null_safe(Y), X.fill_null("a")):
        with pytest.raises(SchemaError, match="they have no common type: cast"):
            infer_type(expression.expression, schema)
    with pytest.raises(SchemaError, match="at least one value"):
        least()
