"""asof_join: what may be said of it, and what the plan holds then."""

import datetime
import decimal

import pyarrow as pa
import pytest

from engine.column_expressions.expressions import col
from engine.errors import SchemaError
from engine.graph.plan import AsofJoin, decode_plan, encode_plan
from engine.graph.said_operators import AsofDirection
from engine.lowering.logical_node import build_plan

LEFT = pa.schema([("g", pa.string()), ("t", pa.timestamp("ms")), ("d", pa.decimal128(9, 2)), ("x", pa.int64())])
RIGHT = pa.schema([("g", pa.string()), ("t", pa.timestamp("us")), ("d", pa.decimal128(9, 2)), ("y", pa.int64())])


@pytest.fixture
def left(env):
    return env.from_rows([], LEFT)


@pytest.fixture
def right(env):
    return env.from_rows([], RIGHT)


def asof_of(data_set):
    plan = build_plan([data_set._node], "test")
    assert decode_plan(encode_plan(plan)) == plan
    (join,) = [node.operator for node in plan.nodes if isinstance(node.operator, AsofJoin)]
    return join


def test_what_is_said_is_in_the_plan(left, right):
    joined = left.asof_join(
        right.drop("d"), on="t", by="g", direction="nearest", tolerance="2 s", allow_exact_matches=False
    )
    assert joined.columns == ["g", "t", "d", "x", "y"]
    assert joined.schema.field("t").type == pa.timestamp("ms")
    time = ("__t_as_timestamp_us", "__right_t")
    assert asof_of(joined) == AsofJoin(("g",), ("__right_g",), *time, AsofDirection.NEAREST, True, 2_000_000)


@pytest.mark.parametrize(
    ("column", "tolerance", "units"),
    [("d", "1.25", 125), ("x", 3, 3), ("t", datetime.timedelta(hours=1), 3_600_000), ("t", 0, 0)],
)
def test_a_tolerance_is_in_units_of_the_column(left, column, tolerance, units):
    other = left.select(column)
    assert asof_of(left.asof_join(other.with_columns(n=col(column)), on=column, tolerance=tolerance)).tolerance == units


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither given"),
        ({"left_on": "t"}, "left_on given"),
        ({"on": ["t", "x"]}, "one column"),
        ({"on": "t", "direction": "sideways"}, "choose one of backward, forward, nearest"),
        ({"on": "g", "direction": "nearest"}, "string has no distances"),
        ({"on": "g", "tolerance": 1}, "string has no distances"),
        ({"on": "t", "by": "g", "tolerance": "-1 s"}, "is not negative"),
        ({"on": "t", "by": "g", "tolerance": 5}, "say which unit"),
        ({"on": "t", "by": "g", "tolerance": [1]}, "is no distance"),
        ({"on": "d", "by": "g", "tolerance": decimal.Decimal(10**17)}, "too far; leave it out"),
        ({"on": "d", "by": "g", "tolerance": 10**40}, "is too far"),
        ({"on": "t", "by": "h"}, "no column 'h'"),
        ({"on": "t", "by": "g"}, "both sides have a column 'd'"),
        ({"left_on": "x", "right_on": "t"}, "no common type"),
    ],
)
def test_what_makes_no_sense_is_refused(left, right, options, message):
    with pytest.raises(SchemaError) as error:
        left.asof_join(right, **options)
    assert message in str(error.value)


def test_a_suffix_is_put_behind_names_of_both_sides(left, right):
    joined = left.asof_join(right, left_on="t", right_on="t", by="g", suffix="_r")
    assert joined.columns == ["g", "t", "d", "x", "t_r", "d_r", "y"]
    assert asof_of(joined).right_on == "t_r"


def test_columns_of_keys_that_are_expressions_do_not_come_out(left, right):
    other = right.select("t", "y").rename(t="u")
    joined = left.asof_join(other, left_on=col("t").dt.truncate("day"), right_on="u", by=None)
    assert joined.columns == ["g", "t", "d", "x", "u", "y"]
