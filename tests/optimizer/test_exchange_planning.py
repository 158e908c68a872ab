"""Exchange modes of whole plans: deadlocks are cut, and operators that do not fit one slot are parted."""

from __future__ import annotations

import msgspec
import pytest

from engine.errors import ConfigurationError, PlanError
from engine.graph.exchange_mode import DataExchangeMode, ExecutionMode
from engine.graph.operator_descriptor import HashJoinOperator
from engine.graph.pipelined_regions import pipelined_regions
from engine.graph.plan import Plan
from engine.graph.said_operators import JoinHint
from engine.ids import JobId
from engine.memory.page_budget import OPERATOR_PAGES_MIN, PageBudget
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.memory_plan import memory_users_by_region
from engine.optimizer.optimizer import optimize
from engine.optimizer.physical_plan import OptimizedPlan
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, lit, schema, skew_join

PAGE = 32 << 10
PAIR = schema(k="int64", v="int64")


def optimized(plan: Plan, mode: ExecutionMode = ExecutionMode.PIPELINED, **settings: int) -> OptimizedPlan:
    return optimize(plan, OptimizerSettings(**{"parallelism": 4, "execution_mode": mode, **settings}))


def modes(plan: OptimizedPlan) -> dict[tuple[str, str], str]:
    """First letter of each exchange's mode, by names of producer and consumer."""
    return {
        (plan.nodes[channel.source].descriptor.name, node.descriptor.name): channel.exchange_mode.value[0]
        for node in plan.nodes
        for channel in node.inputs
    }


def branching_join() -> Plan:
    """The branching plan of the fourteen-entry table: a node feeds an aggregate and a filter that are joined again."""
    builder = Builder()
    mapped = builder.python(builder.source(PAIR, rows=1e7), name="map")
    reduced = builder.aggregate(mapped, ("k",), ("sum", "v"), name="reduce")
    builder.sink(reduced, name="reduce sink")
    filtered = builder.python(mapped, "filter", name="filter")
    joined = builder.join(reduced, filtered, on="k", hint=JoinHint.REPARTITION_HASH_FIRST, name="join")
    builder.sink(builder.python(joined, "flat_map", name="flat map"), name="flat map sink")
    other = builder.aggregate(filtered, ("v",), ("count_all", None), name="other reduce")
    cogroup = builder.join(joined, other, on="v", hint=JoinHint.REPARTITION_HASH_FIRST, name="co-group")
    builder.sink(cogroup, name="co-group sink")
    return builder.plan()


def test_the_branching_plan_has_the_fourteen_modes_of_the_table():
    found = modes(optimized(branching_join()))
    table = {
        ("parquet source part.parquet", "map"): "P",
        ("aggregate arguments", "partial reduce"): "P",
        ("partial reduce", "reduce"): "B",
        ("map", "filter"): "B",
        ("reduce", "reduce sink"): "P",
        ("reduce", "join"): "P",
        ("filter", "join"): "B",
        ("aggregate arguments", "partial other reduce"): "P",
        ("partial other reduce", "other reduce"): "B",
        ("join", "flat map"): "P",
        ("flat map", "flat map sink"): "P",
        ("join", "co-group"): "P",
        ("other reduce", "co-group"): "P",
        ("co-group", "co-group sink"): "P",
    }
    assert len(table) == 14
    assert {edge: found[edge] for edge in table} == table
    # what the table does not name are the projections of arguments, which belong to the combiners
    assert {edge: mode for edge, mode in found.items() if edge not in table} == {
        ("map", "aggregate arguments"): "P",
        ("filter", "aggregate arguments"): "P",
    }


def test_batch_mode_blocks_every_repartitioning_edge_and_no_other():
    plan = optimized(skew_join(), ExecutionMode.BATCH)
    for node in plan.nodes:
        for channel in node.inputs:
            assert (channel.exchange_mode is DataExchangeMode.BATCH) == channel.ship_strategy.is_network
            assert bool(channel.exchange_reason) == channel.ship_strategy.is_network


def test_batch_forced_blocks_every_edge():
    assert set(modes(optimized(skew_join(), ExecutionMode.BATCH_FORCED)).values()) == {"B"}


def test_pipelined_mode_blocks_nothing_without_branches():
    assert set(modes(optimized(skew_join())).values()) == {"P"}


def diamond() -> Plan:
    """A source that is read once, since it has a rate, and whose branches meet."""
    builder = Builder()
    source = builder.source(PAIR, rows=1e6)
    limited = msgspec.structs.replace(builder.nodes[source].operator, rate_limit=1e9)
    builder.nodes[source] = msgspec.structs.replace(builder.nodes[source], operator=limited)
    left = builder.python(source, name="left")
    right = builder.project(builder.python(source, name="right"), "k")
    builder.sink(builder.join(left, right, on="k", name="join"))
    return builder.plan()


def test_a_diamond_is_blocked_at_its_source():
    plan = optimized(diamond())
    found = modes(plan)
    assert found["parquet source part.parquet", "left"] == found["parquet source part.parquet", "right"] == "B"
    reasons = {channel.exchange_reason for node in plan.nodes for channel in node.inputs if not channel.is_pipelined}
    assert reasons == {"its producer's branches meet again"}


def test_a_forced_pipeline_that_would_hang_is_refused():
    with pytest.raises(PlanError, match="would wait for itself at 'join'"):
        optimized(diamond(), ExecutionMode.PIPELINED_FORCED)
    assert set(modes(optimized(skew_join(), ExecutionMode.PIPELINED_FORCED)).values()) == {"P"}


def crosswise() -> Plan:
    """Two sources meet in two joins, one the build side here and the other there."""
    builder = Builder()
    first, second = builder.source(PAIR, rows=1e6, name="first"), builder.source(PAIR, rows=1e6, name="second")
    a, b = builder.python(first, name="a"), builder.python(second, name="b")
    other = schema(k="int64", w="int64")
    for left, right, name in ((a, b, "one"), (b, a, "two")):
        renamed = builder.python(right, out=other, name=f"renamed {name}")
        builder.sink(builder.join(left, renamed, on="k", hint=JoinHint.REPARTITION_HASH_FIRST, name=name), name)
    return builder.plan()


def test_joins_that_wait_for_each_other_crosswise_are_parted():
    plan = optimized(crosswise())
    blocked = [channel.exchange_reason for node in plan.nodes for channel in node.inputs if not channel.is_pipelined]
    assert blocked == ["its build side would wait for itself", "keeps pipelined regions in order"]
    with pytest.raises(PlanError, match="PIPELINED_FORCED"):
        optimized(crosswise(), ExecutionMode.PIPELINED_FORCED)


def test_regions_run_one_after_another_when_a_shortcut_passes_a_shuffle():
    # in BATCH mode the forward edge to the union would tie it to the source that its other input waits for
    builder = Builder()
    source = builder.source(PAIR, rows=1e6, name="source")
    counted = builder.aggregate(source, ("k",), ("sum", "v"))
    builder.sink(builder.union(builder.python(counted, out=PAIR), source, name="union"))
    plan = optimized(builder.plan(), ExecutionMode.BATCH)
    assert modes(plan)["source", "union"] == "B"
    regions = pipelined_regions(generate_job_graph(plan, JobId.random(), "job"))
    assert [len(region.vertices) for region in regions] == [2, 2]


def blocking_chain(count: int, rows: float) -> Plan:
    """Sorts behind Python functions, which keep their order from being optimized away."""
    builder = Builder()
    node = builder.source(PAIR, rows=rows)
    for _ in range(count):
        node = builder.python(builder.sort(node, "v"))
    builder.sink(node)
    return builder.plan()


def test_three_blocking_operators_share_a_small_slot():
    builder = Builder()
    source = builder.source(PAIR, rows=1e7)
    joined = builder.join(source, builder.source(schema(k="int64", w="int64"), rows=1e7), on="k")
    summed = builder.aggregate(joined, ("w",), ("sum", "v"))
    builder.sink(builder.sort(summed, "w"))
    plan = optimized(builder.plan(), page_budget=PageBudget(16 << 20))
    for users in memory_users_by_region(plan.nodes):
        assert 512 - len(users) < sum(node.pages for node in users) <= 512
        assert all(node.pages >= OPERATOR_PAGES_MIN for node in users)
    assert set(modes(plan).values()) == {"P"}


#: what an operator needs is twice the root of its rows' pages: 140 of 4883, and never less than 6
@pytest.mark.parametrize(
    ("rows", "pages", "region_count"),
    [(100, 6, 3), (100, 11, 3), (100, 12, 2), (100, 18, 1), (1e7, 18, 3), (1e7, 279, 3), (1e7, 280, 2), (1e7, 420, 1)],
)
def test_operators_that_do_not_fit_together_run_one_after_another(rows, pages, region_count):
    plan = optimized(blocking_chain(3, rows), parallelism=1, page_budget=PageBudget(pages * PAGE))
    graph = generate_job_graph(plan, JobId.random(), "job")
    regions = pipelined_regions(graph)
    assert len(regions) == region_count
    for users in memory_users_by_region(plan.nodes):
        assert sum(node.pages for node in users) <= pages
        assert all(node.pages >= OPERATOR_PAGES_MIN for node in users)


def test_a_slot_with_less_than_the_least_pages_is_a_configuration_error():
    with pytest.raises(ConfigurationError, match="5 pages of 32768 bytes; an operator needs 6"):
        optimized(skew_join(), page_budget=PageBudget(5 * PAGE))


def test_a_small_build_side_leaves_memory_to_the_others():
    builder = Builder()
    small, large = builder.source(PAIR, rows=100), builder.source(schema(k="int64", w="int64"), rows=1e9)
    joined = builder.join(large, small, on="k")
    builder.sink(builder.sort(builder.filter(joined, call("greater", "w", lit(1))), "w"))
    plan = optimized(builder.plan())
    kept = {type(node.descriptor.operator): node.pages for node in plan.nodes if node.uses_memory}
    assert kept.pop(HashJoinOperator) < min(kept.values()) / 2
