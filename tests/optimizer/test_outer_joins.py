"""Outer joins whose rows without a match are dropped above them, and those whose rows are not."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.plan import Join, Plan
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinType
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.plan_building import Builder, call, column, lit, schema

LEFT, RIGHT, THIRD = schema(x="int64", a="int64"), schema(y="int64", b="int64"), schema(z="int64", c="int64")
INNER, SEMI, ANTI = JoinType.INNER, JoinType.SEMI, JoinType.ANTI


def kinds(plan: Plan) -> list[JoinType]:
    """Return the kinds of the joins of x and y, in a plan that was rewritten."""
    joins = [node.operator for node in rewrite(plan).nodes if isinstance(node.operator, Join)]
    return [join.how for join in joins if {*join.left_keys, *join.right_keys} == {"x", "y"}]


def outer(how: JoinType) -> tuple[Builder, int]:
    """Return a plan with a join of x and y, and its id."""
    builder = Builder()
    left, right = builder.source(LEFT, path="left"), builder.source(RIGHT, path="right")
    return builder, builder.join(left, right, how=how, left_on="x", right_on="y")


def under(how: JoinType, key: str, above: JoinType, as_left: bool = True, **rest) -> Plan:
    """Return a plan of a join by a key of the outer one below it."""
    builder, below = outer(how)
    third = builder.source(THIRD, path="third")
    sides = (below, third, key, "z") if as_left else (third, below, "z", key)
    builder.sink(builder.join(*sides[:2], how=above, left_on=sides[2], right_on=sides[3], **rest))
    return builder.plan()


@pytest.mark.parametrize(
    ("how", "key", "narrowed"),
    [
        (JoinType.LEFT, "b", INNER),
        (JoinType.LEFT, "y", INNER),
        (JoinType.LEFT, "a", JoinType.LEFT),
        (JoinType.RIGHT, "a", INNER),
        (JoinType.RIGHT, "b", JoinType.RIGHT),
        (JoinType.FULL, "a", JoinType.LEFT),
        (JoinType.FULL, "b", JoinType.RIGHT),
        (ANTI, "a", ANTI),
    ],
)
def test_a_join_above_drops_the_rows_without_a_match(how, key, narrowed):
    assert kinds(under(how, key, INNER)) == [narrowed]


@pytest.mark.parametrize("above", [how for how in JoinType if how is not JoinType.CROSS])
def test_only_joins_that_return_no_row_with_a_null_key_drop_it(above):
    drops_left = above in (INNER, SEMI, JoinType.RIGHT)
    drops_right = above in (INNER, SEMI, ANTI, JoinType.LEFT)
    assert kinds(under(JoinType.LEFT, "b", above)) == [INNER if drops_left else JoinType.LEFT]
    assert kinds(under(JoinType.LEFT, "b", above, as_left=False)) == [INNER if drops_right else JoinType.LEFT]


def test_a_null_key_of_not_in_is_looked_at():
    assert kinds(under(JoinType.LEFT, "b", ANTI, as_left=False, null_aware=True)) == [JoinType.LEFT]


@pytest.mark.parametrize(
    ("predicate", "narrowed"),
    [
        (call("less", "b", lit(5)), INNER),
        (call("equal", "b", "a"), INNER),
        (call("and", call("less", "b", lit(5)), call("less", "a", lit(5))), INNER),
        (call("or", call("less", "b", lit(5)), call("less", "a", lit(5))), JoinType.LEFT),
        (call("is_null", "b"), JoinType.LEFT),
        (call("less", "a", lit(5)), JoinType.LEFT),
        (call("less", call("add", lit(1), "b"), lit(5)), INNER),
        (call("greater", call("coalesce", "b", lit(0)), lit(5)), INNER),
        (call("greater", lit(-5), call("fill_null", "b", lit(0))), INNER),
        (call("less", call("coalesce", "b", lit(0)), lit(5)), JoinType.LEFT),
        (call("less", call("coalesce", "b", "a"), lit(5)), JoinType.LEFT),
        (call("less", call("add", call("coalesce", "b", lit(0)), lit(1)), lit(0)), JoinType.LEFT),
        (call("greater", call("coalesce", "b", lit(9)), lit(5)), JoinType.LEFT),
    ],
)
def test_a_comparison_drops_them_too(predicate, narrowed):
    builder, below = outer(JoinType.LEFT)
    builder.sink(builder.filter(below, predicate))
    assert kinds(builder.plan()) == [narrowed]


def test_a_column_is_followed_through_what_keeps_its_rows():
    builder, below = outer(JoinType.LEFT)
    renamed = builder.project(below, "x", "b")
    grouped = builder.aggregate(builder.sort(renamed, "x"), ("b",), ("count", "x"))
    third = builder.source(THIRD, path="third")
    builder.sink(builder.join(grouped, third, how=INNER, left_on="b", right_on="z"))
    assert kinds(builder.plan()) == [INNER]


def test_a_column_is_followed_through_sums_of_it():
    builder, below = outer(JoinType.LEFT)
    kept = builder.project(below, "x", (column("twice"), call("multiply", "b", lit(2))))
    builder.sink(builder.sort(builder.filter(kept, call("less", "twice", lit(5))), "x"))
    assert kinds(builder.plan()) == [INNER]


def test_both_inputs_of_a_union_lose_such_rows():
    builder, first = outer(JoinType.LEFT)
    left, right = builder.source(LEFT, path="left 2"), builder.source(RIGHT, path="right 2")
    second = builder.join(left, right, how=JoinType.LEFT, left_on="x", right_on="y")
    third = builder.source(THIRD, path="third")
    builder.sink(builder.join(builder.union(first, second), third, how=INNER, left_on="b", right_on="z"))
    assert kinds(builder.plan()) == [INNER, INNER]


def test_another_reader_and_the_first_rows_of_an_order_keep_the_join_as_it_is():
    builder, below = outer(JoinType.LEFT)
    third = builder.source(THIRD, path="third")
    builder.sink(builder.join(below, third, how=INNER, left_on="b", right_on="z"))
    builder.sink(below)
    assert kinds(builder.plan()) == [JoinType.LEFT]
    builder, below = outer(JoinType.LEFT)
    first = builder.sort(below, "x", limit=10)
    third = builder.source(THIRD, path="third")
    builder.sink(builder.join(first, third, how=INNER, left_on="b", right_on="z"))
    assert kinds(builder.plan()) == [JoinType.LEFT]


@pytest.mark.parametrize("how", [JoinType.RIGHT, JoinType.FULL])
def test_the_one_key_column_of_both_sides_has_the_values_of_either(how):
    builder = Builder()
    left, right = builder.source(schema(x="int64", a="int64")), builder.source(schema(x="int64", b="int64"))
    below = builder.join(left, right, on="x", how=how)
    third = builder.source(THIRD, path="third")
    builder.sink(builder.join(below, third, how=INNER, left_on="x", right_on="z"))
    joins = [node.operator for node in rewrite(builder.plan()).nodes if isinstance(node.operator, Join)]
    assert how in [join.how for join in joins]


def columns_of_plan(plan: Plan) -> list[str]:
    """Return the columns that the sink of a plan takes, in order."""
    return rewrite(plan).nodes[-1].schema.names


@pytest.mark.parametrize(
    ("predicate", "narrowed"),
    [
        (call("is_null", "y"), ANTI),
        (call("and", call("is_null", "y"), call("less", "a", lit(5))), ANTI),
        (call("and", call("is_null", "y"), call("is_null", "a")), ANTI),
        (call("is_null", "b"), JoinType.LEFT),  # of a row with a match it may be null, too
        (call("or", call("is_null", "y"), call("less", "a", lit(5))), JoinType.LEFT),
        (call("is_null", "x"), JoinType.LEFT),
        (call("is_null", call("add", "y", lit(1))), JoinType.LEFT),
    ],
)
def test_a_left_join_that_leaves_rows_without_a_match_alone_is_an_anti_join(predicate, narrowed):
    builder, below = outer(JoinType.LEFT)
    builder.sink(builder.project(builder.filter(below, predicate), "a", "x"))
    assert kinds(builder.plan()) == [narrowed]


def test_a_column_of_the_right_that_is_never_null_tells_rows_without_a_match():
    right = PlanSchema(tuple(msgspec.structs.replace(each, nullable=False) for each in RIGHT.columns))
    builder = Builder()
    left, other = builder.source(LEFT, path="left"), builder.source(right, path="right")
    below = builder.join(left, other, how=JoinType.LEFT, left_on="x", right_on="y")
    builder.sink(builder.project(builder.filter(below, call("is_null", "b")), "a"))
    assert kinds(builder.plan()) == [ANTI]


def test_the_columns_of_the_right_that_are_asked_for_keep_the_left_join():
    builder, below = outer(JoinType.LEFT)
    builder.sink(builder.filter(below, call("is_null", "y")))
    assert kinds(builder.plan()) == [JoinType.LEFT]
    builder, below = outer(JoinType.LEFT)
    builder.sink(builder.project(builder.filter(below, call("is_null", "y")), "a", "y"))
    assert kinds(builder.plan()) == [ANTI]
    assert columns_of_plan(builder.plan()) == ("a", "y")
