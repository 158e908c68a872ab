"""What is said of a key on one side of a join is said of the key on the other side, where that changes nothing."""

from __future__ import annotations

import pytest

from engine.graph.expression import conjuncts
from engine.graph.plan import Filter, PartialAggregate, Plan, Source
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.explain import explain
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema

LEFT, RIGHT = schema(x="int64", a="int64"), schema(y="int64", b="int64")
SMALL_X, SMALL_Y = call("less", "x", lit(5)), call("less", "y", lit(5))
HOWS = [how for how in JoinType if how is not JoinType.CROSS]


def filters(plan: Plan) -> dict[str, tuple[object, ...]]:
    """Return the parts of the predicates over each source, by its path."""
    found = {}
    for node in plan.nodes:
        if isinstance(node.operator, Filter) and isinstance(plan.node(node.inputs[0]).operator, Source):
            found[plan.node(node.inputs[0]).operator.spec.paths[0]] = conjuncts(node.operator.predicate)
    return found


def two(left=None, right=None) -> Builder:
    """Return left and right, with a filter each if there is one; their ids are the last two."""
    builder = Builder()
    one = builder.source(LEFT, rows=10_000, path="left")
    other = builder.source(RIGHT, rows=1000, path="right")
    builder.sides = (
        one if left is None else builder.filter(one, left),
        other if right is None else builder.filter(other, right),
    )
    return builder


def joined(builder: Builder, how: JoinType, **rest) -> Builder:
    builder.sink(builder.join(*builder.sides, how=how, left_on="x", right_on="y", **rest))
    return builder


@pytest.mark.parametrize("how", HOWS)
def test_a_filter_of_the_left_key_filters_the_right_where_only_partners_count(how):
    moves = how in (JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI)
    found = filters(rewrite(joined(two(left=SMALL_X), how).plan()))
    assert found == {"left": (SMALL_X,), **({"right": (SMALL_Y,)} if moves else {})}


@pytest.mark.parametrize("how", HOWS)
def test_a_filter_of_the_right_key_filters_the_left_where_only_partners_count(how):
    moves = how in (JoinType.INNER, JoinType.RIGHT, JoinType.SEMI)
    found = filters(rewrite(joined(two(right=SMALL_Y), how).plan()))
    assert found == {"right": (SMALL_Y,), **({"left": (SMALL_X,)} if moves else {})}


def test_a_null_aware_join_looks_at_all_rows_of_its_right():
    found = filters(rewrite(joined(two(left=SMALL_X), JoinType.ANTI, null_aware=True).plan()))
    assert found == {"left": (SMALL_X,)}


@pytest.mark.parametrize(
    ("part", "moves"),
    [
        (call("equal", "x", lit(5)), True),
        (call("between", "x", lit(5), lit(7)), True),
        (call("is_in", "x", lit(5), lit(7)), True),
        (call("or", call("less", "x", lit(5)), call("equal", "x", lit(7))), True),
        (call("not_equal", "x", lit(5)), False),
        (call("is_not_null", "x"), False),
        (call("less", "x", "a"), False),
        (call("less", call("add", "x", lit(1)), lit(5)), False),
    ],
)
def test_comparisons_of_the_key_with_constants_move(part, moves):
    assert ("right" in filters(rewrite(joined(two(left=part), JoinType.INNER).plan()))) is moves


def test_what_is_known_of_both_keys_is_not_said_twice():
    found = filters(
        rewrite(joined(two(SMALL_X, call("and", SMALL_Y, call("equal", "b", lit(1)))), JoinType.INNER).plan())
    )
    assert found == {"left": (SMALL_X,), "right": (SMALL_Y, call("equal", "b", lit(1)))}


def test_a_key_that_is_equal_through_a_third_is_reached():
    builder = two(right=SMALL_Y)
    first = builder.join(*builder.sides, how=JoinType.INNER, left_on="x", right_on="y")
    third = builder.source(schema(z="int64"), rows=100, path="third")
    builder.sink(builder.join(first, third, how=JoinType.INNER, left_on="x", right_on="z"))
    found = filters(rewrite(builder.plan()))
    assert found == {"left": (SMALL_X,), "right": (SMALL_Y,), "third": (call("less", "z", lit(5)),)}


def test_keys_are_followed_through_names_and_groups():
    builder = two(left=SMALL_X)
    groups = builder.aggregate(builder.sides[1], ("y",), ("count_all", None))
    renamed = builder.project(groups, (column("key"), call_of("y")))
    builder.sink(builder.join(builder.sides[0], renamed, how=JoinType.INNER, left_on="x", right_on="key"))
    assert filters(rewrite(builder.plan())) == {"left": (SMALL_X,), "right": (SMALL_Y,)}


def call_of(name):
    """Return a column as an expression."""
    return call("same", name).arguments[0]


def test_a_column_that_an_outer_join_fills_with_nulls_says_nothing():
    """Rows of the left without a partner have no y, which is not less than 5."""
    builder = two(right=SMALL_Y)
    outer = builder.join(*builder.sides, how=JoinType.LEFT, left_on="x", right_on="y")
    third = builder.source(schema(z="int64"), rows=100, path="third")
    builder.sink(builder.join(outer, third, how=JoinType.LEFT, left_on="y", right_on="z"))
    assert "third" not in filters(rewrite(builder.plan()))


def test_explain_says_why_the_other_side_is_filtered():
    text = explain(optimize(joined(two(left=SMALL_X), JoinType.INNER).plan(), OptimizerSettings()))
    assert "; keys filtered as those on the other side: y < 5)" in text


def test_filters_are_followed_through_groups_that_are_made_before_a_join():
    builder = Builder()
    few = {"y": ColumnStatistics(distinct_count=4)}
    many = builder.filter(builder.source(RIGHT, rows=100_000, columns=few, path="right"), call("greater", "y", lit(1)))
    builder.sides = (builder.source(LEFT, rows=10, path="left"), many)
    joined_rows = builder.join(*builder.sides, how=JoinType.INNER, left_on="x", right_on="y")
    builder.sink(builder.aggregate(joined_rows, (), ("count_all", None)))
    once = rewrite(builder.plan())
    assert any(isinstance(node.operator, PartialAggregate) for node in once.nodes)
    assert rewrite(once) == once
