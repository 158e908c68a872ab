"""Which heavy keys of a join are split, which side is copied, and what that costs."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.expression import Call, ColumnRef
from engine.graph.operator_descriptor import HashJoinOperator
from engine.graph.plan import Join, Plan
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import HeavyKeys, PartitionerSpec, ShipStrategy
from engine.graph.source_spec import ColumnStatistics
from engine.ids import JobId
from engine.optimizer.adaptive_facts import adaptive_join
from engine.optimizer.candidates import Shipping
from engine.optimizer.explain import explain
from engine.optimizer.heavy_keys import KEYS_MAX, JoinSides, split_heavy_keys
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.join_alternatives import LocalStrategy
from engine.optimizer.optimizer import optimize
from engine.optimizer.physical_plan import OptimizedPlan
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.costs import NO_COST
from engine.statistics.estimates import Estimates
from tests.optimizer.plan_building import Builder, schema, skew_join

HASHED = Shipping(ShipStrategy.PARTITION_HASH, PartitionerSpec("HASH", ("k",), spread_nulls=True), NO_COST)
LIES_RIGHT = Shipping(ShipStrategy.FORWARD, PartitionerSpec("FORWARD"), NO_COST)
FIRST, SECOND, MERGE = LocalStrategy.HASH_BUILD_FIRST, LocalStrategy.HASH_BUILD_SECOND, LocalStrategy.SORT_MERGE
REPARTITION = JoinHint.REPARTITION_HASH_SECOND


def side(rows: float, distinct: float | None = None, **heavy: float) -> Estimates:
    keys = tuple((text.removeprefix("k"), share) for text, share in heavy.items())
    return Estimates(rows, rows * 10, "", {"k": ColumnStatistics(distinct_count=distinct, heavy_keys=keys)})


def join_of(how: JoinType = JoinType.INNER, **options: object) -> Join:
    return Join(how, ("k",), ("k",), True, **options)


def split(
    left: Estimates,
    right: Estimates,
    join: Join | None = None,
    strategy: LocalStrategy = SECOND,
    parallelism: int = 4,
    shippings: tuple[Shipping, Shipping] = (HASHED, HASHED),
) -> JoinSides:
    rows = max(left.rows, right.rows)
    return split_heavy_keys(join or join_of(), strategy, rows, JoinSides(shippings, (left, right)), parallelism)


def heavy_of(sides: JoinSides) -> tuple[HeavyKeys | None, HeavyKeys | None]:
    return sides.shippings[0].partitioner.heavy, sides.shippings[1].partitioner.heavy


def spread(*keys: str) -> HeavyKeys:
    return HeavyKeys(spread=tuple((key,) for key in keys))


def copied(*keys: str) -> HeavyKeys:
    return HeavyKeys(replicated=tuple((key,) for key in keys))


FACTS, LOOKUP = side(1000, 100, k7=0.5), side(100, 100)


def test_the_side_with_more_rows_of_a_key_is_spread_and_the_other_copied() -> None:
    assert heavy_of(split(FACTS, LOOKUP)) == (spread("7"), copied("7"))
    assert heavy_of(split(LOOKUP, FACTS)) == (copied("7"), spread("7"))


def test_each_key_has_its_own_larger_side() -> None:
    left, right = side(1000, 100, k7=0.5, k8=0.1), side(1000, 100, k8=0.5, k9=0.3)
    first, second = heavy_of(split(left, right))
    assert first == HeavyKeys(spread=(("7",),), replicated=(("8",), ("9",)))
    assert second == HeavyKeys(spread=(("8",), ("9",)), replicated=(("7",),))


@pytest.mark.parametrize(("parallelism", "is_split"), [(1, False), (2, False), (3, False), (6, True), (8, True)])
def test_a_key_is_split_when_it_is_a_quarter_of_a_subtasks_share(parallelism: int, is_split: bool) -> None:
    assert split(side(10_000, 500, k7=0.05), side(500, 500), parallelism=parallelism).is_split == is_split


def test_the_heaviest_keys_come_first() -> None:
    (heavy, _) = heavy_of(split(side(1000, 100, k1=0.2, k2=0.3, k3=0.25), LOOKUP))
    assert heavy == spread("2", "3", "1")


def test_pairs_count_as_work_where_a_join_makes_them() -> None:
    left, right = side(10_000, 1000), side(500, 20, k7=0.5)
    assert heavy_of(split(left, right)) == (copied("7"), spread("7"))
    assert not split(left, right, join_of(JoinType.SEMI)).is_split


def test_copies_are_paid_for() -> None:
    sides = split(FACTS, LOOKUP)
    assert [each.rows for each in sides.arriving] == [1000, 103]
    assert sides.arriving[1].size_bytes == pytest.approx(1030)
    assert [each.costs.network for each in sides.shippings] == [10_000, pytest.approx(1030)]


def test_a_key_that_stays_whole_still_costs_its_load() -> None:
    (first, _) = split(side(1000, 100, k7=0.5), side(1000, 100, k7=0.4), join_of(JoinType.SEMI)).shippings
    assert first.partitioner.heavy is None
    assert "k=7 not split: there would be more copies than rows" in first.reason


def test_a_full_join_says_which_keys_it_leaves_whole() -> None:
    left, right = side(1000, 100, k7=0.5, k8=0.1), side(900, 100, k8=0.2, k9=0.4)
    sides = split(left, right, join_of(JoinType.FULL))
    assert heavy_of(sides) == (copied("8", "9"), spread("8", "9"))
    assert "k=7 not split: a full join copies rows of one side only" in sides.shippings[0].reason
    assert "not split" not in sides.shippings[1].reason


@pytest.mark.parametrize(
    ("how", "left_is_facts", "is_split"),
    [
        (JoinType.INNER, True, True),
        (JoinType.INNER, False, True),
        (JoinType.LEFT, True, True),
        (JoinType.LEFT, False, False),
        (JoinType.RIGHT, True, False),
        (JoinType.RIGHT, False, True),
        (JoinType.FULL, True, False),
        (JoinType.SEMI, True, True),
        (JoinType.SEMI, False, False),
        (JoinType.ANTI, True, True),
        (JoinType.ANTI, False, False),
    ],
)
@pytest.mark.parametrize("why", ["condition", "sort-merge"])
def test_rows_that_come_out_for_their_own_sake_are_not_copied_where_copies_cannot_be_told(
    how: JoinType, left_is_facts: bool, is_split: bool, why: str
) -> None:
    options = {"condition": Call("less", (ColumnRef("a"), ColumnRef("b")))} if why == "condition" else {}
    strategy = MERGE if why == "sort-merge" else SECOND
    left, right = (FACTS, LOOKUP) if left_is_facts else (LOOKUP, FACTS)
    sides = split(left, right, join_of(how, **options), strategy)
    assert sides.is_split == is_split
    if not is_split:
        assert why in sides.shippings[0 if left_is_facts else 1].reason


def test_a_null_aware_anti_join_is_not_split() -> None:
    assert not split(FACTS, LOOKUP, join_of(JoinType.ANTI, null_aware=True)).is_split


def two_columns(rows: float, first: dict[str, float], second: dict[str, float]) -> Estimates:
    columns = {
        name: ColumnStatistics(distinct_count=100, heavy_keys=tuple(heavy.items()))
        for name, heavy in (("k", first), ("m", second))
    }
    return Estimates(rows, rows * 10, "", columns)


def test_of_several_columns_combinations_of_heavy_values_are_split() -> None:
    join = msgspec.structs.replace(join_of(), left_keys=("k", "m"), right_keys=("k", "m"))
    facts = two_columns(10_000, {"7": 0.9, "8": 0.05}, {"x": 0.5, "y": 0.4})
    sides = split(facts, two_columns(100, {}, {}), join)
    expected = HeavyKeys(spread=(("7", "x"), ("7", "y")))
    assert heavy_of(sides) == (expected, HeavyKeys(replicated=expected.spread))
    assert "k=7 and m=x (45.0 %), k=7 and m=y (36.0 %), source: sample" in sides.shippings[0].reason


def test_one_heavy_column_of_several_is_not_enough() -> None:
    join = msgspec.structs.replace(join_of(), left_keys=("k", "m"), right_keys=("k", "m"))
    assert not split(two_columns(10_000, {"7": 0.9}, {}), two_columns(100, {}, {}), join).is_split


def test_not_more_keys_are_split_than_a_row_can_be_compared_with() -> None:
    join = msgspec.structs.replace(join_of(), left_keys=("k", "m"), right_keys=("k", "m"))
    tenths = {str(key): 0.1 for key in range(10)}
    (heavy, _) = heavy_of(split(two_columns(10_000, tenths, tenths), two_columns(100, {}, {}), join, parallelism=64))
    assert heavy is not None
    assert len(heavy.spread) == KEYS_MAX


def test_a_side_that_lies_right_is_moved_when_that_is_cheaper() -> None:
    assert split(side(1000, 100, k7=0.9), side(10, 10), shippings=(HASHED, LIES_RIGHT)).is_split is False
    dear = HASHED._replace(costs=msgspec.structs.replace(NO_COST, network=36_000.0))
    assert split(side(1000, 100, k7=0.9), side(10, 10), shippings=(dear, LIES_RIGHT)).is_split


# ------------------------------------------------------------------------------------------------------- whole plans


def optimized(plan: Plan, parallelism: int = 4, **settings: object) -> OptimizedPlan:
    return optimize(plan, OptimizerSettings(parallelism=parallelism, **settings))


def join_node(result: OptimizedPlan):
    return next(node for node in result.nodes if isinstance(node.descriptor.operator, HashJoinOperator))


def test_a_repartition_hint_has_its_heavy_keys_split_and_explain_says_so() -> None:
    result = optimized(skew_join(REPARTITION))
    node = join_node(result)
    assert [channel.partitioner.heavy for channel in node.inputs] == [spread("978"), copied("978")]
    assert node.descriptor.operator.heavy == spread("978")
    text = explain(result)
    assert "heavy keys split: CurrencyID=978 (92.9 %), source: sample" in text
    assert "to all subtasks: rows with CurrencyID=978" in text


@pytest.mark.parametrize("heavy", [(("7", 0.9),), ()])
def test_a_broadcast_join_with_heavy_keys_is_not_repartitioned_at_run_time(
    heavy: tuple[tuple[str, float], ...],
) -> None:
    builder = Builder()
    facts, _ = facts_and_lookup(builder, heavy)
    lookup = builder.source(schema(k="int64", w="int64"), rows=500, path="other")
    guessed = builder.filter(lookup, Call("less", (ColumnRef("w"), ColumnRef("k"))))
    builder.sink(builder.join(facts, guessed, on="k"))
    result = optimized(builder.plan(), execution_mode=ExecutionMode.BATCH)
    facts_of_join = adaptive_join(result, join_node(result))
    assert facts_of_join is not None
    assert facts_of_join.may_repartition == (not heavy)


def test_the_keys_travel_with_the_graph() -> None:
    graph = generate_job_graph(optimized(skew_join(REPARTITION)), JobId("0" * 32), "job")
    data_sets = [data_set for vertex in graph.vertices for data_set in vertex.outputs]
    heavy = [data_set.partitioner.heavy for data_set in data_sets if data_set.partitioner.heavy]
    assert heavy == [spread("978"), copied("978")]


def test_legacy_estimates_leave_the_key_to_one_subtask() -> None:
    for hint in (REPARTITION, JoinHint.OPTIMIZER_CHOOSES):
        node = join_node(optimized(skew_join(hint), legacy_estimates=True))
        assert node.alternative.startswith("REPARTITION")
        assert [channel.partitioner.heavy for channel in node.inputs] == [None, None]


def facts_and_lookup(builder: Builder, heavy: tuple[tuple[str, float], ...] = (("7", 0.9),)) -> tuple[int, int]:
    known = {"k": ColumnStatistics(distinct_count=1000, heavy_keys=heavy)}
    facts = builder.source(schema(k="int64", v="int64"), rows=1_000_000, columns=known)
    unique = {"k": ColumnStatistics(distinct_count=500_000)}
    return facts, builder.source(schema(k="int64", w="int64"), rows=500_000, columns=unique, path="other")


def test_a_group_by_after_a_split_join_does_not_find_its_keys_together() -> None:
    for heavy in ((("7", 0.9),), ()):
        builder = Builder()
        facts, lookup = facts_and_lookup(builder, heavy)
        joined = builder.join(facts, lookup, on="k", hint=REPARTITION)
        builder.sink(builder.aggregate(joined, ("k",), ("sum", "v")))
        strategies = {node.strategy for node in optimized(builder.plan()).nodes}
        assert ("FINAL" in strategies) == bool(heavy)
        assert ("SINGLE" in strategies) == (not heavy)


def test_a_join_after_a_split_join_moves_the_rows_again() -> None:
    builder = Builder()
    facts, lookup = facts_and_lookup(builder)
    other = builder.source(schema(k="int64", z="int64"), rows=400_000, path="third")
    joined = builder.join(builder.join(facts, lookup, on="k", hint=REPARTITION), other, on="k", hint=REPARTITION)
    builder.sink(joined)
    nodes = [node for node in optimized(builder.plan()).nodes if isinstance(node.descriptor.operator, HashJoinOperator)]
    for node in nodes:
        assert [channel.ship_strategy for channel in node.inputs] == [ShipStrategy.PARTITION_HASH] * 2
        assert node.inputs[0].partitioner.heavy == spread("7")


def test_heavy_keys_survive_the_way_through_projections_filters_and_unions() -> None:
    builder = Builder()
    facts, lookup = facts_and_lookup(builder)
    small = builder.filter(facts, Call("less", (ColumnRef("v"), ColumnRef("k"))))
    joined = builder.join(builder.project(builder.union(facts, small), "k"), lookup, on="k", hint=REPARTITION)
    builder.sink(joined)
    assert join_node(optimized(builder.plan())).inputs[0].partitioner.heavy == spread("7")


def test_splitting_makes_a_repartitioned_join_cheap_enough_to_be_chosen() -> None:
    builder = Builder()
    facts, lookup = facts_and_lookup(builder)
    builder.sink(builder.join(facts, lookup, on="k"))
    node = join_node(optimized(builder.plan()))
    assert node.alternative.startswith("REPARTITION")
    assert node.inputs[0].partitioner.heavy == spread("7")
