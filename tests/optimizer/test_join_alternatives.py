from __future__ import annotations

import pytest

from engine.errors import NotYetSupportedError, PlanError
from engine.graph.expression import ColumnRef
from engine.graph.plan import JoinHint, JoinType
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.join_alternatives import (
    BF,
    CORRECT_PAIRS,
    FB,
    FF,
    HH,
    LocalStrategy,
    Ship,
    ShipPair,
    enumerate_alternatives,
    local_variants,
    offered_alternatives,
)
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.interpreter import join_pairs
from tests.optimizer.plan_building import Builder, column, schema, skew_join

FOUR = OptimizerSettings(parallelism=4)
HASH, BROADCAST, FORWARD = ShipStrategy.PARTITION_HASH, ShipStrategy.BROADCAST, ShipStrategy.FORWARD
FIRST, SECOND = LocalStrategy.HASH_BUILD_FIRST, LocalStrategy.HASH_BUILD_SECOND


def chosen(plan, settings=FOUR):
    join = next(node for node in optimize(plan, settings).nodes if node.alternative)
    return (*(channel.ship_strategy for channel in join.inputs), join.strategy)


def test_a_join_has_nine_local_variants():
    variants = local_variants()
    assert len(variants) == len(set(variants)) == 9
    assert sum(variant.strategy is LocalStrategy.SORT_MERGE for variant in variants) == 1


@pytest.mark.parametrize("how", JoinType)
def test_no_alternative_is_enumerated_twice(how):
    alternatives = enumerate_alternatives(how)
    assert len(alternatives) == len(set(alternatives)) == 9 * len(CORRECT_PAIRS[how])


def ship(strategy: Ship, rows, key):
    """Rows of each of two subtasks: even rows begin in the first one."""
    if strategy is Ship.BROADCAST:
        return [rows, rows]
    if strategy is Ship.FORWARD:
        return [rows[0::2], rows[1::2]]
    return [[row for row in rows if (row[key] or 0) % 2 == subtask] for subtask in range(2)]


def pairs_of(how, lefts, rights):
    if how in (JoinType.SEMI, JoinType.ANTI):
        matched = [any(r["b"] is not None and r["b"] == left["a"] for r in rights) for left in lefts]
        return [(left, None) for left, hit in zip(lefts, matched, strict=True) if hit is (how is JoinType.SEMI)]
    if how is JoinType.CROSS:
        return [(left, right) for left in lefts for right in rights]
    found = join_pairs(JoinType.LEFT if how is JoinType.FULL else how, lefts, rights, ("a",), ("b",))
    if how is JoinType.FULL:
        outer = join_pairs(JoinType.RIGHT, lefts, rights, ("a",), ("b",))
        found += [pair for pair in outer if pair[0] is None]
    return found


@pytest.mark.parametrize("how", JoinType)
def test_the_truth_table_holds_exactly_the_pairs_that_are_right(how):
    lefts = [{"a": value, "x": row} for row, value in enumerate([1, 1, 2, 5, None, 3, 4])]
    rights = [{"b": value, "y": row} for row, value in enumerate([1, 2, 2, 4, None, 1, 6, 7])]
    expected = sorted(map(repr, pairs_of(how, lefts, rights)))
    right_pairs = set()
    for left_ship in Ship:
        for right_ship in Ship:
            if how is JoinType.CROSS and Ship.HASH in (left_ship, right_ship):
                continue
            parts = zip(ship(left_ship, lefts, "a"), ship(right_ship, rights, "b"), strict=True)
            found = [pair for left, right in parts for pair in pairs_of(how, left, right)]
            if sorted(map(repr, found)) == expected:
                right_pairs.add(ShipPair(left_ship, right_ship))
    # a broadcast against a hashed side is right for some types and never cheaper than against a side that stays
    wasteful = {ShipPair(Ship.HASH, Ship.BROADCAST), ShipPair(Ship.BROADCAST, Ship.HASH)}
    assert right_pairs - wasteful == set(CORRECT_PAIRS[how])


def test_the_broadcast_side_is_built():
    offered = {(each.pair, each.variant.strategy) for each in offered_alternatives(JoinType.INNER, one_subtask=False)}
    assert offered == {(HH, FIRST), (HH, SECOND), (BF, FIRST), (FB, SECOND)}
    offered = {each.pair for each in offered_alternatives(JoinType.LEFT, one_subtask=True)}
    assert offered == {FF}


def test_the_skewed_join_broadcasts_the_small_side_and_leaves_the_large_one():
    assert chosen(skew_join()) == (FORWARD, BROADCAST, SECOND)


def test_legacy_estimates_repartition_both_sides():
    assert chosen(skew_join(), OptimizerSettings(parallelism=4, legacy_estimates=True))[:2] == (HASH, HASH)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (JoinHint.BROADCAST_HASH_FIRST, (BROADCAST, FORWARD, FIRST)),
        (JoinHint.BROADCAST_HASH_SECOND, (FORWARD, BROADCAST, SECOND)),
        (JoinHint.REPARTITION_HASH_FIRST, (HASH, HASH, FIRST)),
        (JoinHint.REPARTITION_HASH_SECOND, (HASH, HASH, SECOND)),
    ],
)
def test_each_hint_forces_its_plan(hint, expected, legacy):
    assert chosen(skew_join(hint), OptimizerSettings(parallelism=4, legacy_estimates=legacy)) == expected


def test_hints_are_followed_with_one_subtask_too():
    one = OptimizerSettings(parallelism=1)
    assert chosen(skew_join(JoinHint.REPARTITION_HASH_FIRST), one) == (HASH, HASH, FIRST)
    assert chosen(skew_join(), one) == (FORWARD, FORWARD, SECOND)


def test_sort_merge_is_refused_by_name():
    with pytest.raises(NotYetSupportedError, match="REPARTITION_SORT_MERGE is not supported yet"):
        optimize(skew_join(JoinHint.REPARTITION_SORT_MERGE), FOUR)


def test_an_unknown_hint_is_an_error():
    with pytest.raises(PlanError, match="Unrecognized join hint: FASTEST"):
        optimize(skew_join("FASTEST"), FOUR)


@pytest.mark.parametrize("how", [JoinType.FULL, JoinType.SEMI, JoinType.ANTI, JoinType.CROSS])
def test_join_types_that_are_not_built_are_refused_by_name(how):
    with pytest.raises(NotYetSupportedError, match=how.value):
        optimize(skew_join(how=how), FOUR)


def test_a_hint_that_would_make_an_outer_join_wrong_is_refused():
    with pytest.raises(PlanError, match="BROADCAST_HASH_FIRST would make a left join wrong"):
        optimize(skew_join(JoinHint.BROADCAST_HASH_FIRST, JoinType.LEFT), FOUR)


def test_a_hash_partitioning_is_used_again():
    builder = Builder()
    wide = schema(k="int64", a="double", b="double")
    left = builder.source(wide, rows=5_000_000)
    groups = builder.aggregate(left, ("k",), ("sum", "a"))
    right = builder.source(schema(k="int64", c="double"), rows=5_000_000)
    builder.sink(builder.join(groups, right, on="k", hint=JoinHint.REPARTITION_HASH_FIRST))
    optimized = optimize(builder.plan(), FOUR)
    join = next(node for node in optimized.nodes if node.alternative)
    assert [channel.ship_strategy for channel in join.inputs] == [FORWARD, HASH]
    assert "already" in join.inputs[0].reason


def test_an_aggregate_after_a_repartitioned_join_by_its_key_needs_no_exchange():
    builder = Builder()
    left = builder.source(schema(k="int64", a="double"), rows=5_000_000)
    right = builder.source(schema(k="int64", c="double"), rows=5_000_000)
    joined = builder.join(left, right, on="k", hint=JoinHint.REPARTITION_HASH_FIRST)
    builder.sink(builder.aggregate(joined, ("k",), ("sum", "a")))
    optimized = optimize(builder.plan(), FOUR)
    (aggregate,) = [node for node in optimized.nodes if node.strategy in ("SINGLE", "FINAL")]
    assert (aggregate.strategy, aggregate.parallelism) == ("SINGLE", 4)


def test_an_outer_join_does_not_pretend_to_be_partitioned():
    # its rows with null keys were spread, so a group of nulls lies in several subtasks
    builder = Builder()
    left = builder.source(schema(k="int64", a="double"), rows=5_000_000)
    right = builder.source(schema(k="int64", c="double"), rows=5_000_000)
    joined = builder.join(left, right, on="k", how=JoinType.LEFT, hint=JoinHint.REPARTITION_HASH_FIRST)
    builder.sink(builder.aggregate(joined, ("k",), ("sum", "a")))
    strategies = {node.strategy for node in optimize(builder.plan(), FOUR).nodes}
    assert {"PARTIAL", "FINAL"} <= strategies


@pytest.mark.parametrize(("key", "strategy"), [("v", "SINGLE"), ("k", "FINAL")])
def test_a_partitioning_follows_its_columns_through_a_projection(key, strategy):
    builder = Builder()
    left = builder.source(schema(k="int64", a="int64"), rows=5_000_000)
    right = builder.source(schema(k="int64", c="int64"), rows=5_000_000)
    joined = builder.join(left, right, on="k", hint=JoinHint.REPARTITION_HASH_FIRST)
    swapped = builder.project(joined, (column("v"), ColumnRef("k")), (column("k"), ColumnRef("a")))
    builder.sink(builder.aggregate(swapped, (key,), ("count_all", None)))
    strategies = [node.strategy for node in optimize(builder.plan(), FOUR).nodes]
    assert strategy in strategies


def test_a_python_function_loses_the_partitioning():
    builder = Builder()
    left = builder.source(schema(k="int64", a="int64"), rows=5_000_000)
    right = builder.source(schema(k="int64", c="int64"), rows=5_000_000)
    joined = builder.join(left, right, on="k", hint=JoinHint.REPARTITION_HASH_FIRST)
    for kind, strategy in (("map", "FINAL"), ("filter", "SINGLE")):
        builder.sink(builder.aggregate(builder.python(joined, kind), ("k",), ("sum", "a")), kind)
        assert strategy in [node.strategy for node in optimize(builder.plan(), FOUR).nodes]
        builder.sinks.clear()
