"""Joins of data sets: what a condition may say, what null_aware goes with, which names may clash."""

import pyarrow as pa
import pytest

from engine.column_expressions.expressions import col
from engine.errors import SchemaError
from engine.graph.plan import Join, decode_plan, encode_plan
from engine.graph.said_operators import JoinType
from engine.lowering.logical_node import build_plan

LEFT = pa.schema([("k", pa.int32()), ("low", pa.int64()), ("x", pa.string())])
RIGHT = pa.schema([("k", pa.int64()), ("high", pa.float64()), ("y", pa.string())])


@pytest.fixture
def left(env):
    return env.from_rows([(1, 1, "a")], LEFT)


@pytest.fixture
def right(env):
    return env.from_rows([(1, 1.0, "b")], RIGHT)


def join_of(data_set):
    plan = build_plan([data_set._node], "test")
    assert decode_plan(encode_plan(plan)) == plan
    (join,) = [node.operator for node in plan.nodes if isinstance(node.operator, Join)]
    return join


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_a_condition_sees_the_columns_of_both_sides_and_the_key(left, right, how):
    condition = (col("low") < col("high")) & (col("k") > 0)
    join = join_of(left.join(right, on="k", how=how, condition=condition))
    assert join.condition == condition.expression
    assert not join.null_aware


def test_a_cross_join_takes_a_condition_and_no_keys(left, right):
    crossed = left.join(right.rename(k="k2"), how="cross", condition=col("low") < col("high"))
    assert crossed.columns == ["k", "low", "x", "k2", "high", "y"]
    join = join_of(crossed)
    assert (join.left_keys, join.right_keys) == ((), ())


def test_a_condition_alone_makes_a_cross_join_and_other_types_get_one_key_that_all_rows_share(left, right):
    other = right.rename(k="k2")
    condition = col("low") < col("high")
    assert join_of(left.join(other, condition=condition)).how is JoinType.CROSS
    assert len(join_of(left.join(other, how="left", condition=condition)).left_keys) == 1
    assert left.join(other, how="left", condition=condition).columns == ["k", "low", "x", "k2", "high", "y"]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (col("low") + 1, "is int64; a condition must be a bool"),
        (col("lov") < 1, "did you mean 'low'?"),
        ("low < high", "expected an expression such as"),
        (True, "expected an expression such as"),
        (col("x") < col("low"), "string"),
    ],
)
def test_a_condition_that_is_none_is_refused(left, right, condition, message):
    with pytest.raises(SchemaError) as error:
        left.join(right, on="k", condition=condition)
    assert message in str(error.value)


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_column_of_both_sides_may_stay_where_only_the_left_comes_out_but_not_in_a_condition(left, right, how):
    other = right.rename(y="x")
    assert left.join(other, on="k", how=how).columns == LEFT.names
    with pytest.raises(SchemaError, match=r"condition: both sides have a column 'x'; rename\(\)"):
        left.join(other, on="k", how=how, condition=col("x") == "a")


def test_a_clash_of_names_says_rename(left, right):
    with pytest.raises(SchemaError, match=r"both sides have a column 'x'; rename\(\) or drop\(\)"):
        left.join(right.rename(y="x"), on="k")
    with pytest.raises(SchemaError, match="both sides have a column 'k'"):
        left.join(right, how="cross")


def test_a_clash_of_two_types_is_told_as_one_of_names(left, right):
    other = right.rename(y="x").with_columns(x=col("x").is_null())
    with pytest.raises(SchemaError, match=r"both sides have a column 'k', 'x'; rename\(\)"):
        left.join(other, how="cross")


def test_columns_of_both_sides_come_out_as_they_are(left, right):
    joined = left.join(right.rename(k="j"), how="cross")
    assert joined.schema.equals(pa.schema([*left.schema, *right.rename(k="j").schema]), check_metadata=True)


def test_null_aware_goes_with_an_anti_join(left, right):
    assert join_of(left.join(right, on="k", how="anti", null_aware=True)).null_aware
    with pytest.raises(SchemaError, match="NOT IN and goes with how='anti', not 'left'"):
        left.join(right, on="k", how="left", null_aware=True)
    with pytest.raises(SchemaError, match="give one of them"):
        left.join(right, on="k", how="anti", null_aware=True, null_safe=True)


@pytest.mark.parametrize(
    ("how", "side"), [("inner", "left"), ("left", "left"), ("right", "right"), ("full", "widened")]
)
def test_a_key_has_the_type_of_the_side_whose_values_it_has(left, right, how, side):
    found = left.join(right, on="k", how=how).schema.field("k").type
    assert found == {"left": left.schema.field("k").type, "right": right.schema.field("k").type}.get(side, pa.int64())


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_left_that_comes_out_alone_keeps_its_types(left, right, how):
    assert left.join(right, on="k", how=how).schema == left.schema
