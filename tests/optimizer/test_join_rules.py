"""What moves below a join of each type, what its condition becomes, and how many rows are expected of it."""

from __future__ import annotations

import pytest

from engine.graph.expression import conjuncts
from engine.graph.plan import Filter, Join, Source
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, lit, schema

LEFT, RIGHT = schema(k="int64", a="int64", unused="int64"), schema(k="int64", b="int64", extra="int64")
WITH_KEYS = [how for how in JoinType if how is not JoinType.CROSS]


def filtered_sources(plan):
    """Texts of the predicates over each source, and of what is left in the join's condition."""
    found = {}
    for node in plan.nodes:
        if isinstance(node.operator, Filter) and isinstance(plan.node(node.inputs[0]).operator, Source):
            found[plan.node(node.inputs[0]).operator.spec.paths[0]] = conjuncts(node.operator.predicate)
    (join,) = [node.operator for node in plan.nodes if isinstance(node.operator, Join)]
    rest = () if join.condition is None else conjuncts(join.condition)
    return found.get("left", ()), found.get("right", ()), rest


def two(left_columns=None, right_columns=None):
    builder = Builder()
    builder.source(LEFT, rows=10_000, path="left", columns=left_columns)
    builder.source(RIGHT, rows=1000, path="right", columns=right_columns)
    return builder


@pytest.mark.parametrize("how", WITH_KEYS)
def test_a_predicate_over_a_coalesced_key_filters_both_sides_of_every_join(how):
    builder = two()
    builder.sink(builder.filter(builder.join(0, 1, on="k", how=how), call("greater", "k", lit(3))))
    part = call("greater", "k", lit(3))
    assert filtered_sources(rewrite(builder.plan())) == ((part,), (part,), ())


def test_the_right_of_a_null_aware_join_keeps_its_nulls():
    builder = two()
    joined = builder.join(0, 1, on="k", how=JoinType.ANTI, null_aware=True)
    builder.sink(builder.filter(joined, call("greater", "k", lit(3))))
    assert filtered_sources(rewrite(builder.plan())) == ((call("greater", "k", lit(3)),), (), ())


OVER_LEFT, OVER_RIGHT = call("less", "a", lit(5)), call("less", "b", lit(5))
OVER_BOTH, OVER_KEY = call("less", "a", "b"), call("greater", "k", lit(0))


@pytest.mark.parametrize(
    ("how", "to_left", "to_right", "rest"),
    [
        (JoinType.INNER, (OVER_LEFT, OVER_KEY), (OVER_RIGHT, OVER_KEY), (OVER_BOTH,)),
        (JoinType.LEFT, (), (OVER_RIGHT, OVER_KEY), (OVER_LEFT, OVER_BOTH)),
        (JoinType.RIGHT, (OVER_LEFT, OVER_KEY), (), (OVER_RIGHT, OVER_BOTH)),
        (JoinType.FULL, (), (), (OVER_LEFT, OVER_RIGHT, OVER_BOTH, OVER_KEY)),
        (JoinType.SEMI, (OVER_LEFT, OVER_KEY), (OVER_RIGHT, OVER_KEY), (OVER_BOTH,)),
        (JoinType.ANTI, (), (OVER_RIGHT, OVER_KEY), (OVER_LEFT, OVER_BOTH)),
    ],
)
def test_parts_of_a_condition_over_one_side_become_filters_where_that_is_right(how, to_left, to_right, rest):
    builder = two()
    condition = call("and", OVER_LEFT, call("and", OVER_RIGHT, call("and", OVER_BOTH, OVER_KEY)))
    builder.sink(builder.join(0, 1, on="k", how=how, condition=condition))
    assert filtered_sources(rewrite(builder.plan())) == (to_left, to_right, rest)


def crossed(predicate, *, as_condition, types=("int64", "int64")):
    builder = Builder()
    left = builder.source(schema(k=types[0], a="int64"), path="left")
    right = builder.source(schema(j=types[1], b="int64"), path="right")
    joined = builder.join(left, right, how=JoinType.CROSS, condition=predicate if as_condition else None)
    builder.sink(joined if as_condition else builder.filter(joined, predicate))
    plan = rewrite(builder.plan())
    assert rewrite(plan) == plan
    (join,) = [node for node in plan.nodes if isinstance(node.operator, Join)]
    assert join.schema.names == ("k", "a", "j", "b")
    return plan, join.operator


@pytest.mark.parametrize("as_condition", [False, True])
def test_a_cross_join_with_an_equality_is_an_inner_join(as_condition):
    predicate = call("and", call("equal", "j", "k"), call("and", OVER_BOTH, call("less", "b", lit(5))))
    plan, join = crossed(predicate, as_condition=as_condition)
    assert (join.how, join.left_keys, join.right_keys) == (JoinType.INNER, ("k",), ("j",))
    assert not join.coalesce_keys
    assert filtered_sources(plan) == ((), (OVER_RIGHT,), (OVER_BOTH,))


@pytest.mark.parametrize("as_condition", [False, True])
def test_a_filter_over_both_sides_is_asked_before_a_cross_joins_pairs_are_made(as_condition):
    plan, join = crossed(OVER_BOTH, as_condition=as_condition)
    assert (join.how, join.condition) == (JoinType.CROSS, OVER_BOTH)
    assert not [node for node in plan.nodes if isinstance(node.operator, Filter)]


def test_an_equality_of_floats_is_a_key_as_they_are_equal_in_one_way_only():
    _, join = crossed(call("equal", "k", "j"), as_condition=True, types=("double", "double"))
    assert (join.how, join.left_keys) == (JoinType.INNER, ("k",))


@pytest.mark.parametrize("types", [("int64", "int32"), ("string", "int64")])
def test_what_is_equal_otherwise_than_keys_are_stays_a_condition(types):
    _, join = crossed(call("equal", "k", "j"), as_condition=True, types=types)
    assert (join.how, join.left_keys) == (JoinType.CROSS, ())


def test_a_column_is_a_key_once():
    predicate = call("and", call("equal", "k", "j"), call("equal", "k", "b"))
    _, join = crossed(predicate, as_condition=True)
    assert (join.left_keys, join.right_keys, join.condition) == (("k",), ("j",), call("equal", "k", "b"))


def test_a_part_of_a_condition_that_can_raise_stays():
    builder = two()
    condition = call("greater", call("divide", lit(6), "a"), lit(2))
    builder.sink(builder.join(0, 1, on="k", condition=condition))
    assert filtered_sources(rewrite(builder.plan())) == ((), (), (condition,))


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.SEMI, JoinType.ANTI, JoinType.FULL])
def test_columns_of_a_condition_are_read_and_dropped_behind_the_join(how):
    builder = two()
    joined = builder.join(0, 1, on="k", how=how, condition=OVER_BOTH)
    builder.sink(builder.project(joined, "k"))
    optimized = optimize(builder.plan(), OptimizerSettings(parallelism=2))
    plan = optimized.plan
    assert [node.operator.spec.columns for node in plan.nodes if isinstance(node.operator, Source)] == [
        ("k", "a"),
        ("k", "b"),
    ]
    (join,) = [node for node in optimized.nodes if node.alternative]
    expected = ("k", "__right0") if how is JoinType.FULL else ("k",)
    assert join.descriptor.output_schema.names == expected


def test_a_full_join_whose_key_nobody_uses_coalesces_nothing():
    builder = two()
    builder.sink(builder.project(builder.join(0, 1, on="k", how=JoinType.FULL), "b"))
    (join,) = [node for node in optimize(builder.plan(), OptimizerSettings()).nodes if node.alternative]
    assert join.descriptor.output_schema.names == ("b",)


def expected_rows(how, condition=None, left=None, right=None):
    builder = two({"k": ColumnStatistics(left)}, {"k": ColumnStatistics(right)})
    builder.sink(builder.join(0, 1, on="k", how=how, condition=condition))
    (join,) = [node for node in optimize(builder.plan(), OptimizerSettings()).nodes if node.alternative]
    assert join.estimates.size_bytes == pytest.approx(
        join.estimates.rows * join.descriptor.output_schema.row_width_bytes, rel=0.5
    )
    return join.estimates.rows, join.estimates.origin


@pytest.mark.parametrize(
    ("how", "rows"),
    [
        (JoinType.INNER, 10_000 / 2),
        (JoinType.LEFT, 10_000),
        (JoinType.RIGHT, 10_000 / 2),
        (JoinType.FULL, 10_000),
        (JoinType.SEMI, 10_000 * 0.5 / 2),
        (JoinType.ANTI, 10_000 * (1 - 0.5 / 2)),
    ],
)
def test_a_condition_lets_fewer_pairs_through_and_outer_rows_stay(how, rows):
    found, origin = expected_rows(how, OVER_BOTH)
    assert found == pytest.approx(rows)
    assert "0.5 of the pairs: default for less of columns" in origin


@pytest.mark.parametrize(("how", "rows"), [(JoinType.SEMI, 2000), (JoinType.ANTI, 8000)])
def test_known_distinct_keys_say_how_many_left_rows_find_a_match(how, rows):
    found, origin = expected_rows(how, left=500, right=100)
    assert found == pytest.approx(rows)
    assert "distinct keys" in origin


@pytest.mark.parametrize(("left_rows", "share"), [(1000, 0.5), (3000, 0.75), (1_000_000, 0.8), (1, 0.2)])
def test_the_larger_side_of_a_sort_merge_join_gets_more_of_its_memory(left_rows, share):
    builder = Builder()
    builder.source(LEFT, rows=left_rows, path="left")
    builder.source(RIGHT, rows=1000, path="right")
    builder.sink(builder.join(0, 1, on="k", hint=JoinHint.REPARTITION_SORT_MERGE))
    (join,) = [node for node in optimize(builder.plan(), OptimizerSettings()).nodes if node.alternative]
    assert join.descriptor.operator.left_share == share
