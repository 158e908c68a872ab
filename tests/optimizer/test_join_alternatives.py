"""Alternatives of a join: the correct ones and no others, hints, and partitionings that are used again."""

from __future__ import annotations

import msgspec
import pytest

from engine.errors import PlanError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.expression import ColumnRef
from engine.graph.operator_descriptor import SortMergeJoinOperator, SourceOperator
from engine.graph.plan import Join
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import ShipStrategy
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.adaptive_facts import adaptive_join
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
from tests.optimizer.plan_building import Builder, call, column, lit, schema, skew_join

FOUR = OptimizerSettings(parallelism=4)
HASH, BROADCAST, FORWARD = ShipStrategy.PARTITION_HASH, ShipStrategy.BROADCAST, ShipStrategy.FORWARD
FIRST, SECOND, MERGE = LocalStrategy.HASH_BUILD_FIRST, LocalStrategy.HASH_BUILD_SECOND, LocalStrategy.SORT_MERGE


def chosen(plan, settings=FOUR):
    join = next(node for node in optimize(plan, settings).nodes if node.alternative)
    return (*(channel.ship_strategy for channel in join.inputs), join.strategy)


def test_a_join_has_nine_local_variants():
    variants = local_variants()
    assert len(variants) == len(set(variants)) == 9
    assert sum(variant.strategy is LocalStrategy.SORT_MERGE for variant in variants) == 1


@pytest.mark.parametrize("how", JoinType)
def test_no_alternative_is_enumerated_twice(how):
    alternatives = enumerate_alternatives(CORRECT_PAIRS[how])
    assert len(alternatives) == len(set(alternatives)) == 9 * len(CORRECT_PAIRS[how])


def ship(strategy: Ship, rows, key):
    """Rows of each of two subtasks: even rows begin in the first one."""
    if strategy is Ship.BROADCAST:
        return [rows, rows]
    if strategy is Ship.FORWARD:
        return [rows[0::2], rows[1::2]]
    return [[row for row in rows if (row[key] or 0) % 2 == subtask] for subtask in range(2)]


def pairs_of(how, lefts, rights):
    def meets(left, right):
        return how is JoinType.CROSS or (right["b"] is not None and right["b"] == left["a"])

    return join_pairs(how, lefts, rights, meets)


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


def offered(how, *, one_subtask=False, null_aware=False):
    keys = () if how is JoinType.CROSS else ("k",)
    join = Join(how, keys, keys, coalesce_keys=True, null_aware=null_aware)
    return {(each.pair, each.variant.strategy) for each in offered_alternatives(join, one_subtask=one_subtask)}


def test_the_broadcast_side_is_built():
    assert offered(JoinType.INNER) == {(HH, FIRST), (HH, SECOND), (HH, MERGE), (BF, FIRST), (FB, SECOND)}
    assert offered(JoinType.LEFT, one_subtask=True) == {(FF, FIRST), (FF, SECOND), (FF, MERGE)}
    assert offered(JoinType.CROSS) == {(BF, FIRST), (FB, SECOND)}
    assert offered(JoinType.CROSS, one_subtask=True) == {(FF, FIRST), (FF, SECOND)}


def test_a_null_aware_anti_join_builds_a_right_side_that_every_subtask_has():
    assert offered(JoinType.ANTI, null_aware=True) == {(FB, SECOND)}
    assert offered(JoinType.ANTI, null_aware=True, one_subtask=True) == {(FF, SECOND)}


def test_where_subtasks_mark_the_same_rows_the_side_that_is_kept_may_be_broadcast():
    for how, added in ((JoinType.LEFT, (BF, FIRST)), (JoinType.SEMI, (BF, FIRST)), (JoinType.RIGHT, (FB, SECOND))):
        join = Join(how, ("k",), ("k",), coalesce_keys=True)
        found = {
            (each.pair, each.variant.strategy)
            for each in offered_alternatives(join, one_subtask=False, shares_marks=True)
        }
        assert found == {*offered(how), added}
    join = Join(JoinType.ANTI, ("k",), ("k",), coalesce_keys=True, null_aware=True)
    assert {each.pair for each in offered_alternatives(join, one_subtask=False, shares_marks=True)} == {FB}


def marking_plan(how, *, is_replicated=False, is_filtered=False):
    builder = Builder()
    few = builder.source(schema(a="int64", x="int64"), rows=1e5, path="few.parquet")
    changed = msgspec.structs.replace(builder.nodes[few].operator, is_replicated=is_replicated)
    builder.nodes[few] = msgspec.structs.replace(builder.nodes[few], operator=changed)
    if is_filtered:
        few = builder.filter(few, call("greater", "x", lit(1)))
    many = builder.source(schema(b="int64", y="int64"), rows=1e7, path="many.parquet")
    node = builder.join(few, many, left_on="a", right_on="b", how=how)
    builder.sink(builder.aggregate(node, ("a",), ("count_all", None)))
    return builder.plan()


@pytest.mark.parametrize("how", [JoinType.LEFT, JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize(
    ("settings", "is_shared"),
    [
        (OptimizerSettings(parallelism=4, is_one_process=True), True),
        (OptimizerSettings(parallelism=4), False),
        (OptimizerSettings(parallelism=4, is_one_process=True, execution_mode=ExecutionMode.BATCH), False),
    ],
)
def test_rows_of_a_broadcast_side_are_marked_by_subtasks_of_one_process_that_run_together(how, settings, is_shared):
    optimized = optimize(marking_plan(how), settings)
    join = next(node for node in optimized.nodes if node.alternative)
    ships = tuple(channel.ship_strategy for channel in join.inputs)
    assert (ships == (BROADCAST, FORWARD)) == join.descriptor.operator.shares_marks == is_shared
    # rows without a match come from any subtask, and no other side may be built at run time
    groups = [node for node in optimized.nodes if "aggregate by" in node.descriptor.name]
    assert not is_shared or HASH in [channel.ship_strategy for node in groups for channel in node.inputs]
    assert (adaptive_join(optimized, join) is None) == is_shared


@pytest.mark.parametrize("how", [JoinType.LEFT, JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("is_filtered", [False, True])
def test_a_replicated_side_that_is_kept_is_not_what_all_subtasks_mark(how, is_filtered):
    one_process = OptimizerSettings(parallelism=4, is_one_process=True)
    optimized = optimize(marking_plan(how, is_replicated=True, is_filtered=is_filtered), one_process)
    join = next(node for node in optimized.nodes if node.alternative)
    assert not getattr(join.descriptor.operator, "shares_marks", False)
    # nor does each subtask read all of it, and return what has no match by itself
    read = [
        node.descriptor.operator for node in optimized.nodes if isinstance(node.descriptor.operator, SourceOperator)
    ]
    assert not any(source.is_replicated for source in read)


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
        (JoinHint.REPARTITION_SORT_MERGE, (HASH, HASH, MERGE)),
    ],
)
def test_each_hint_forces_its_plan(hint, expected, legacy):
    assert chosen(skew_join(hint), OptimizerSettings(parallelism=4, legacy_estimates=legacy)) == expected


def test_hints_are_followed_with_one_subtask_too():
    one = OptimizerSettings(parallelism=1)
    assert chosen(skew_join(JoinHint.REPARTITION_HASH_FIRST), one) == (HASH, HASH, FIRST)
    assert chosen(skew_join(), one) == (FORWARD, FORWARD, SECOND)


def test_an_unknown_hint_is_an_error():
    with pytest.raises(PlanError, match="Unrecognized join hint: FASTEST"):
        optimize(skew_join("FASTEST"), FOUR)


@pytest.mark.parametrize(
    ("hint", "how", "message"),
    [
        ("BROADCAST_HASH_FIRST", "left", "every subtask would return the left rows without match"),
        ("BROADCAST_HASH_SECOND", "right", "every subtask would return the right rows without match"),
        ("BROADCAST_HASH_FIRST", "full", "every subtask would return the left rows without match"),
        ("BROADCAST_HASH_SECOND", "full", "every subtask would return the right rows without match"),
        ("BROADCAST_HASH_FIRST", "semi", "every subtask would return the left rows with a match"),
        ("BROADCAST_HASH_FIRST", "anti", "every subtask would return the left rows without match"),
        ("REPARTITION_HASH_FIRST", "cross", "there are no keys"),
        ("REPARTITION_SORT_MERGE", "cross", "there are no keys"),
    ],
)
@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_hint_that_would_make_a_join_wrong_is_refused(hint, how, message, parallelism):
    builder = two_sources()
    builder.sink(builder.join(0, 1, left_on="k", right_on="j", how=JoinType(how), hint=JoinHint(hint)))
    with pytest.raises(PlanError, match=f"{hint} would make an? {how} join wrong: {message}.*; use ") as caught:
        optimize(builder.plan(), OptimizerSettings(parallelism=parallelism))
    assert hint not in str(caught.value).partition("; use ")[2]


def two_sources(left_rows=5_000_000, right_rows=5_000_000):
    builder = Builder()
    builder.source(schema(k="int64", a="double"), rows=left_rows)
    builder.source(schema(j="int64", c="double"), rows=right_rows)
    return builder


def test_a_null_aware_join_cannot_be_repartitioned():
    builder = two_sources()
    hint = JoinHint.REPARTITION_HASH_SECOND
    joined = builder.join(0, 1, left_on="k", right_on="j", how=JoinType.ANTI, hint=hint, null_aware=True)
    builder.sink(joined)
    with pytest.raises(PlanError, match="a null-aware anti join wrong: every subtask must know of the null keys"):
        optimize(builder.plan(), FOUR)


@pytest.mark.parametrize(
    ("how", "left_rows", "right_rows", "expected"),
    [
        (JoinType.SEMI, 5_000_000, 10, (FORWARD, BROADCAST, SECOND)),
        (JoinType.ANTI, 5_000_000, 10, (FORWARD, BROADCAST, SECOND)),
        (JoinType.SEMI, 10, 5_000_000, (HASH, HASH, FIRST)),
        (JoinType.FULL, 5_000_000, 10, (HASH, HASH, SECOND)),
        (JoinType.FULL, 10, 5_000_000, (HASH, HASH, FIRST)),
        (JoinType.CROSS, 1000, 10, (FORWARD, BROADCAST, SECOND)),
        (JoinType.CROSS, 10, 1000, (BROADCAST, FORWARD, FIRST)),
    ],
)
def test_the_smaller_side_is_built_where_that_is_right(how, left_rows, right_rows, expected):
    builder = two_sources(left_rows, right_rows)
    builder.sink(builder.join(0, 1, left_on="k", right_on="j", how=how))
    assert chosen(builder.plan()) == expected


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize(
    ("left_rows", "distinct", "expected"),
    [
        (100_000, 10_000, SECOND),  # ten rows of a key meet each other, and one of them is enough
        (100_000, 100_000, FIRST),  # one pair of each row, whichever side is built
        (1_000, 10_000, FIRST),  # few rows are built
    ],
)
def test_rows_that_want_one_match_of_many_probe(how, left_rows, distinct, expected):
    builder = Builder()
    known = ColumnStatistics(distinct_count=distinct)
    builder.source(schema(k="int64", a="int64"), rows=left_rows, columns={"k": known})
    builder.source(schema(j="int64", b="int64"), rows=100_000, columns={"j": known})
    differ = call("not_equal", "a", "b")
    builder.sink(builder.join(0, 1, left_on="k", right_on="j", how=how, condition=differ))
    assert chosen(builder.plan(), OptimizerSettings(parallelism=1))[-1] == expected


@pytest.mark.parametrize("how", [how for how in JoinType if how is not JoinType.CROSS])
def test_sort_merge_runs_every_join_with_keys_and_never_wins_by_cost(how):
    builder = two_sources()
    builder.sink(builder.join(0, 1, left_on="k", right_on="j", how=how, hint=JoinHint.REPARTITION_SORT_MERGE))
    builder.sink(builder.join(0, 1, left_on="k", right_on="j", how=how), "second")
    merged, hashed = (node for node in optimize(builder.plan(), FOUR).nodes if node.alternative)
    operator = merged.descriptor.operator
    assert isinstance(operator, SortMergeJoinOperator)
    assert (operator.how, operator.left_keys, operator.right_keys) == (how, ("k",), ("j",))
    assert hashed.strategy != MERGE
    assert any(each.name == "REPARTITION_SORT_MERGE" and "against" in each.reason for each in hashed.rejected)


@pytest.mark.parametrize("how", JoinType)
def test_rows_with_null_keys_are_spread_on_both_sides_of_a_repartitioned_join(how):
    if how is JoinType.CROSS:
        return
    builder = two_sources()
    hint = JoinHint.REPARTITION_HASH_SECOND
    builder.sink(builder.join(0, 1, left_on="k", right_on="j", how=how, hint=hint))
    (join,) = (node for node in optimize(builder.plan(), FOUR).nodes if node.alternative)
    assert all(channel.partitioner.spread_nulls for channel in join.inputs)


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


@pytest.mark.parametrize(
    ("how", "is_grouped"),
    [(how, how in (JoinType.INNER, JoinType.SEMI)) for how in JoinType if how is not JoinType.CROSS],
)
def test_a_join_that_returns_null_keys_does_not_pretend_to_be_partitioned(how, is_grouped):
    # its rows with null keys were spread, so a group of nulls lies in several subtasks
    builder = Builder()
    left = builder.source(schema(k="int64", a="double"), rows=5_000_000)
    right = builder.source(schema(k="int64", c="double"), rows=5_000_000)
    joined = builder.join(left, right, on="k", how=how, hint=JoinHint.REPARTITION_HASH_FIRST)
    builder.sink(builder.aggregate(joined, ("k",), ("sum", "a")))
    strategies = {node.strategy for node in optimize(builder.plan(), FOUR).nodes}
    assert ("SINGLE" in strategies) is is_grouped
    assert ({"PARTIAL", "FINAL"} <= strategies) is not is_grouped


@pytest.mark.parametrize(
    ("how", "share", "is_grouped"),
    [
        (JoinType.LEFT, 0.0, True),
        (JoinType.LEFT, 0.06, True),
        (JoinType.LEFT, 0.07, False),  # more than a quarter of what one of four subtasks has
        (JoinType.ANTI, 0.06, True),
        (JoinType.RIGHT, 0.06, True),
        (JoinType.RIGHT, 0.07, False),
        (JoinType.FULL, 0.0, False),
    ],
)
def test_few_null_keys_go_to_one_subtask_and_a_join_that_returns_them_stays_partitioned(how, share, is_grouped):
    builder = Builder()
    nulls = {"k": ColumnStatistics(null_fraction=share)}
    left = builder.source(schema(k="int64", a="double"), rows=5_000_000, columns=nulls)
    right = builder.source(schema(k="int64", c="double"), rows=5_000_000, columns=nulls)
    joined = builder.join(left, right, on="k", how=how, hint=JoinHint.REPARTITION_HASH_FIRST)
    builder.sink(builder.aggregate(joined, ("k",), ("count_all", None)))
    nodes = optimize(builder.plan(), FOUR).nodes
    assert ("SINGLE" in {node.strategy for node in nodes}) is is_grouped
    hashed = [each.partitioner for node in nodes if node.alternative for each in node.inputs]
    assert [each.spread_nulls for each in hashed] == [share > 0.0625] * 2


def test_a_left_column_with_the_name_of_the_right_key_is_no_key_of_a_semi_join():
    builder = Builder()
    left = builder.source(schema(k="int64", j="int64"), rows=5_000_000)
    right = builder.source(schema(j="int64"), rows=5_000_000)
    hint = JoinHint.REPARTITION_HASH_FIRST
    joined = builder.join(left, right, left_on="k", right_on="j", how=JoinType.SEMI, hint=hint)
    builder.sink(builder.aggregate(joined, ("j",), ("count_all", None)))
    assert "FINAL" in {node.strategy for node in optimize(builder.plan(), FOUR).nodes}


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
