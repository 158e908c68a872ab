"""Small parts of a plan run in one subtask: what counts as small, and what the user has a say in does not."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import AsofJoin, Partition, PlanNode, Source, Window
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import ShipStrategy
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import ColumnStatistics
from engine.memory.page_budget import PageBudget
from engine.optimizer import plan_enumerator, small_parts
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, lit, schema

KEYED = schema(k="int64", a="int64")
SETTINGS = OptimizerSettings(
    parallelism=4, has_small_parts=True, is_one_process=True, page_budget=PageBudget(4 << 30, slot_count=4)
)


def with_slots_of(slot_bytes: int, **changes: bool) -> OptimizerSettings:
    """The same with four slots of so many bytes."""
    budget = PageBudget(4 * slot_bytes, slot_count=4)
    return msgspec.structs.replace(SETTINGS, page_budget=budget, **changes)


@pytest.fixture(autouse=True)
def measured_beside_four(monkeypatch):
    """What is small beside two subtasks is so here beside four, of which it is seen better how many there are."""
    monkeypatch.setattr(small_parts, "_MEASURED_SUBTASKS", 4)
    monkeypatch.setattr(plan_enumerator, "SENT_SHARE", 2.0)


@pytest.fixture
def threads_read(monkeypatch, measured_beside_four):
    """Parts are larger where several threads read their sources, as they are by default."""
    monkeypatch.setattr(plan_enumerator, "SENT_SHARE", small_parts.SENT_SHARE)


def parallelisms(builder, settings=SETTINGS):
    return [node.parallelism for node in optimize(builder.plan(), settings).nodes]


def grouped(builder, source):
    return builder.sink(builder.aggregate(source, ("k",), ("sum", "a")))


def test_a_plan_that_reads_little_has_one_subtask_and_no_exchange():
    builder = Builder()
    left, right = builder.source(KEYED), builder.source(KEYED)
    grouped(builder, builder.join(left, right, left_on="k", right_on="k", how=JoinType.SEMI))
    optimized = optimize(builder.plan(), SETTINGS)
    assert {node.parallelism for node in optimized.nodes} == {1}
    strategies = {channel.ship_strategy for node in optimized.nodes for channel in node.inputs}
    assert strategies == {ShipStrategy.FORWARD}
    said = "parallelism 4 (1 where up to 384 MB are read, up to 3.1 GB where much of it would be sent)"
    assert said in explain(optimized)


def test_groups_below_a_join_are_part_of_what_is_small():
    builder = Builder()
    known = {name: {name: ColumnStatistics(distinct_count=1000)} for name in ("k", "id")}
    rows = builder.source(schema(k="int64", a="int32"), rows=1e6, columns=known["k"])
    names = builder.source(schema(id="int64", name="string"), rows=1000, columns=known["id"])
    joined = builder.join(rows, names, left_on="k", right_on="id")
    builder.sink(builder.aggregate(joined, ("name",), ("sum", "a")))
    optimized = optimize(builder.plan(), SETTINGS)
    assert "before the join, which gets fewer rows" in explain(optimized)
    assert {node.parallelism for node in optimized.nodes} == {1}


def test_a_source_counts_before_any_filter():
    builder = Builder()
    source = builder.source(KEYED, rows=30_000_000)
    grouped(builder, builder.filter(source, call("equal", "k", lit(7))))
    assert parallelisms(builder)[0] == 4


def groups_together(count):
    """Put the groups of so many sources of 160 MB each together."""
    builder = Builder()
    sources = [builder.source(KEYED, rows=10_000_000, path=f"{index}.parquet") for index in range(count)]
    groups = [builder.aggregate(source, ("k",), ("sum", "a")) for source in sources]
    builder.sink(builder.sort(builder.aggregate(builder.union(*groups), ("k",)), "k"))
    return max(parallelisms(builder))


def test_what_arrives_counts_and_all_that_is_read_together_four_times_over():
    assert groups_together(9) == 1
    assert groups_together(10) == 4


def test_rows_that_arrive_together_are_not_small():
    builder = Builder()
    sources = [builder.source(KEYED, rows=2_700_000, path=f"{index}.parquet") for index in range(10)]
    builder.sink(builder.sort(builder.union(*sources), "k"))
    assert parallelisms(builder)[:10] == [1] * 10
    assert parallelisms(builder)[-1] == 4


@pytest.mark.parametrize(("rows", "subtasks"), [(2_500_000, 1), (3_500_000, 4)])
def test_a_long_scan_for_many_subtasks_has_as_many(rows, subtasks):
    builder = Builder()
    large = builder.source(KEYED, rows=200_000_000, path="large.parquet")
    scan = builder.filter(builder.source(KEYED, rows=rows, path="dimension.parquet"), call("equal", "a", lit(7)))
    builder.sink(builder.join(large, scan, left_on="k", right_on="k", how=JoinType.SEMI))
    text = explain(optimize(builder.plan(), SETTINGS))
    assert f"parquet source dimension.parquet, parallelism {subtasks}" in text, text
    assert "parquet source large.parquet, parallelism 4" in text


@pytest.mark.parametrize(
    ("how", "build_rows", "subtasks"),
    [
        (JoinType.INNER, 1000, 4),
        (JoinType.SEMI, 1000, 4),
        (JoinType.LEFT, 1000, 4),
        (JoinType.RIGHT, 1000, 1),
        (JoinType.FULL, 1000, 1),
        (JoinType.INNER, 2_000_000, 1),
    ],
)
def test_a_long_scan_probes_what_is_much_smaller_on_its_way(how, build_rows, subtasks):
    builder = Builder()
    large = builder.source(KEYED, rows=200_000_000, path="large.parquet")
    scan = builder.source(KEYED, rows=7_000_000, path="dimension.parquet")
    few = builder.source(schema(f="int64", b="int64"), rows=build_rows, path="few.parquet")
    joined = builder.join(scan, few, left_on="a", right_on="f", how=how)
    # by a key that is there for all rows of these
    key = "f" if how in (JoinType.RIGHT, JoinType.FULL) else "k"
    builder.sink(builder.join(large, joined, left_on="k", right_on=key, how=JoinType.SEMI))
    plan = builder.plan()
    optimized = optimize(plan, SETTINGS)
    text = explain(optimized)
    assert f"parquet source dimension.parquet, parallelism {subtasks}" in text, text
    assert "parquet source few.parquet, parallelism 1" in text, text
    if subtasks > 1:
        (join,) = [node for node in optimized.nodes if node.plan_node == joined]
        ships = {channel.ship_strategy for channel in join.inputs}
        assert ships == {ShipStrategy.FORWARD, ShipStrategy.BROADCAST}


def test_a_long_scan_may_probe_several_tables():
    builder = Builder()
    large = builder.source(KEYED, rows=200_000_000, path="large.parquet")
    below = builder.source(KEYED, rows=7_000_000, path="dimension.parquet")
    for number in range(3):
        few = builder.source(schema(**{f"f{number}": "int64"}), rows=1000, path=f"few{number}.parquet")
        sides = (few, below) if number == 1 else (below, few)
        keys = ("f1", "a") if number == 1 else ("a", f"f{number}")
        below = builder.join(*sides, left_on=keys[0], right_on=keys[1])
    builder.sink(builder.join(large, below, left_on="k", right_on="k", how=JoinType.SEMI))
    text = explain(optimize(builder.plan(), SETTINGS))
    assert "parquet source dimension.parquet, parallelism 4" in text, text
    assert text.count("parquet source few") == 3
    assert all(f"parquet source few{number}.parquet, parallelism 1" in text for number in range(3)), text


def test_a_long_scan_for_one_that_is_divided_is_divided_too():
    builder = Builder()
    large = builder.source(KEYED, rows=200_000_000, path="large.parquet")
    part = builder.filter(builder.source(KEYED, rows=4_000_000, path="part.parquet"), call("equal", "a", lit(7)))
    dimension = builder.source(schema(f="int64", b="int64"), rows=7_000_000, path="dimension.parquet")
    joined = builder.join(dimension, part, left_on="b", right_on="k", how=JoinType.SEMI)
    builder.sink(builder.join(large, joined, left_on="k", right_on="f", how=JoinType.SEMI))
    text = explain(optimize(builder.plan(), SETTINGS))
    for name in ("part", "dimension", "large"):
        assert f"parquet source {name}.parquet, parallelism 4" in text, text


def test_a_scan_that_is_grouped_in_one_subtask_has_one_whatever_comes_above():
    builder = Builder()
    large = builder.source(KEYED, rows=200_000_000, path="large.parquet")
    scan = builder.source(KEYED, rows=20_000_000, path="dimension.parquet")
    groups = builder.aggregate(scan, ("k",), ("sum", "a"))
    builder.sink(builder.join(large, groups, left_on="k", right_on="k", how=JoinType.SEMI))
    plan = builder.plan()
    found = {node.plan_node: node.parallelism for node in optimize(plan, SETTINGS).nodes}
    assert (found[large], found[scan], found[groups]) == (4, 1, 1)


@pytest.mark.parametrize(
    ("rows", "is_one_process", "subtasks"), [(150_000_000, True, 1), (250_000_000, True, 4), (150_000_000, False, 4)]
)
def test_parts_are_larger_where_many_rows_would_travel_within_a_process(rows, is_one_process, subtasks):
    builder = Builder()
    columns = {"k": ColumnStatistics(distinct_count=rows / 4)}
    grouped(builder, builder.source(KEYED, rows=rows, columns=columns))
    settings = with_slots_of(8 << 30, is_one_process=is_one_process)
    assert set(parallelisms(builder, settings)) == {subtasks}


@pytest.mark.parametrize(
    ("rows", "group_count", "subtasks"),
    [(30_000_000, 100, 4), (30_000_000, 1_000_000, 1), (110_000_000, 10_000_000, 4)],
)
def test_parts_are_larger_where_threads_read_what_would_be_sent(threads_read, rows, group_count, subtasks):
    builder = Builder()
    source = builder.source(KEYED, rows=rows, columns={"k": ColumnStatistics(distinct_count=group_count)})
    grouped(builder, builder.filter(source, call("greater", "a", lit(7))))
    assert parallelisms(builder, with_slots_of(8 << 30))[0] == subtasks


@pytest.mark.parametrize(("rows", "subtasks"), [(20_000_000, 1), (45_000_000, 4)])
def test_what_arrives_at_an_operator_is_less_than_threads_read(threads_read, rows, subtasks):
    builder = Builder()
    facts = builder.source(KEYED, rows=rows, columns={"k": ColumnStatistics(distinct_count=5e6)})
    orders = builder.source(schema(k="int64", b="int64"), rows=5_000_000, path="orders.parquet")
    grouped(builder, builder.join(facts, orders, left_on="k", right_on="k", how=JoinType.INNER))
    assert parallelisms(builder, with_slots_of(8 << 30))[0] == subtasks


def test_what_sorts_many_rows_is_not_in_a_larger_part():
    builder = Builder()
    source = builder.source(KEYED, rows=50_000_000)
    builder.sink(builder.sort(source, "k"))
    assert set(parallelisms(builder)) == {4}


@pytest.mark.parametrize(("managed_mb", "subtasks"), [(300, 1), (100, 4), (8, 4)])
def test_a_small_part_is_no_larger_than_the_memory_of_its_slot(managed_mb, subtasks):
    builder = Builder()
    grouped(builder, builder.source(KEYED, rows=10_000_000))
    settings = with_slots_of(managed_mb << 20, is_one_process=False)
    assert set(parallelisms(builder, settings)) == {subtasks}


def test_a_plan_of_one_subtask_has_the_memory_of_its_process():
    builder = Builder()
    grouped(builder, builder.source(KEYED, rows=10_000_000))
    settings = with_slots_of(8 << 20)
    assert set(parallelisms(builder, settings)) == {1}
    assert "managed memory 33.6 MB per slot" in explain(optimize(builder.plan(), settings))
    beside = Builder()
    large = beside.source(KEYED, rows=200_000_000, path="large.parquet")
    groups = beside.aggregate(beside.source(KEYED, rows=10_000_000), ("k",), ("sum", "a"))
    beside.sink(beside.join(large, groups, left_on="k", right_on="k", how=JoinType.SEMI))
    assert set(parallelisms(beside, settings)) == {4}
    assert "managed memory 8.4 MB per slot" in explain(optimize(beside.plan(), settings))


def test_a_sort_that_does_not_fit_is_divided_in_one_process_too():
    builder = Builder()
    builder.sink(builder.sort(builder.source(KEYED, rows=10_000_000), "k"))
    for managed_mb, subtasks in ((64, 1), (8, 4)):
        settings = with_slots_of(managed_mb << 20)
        assert set(parallelisms(builder, settings)) == {subtasks}, managed_mb


def test_parts_are_not_larger_where_half_of_the_rows_would_travel():
    builder = Builder()
    columns = {"k": ColumnStatistics(distinct_count=10_000_000)}
    source = builder.source(schema(k="int64", a="int64", b="int64"), rows=100_000_000, columns=columns)
    few = builder.source(KEYED, rows=90_000_000, path="few.parquet", columns=columns)
    beside = builder.aggregate(builder.filter(few, call("equal", "a", lit(7))), ("k",), ("sum", "a"))
    builder.sink(builder.join(source, beside, left_on="k", right_on="k"))
    assert set(parallelisms(builder, with_slots_of(8 << 30))) == {4}


def test_some_megabytes_are_small_in_little_memory_too():
    builder = Builder()
    grouped(builder, builder.source(KEYED, rows=2_000_000))
    assert set(parallelisms(builder, with_slots_of(8 << 20))) == {1}


def test_what_reads_a_window_of_few_rows_is_small():
    builder = Builder()
    grouped(builder, builder.add(Window(("k",), (SortKey("a"),), ()), (builder.source(KEYED),), KEYED))
    assert set(parallelisms(builder)) == {1}


def test_a_small_part_stands_below_a_large_one():
    builder = Builder()
    large = builder.source(KEYED, rows=30_000_000)
    small = builder.aggregate(builder.source(KEYED, path="few.parquet"), ("k",), ("sum", "a"))
    builder.sink(builder.join(large, small, left_on="k", right_on="k", how=JoinType.SEMI))
    found = {node.descriptor.name: node.parallelism for node in optimize(builder.plan(), SETTINGS).nodes}
    assert found["aggregate by k"] == 1
    assert found["semi join on k"] == 4


def test_rows_that_a_join_multiplies_are_not_small():
    builder = Builder()
    sources = [builder.source(schema(**{name: "int64"}), rows=100_000) for name in "ab"]
    grouped_pairs = builder.join(*sources, how=JoinType.CROSS)
    builder.sink(builder.aggregate(grouped_pairs, ("a",), ("sum", "b")))
    assert parallelisms(builder)[-1] == 4


@pytest.mark.parametrize(
    "changes", [{"parallelism": 4}, {"rate_limit": 10.0}, {"rows": None}], ids=["parallelism", "rate", "unknown"]
)
def test_a_source_that_the_user_said_something_of_or_nobody_knows_is_not_small(changes):
    builder = Builder()
    grouped(builder, builder.source(KEYED, **changes))
    assert set(parallelisms(builder)) == {4}


def test_a_replicated_source_is_not_small():
    builder = Builder()
    source = builder.source(KEYED)
    operator = builder.nodes[source].operator
    assert isinstance(operator, Source)
    replicated = msgspec.structs.replace(operator, is_replicated=True)
    builder.nodes[source] = msgspec.structs.replace(builder.nodes[source], operator=replicated)
    grouped(builder, source)
    assert parallelisms(builder)[-1] == 4


def test_a_function_a_partitioning_and_a_hint_are_not_small():
    for make in (
        lambda builder, source: builder.python(source),
        lambda builder, source: builder.add(Partition("REBALANCE"), (source,), KEYED),
        lambda builder, source: builder.join(
            source, builder.source(KEYED), on="k", how=JoinType.SEMI, hint=JoinHint.REPARTITION_HASH_SECOND
        ),
    ):
        builder = Builder()
        grouped(builder, make(builder, builder.source(KEYED)))
        assert parallelisms(builder)[-1] == 4


def test_a_function_over_little_has_all_subtasks_and_so_has_what_it_is_given():
    builder = Builder()
    few = builder.aggregate(builder.source(KEYED, path="few.parquet"), ("k",), ("sum", "a"))
    joined = builder.join(builder.source(KEYED), few, on="k", how=JoinType.SEMI)
    builder.sink(builder.python(joined))
    assert set(parallelisms(builder)) == {4}
    beside = Builder()
    grouped(beside, beside.source(KEYED))
    beside.sink(beside.python(beside.source(KEYED, path="other.parquet")))
    assert parallelisms(beside)[:2] == [1, 1] and parallelisms(beside)[-1] == 4


def test_who_sets_a_parallelism_gets_it():
    builder = Builder()
    grouped(builder, builder.source(KEYED))
    assert set(parallelisms(builder, OptimizerSettings(parallelism=4))) == {4}


@pytest.mark.parametrize(("distinct", "subtasks"), [(50, 1), (1_000_000, 4), (None, 4)], ids=["few", "many", "unknown"])
def test_known_few_groups_of_a_large_source_are_merged_in_one_subtask(distinct, subtasks):
    builder = Builder()
    columns = {} if distinct is None else {"k": ColumnStatistics(distinct_count=distinct)}
    grouped(builder, builder.source(KEYED, rows=250_000_000, columns=columns))
    first, _, partial, final, sink = optimize(builder.plan(), SETTINGS).nodes
    assert (first.parallelism, partial.parallelism) == (4, 4)
    assert (final.parallelism, sink.parallelism) == (subtasks, subtasks)
    assert (final.inputs[0].ship_strategy is ShipStrategy.PARTITION_HASH) == (subtasks == 4)


def test_few_groups_have_the_parallelism_that_somebody_set():
    builder = Builder()
    source = builder.source(KEYED, rows=250_000_000, columns={"k": ColumnStatistics(distinct_count=50)})
    builder.sink(builder.aggregate(source, ("k",), ("sum", "a"), parallelism=3))
    assert parallelisms(builder)[-1] == 3


def test_rows_of_one_subtask_that_others_take_lie_by_no_key_any_more():
    builder = Builder()
    groups = builder.aggregate(builder.source(KEYED, path="few.parquet"), ("k",), ("sum", "a"))
    bounds = builder.source(schema(bound="int64"), rows=1, path="bound.parquet", parallelism=1)
    spread = builder.join(groups, bounds, how=JoinType.CROSS)
    facts = builder.source(schema(f="int64", v="int64"), rows=300_000_000, path="facts.parquet")
    large = builder.aggregate(facts, ("f",), ("sum", "v"))
    builder.sink(builder.join(spread, large, left_on="k", right_on="f", hint=JoinHint.REPARTITION_HASH_FIRST))
    by_name = {node.descriptor.name: node for node in optimize(builder.plan(), SETTINGS).nodes}
    assert (by_name["aggregate by k"].parallelism, by_name["cross join"].parallelism) == (1, 4)
    side, _ = by_name["inner join on k"].inputs
    assert side.ship_strategy is ShipStrategy.PARTITION_HASH


@pytest.mark.parametrize(("megabytes", "subtasks"), [(40, 1), (90, 1), (110, 16)])
def test_beside_more_subtasks_a_part_has_to_be_smaller(megabytes, subtasks):
    builder = Builder()
    grouped(builder, builder.source(KEYED, rows=megabytes * 1e6 / 16))
    settings = msgspec.structs.replace(SETTINGS, parallelism=16, is_one_process=False)
    assert max(parallelisms(builder, settings)) == subtasks


def test_an_as_of_join_sorts_its_rows():
    assert small_parts._sorts(PlanNode(0, AsofJoin((), (), "t", "t"), (), KEYED))


#: a cluster with ``parallelism.default``
SET = OptimizerSettings(parallelism=4, execution_mode=ExecutionMode.BATCH, small_input_bytes=16 << 20)


@pytest.mark.parametrize(("rows", "subtasks"), [(1e5, 1), (2e6, 4)])
def test_what_feeds_a_larger_part_has_one_subtask_where_a_parallelism_is_set(rows, subtasks):
    builder = Builder()
    large = builder.source(KEYED, rows=1e8)
    nation = builder.source(schema(n="int64", m="int64"), rows=rows)
    region = builder.source(schema(r="int64"), rows=10)
    names = builder.join(nation, region, left_on="m", right_on="r")
    joined = builder.join(large, names, left_on="k", right_on="n")
    builder.sink(builder.aggregate(joined, ("k",), ("sum", "a")))
    optimized = optimize(builder.plan(), SET)
    of = {node.plan_node: node.parallelism for node in optimized.nodes}
    assert (of[nation], of[names], of[large], of[joined]) == (subtasks, subtasks, 4, 4)
    is_stored = any(
        not channel.is_pipelined for node in optimized.nodes if node.plan_node == names for channel in node.inputs
    )
    assert is_stored == (subtasks != 1)


def test_results_have_the_subtasks_that_were_set_however_little_is_read():
    builder = Builder()
    left, right = builder.source(KEYED), builder.source(KEYED)
    grouped(builder, builder.join(left, right, left_on="k", right_on="k", how=JoinType.SEMI))
    assert set(parallelisms(builder, SET)) == {4}
    assert set(parallelisms(builder, msgspec.structs.replace(SET, small_input_bytes=0))) == {4}
