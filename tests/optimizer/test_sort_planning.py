"""How sorts and limits run, and who keeps their order."""

import pytest

from engine.graph.exchange_mode import DataExchangeMode, ExecutionMode
from engine.graph.operator_descriptor import LimitOperator, MergeRunsOperator, SortOperator, SortRunsOperator
from engine.graph.ship_strategy import SORTED_RUNS, ShipStrategy
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import SMALL_SORT_BYTES
from tests.optimizer.plan_building import Builder, schema

LARGE = 10_000_000


def planned(build, rows=LARGE, mode=ExecutionMode.PIPELINED, parallelism=4):
    builder = Builder()
    source = builder.source(schema(a="int64", b="int64"), rows, 16.0 * rows)
    builder.sink(build(builder, source))
    optimized = optimize(builder.plan(), OptimizerSettings(parallelism=parallelism, execution_mode=mode))
    optimized.validate()
    return optimized


def operators(optimized, kind):
    return [node for node in optimized.nodes if isinstance(node.descriptor.operator, kind)]


@pytest.mark.parametrize("mode", ExecutionMode)
def test_a_large_sort_is_runs_and_merges_with_a_blocking_exchange_in_every_mode(mode):
    optimized = planned(lambda builder, source: builder.sort(source, "a"), mode=mode)
    (runs,), (merge,) = operators(optimized, SortRunsOperator), operators(optimized, MergeRunsOperator)
    (channel,) = merge.inputs
    assert channel.source == runs.id
    assert (channel.ship_strategy, channel.partitioner.kind) == (ShipStrategy.PARTITION_RANGE, SORTED_RUNS)
    assert channel.exchange_mode is DataExchangeMode.BATCH
    assert (runs.parallelism, merge.parallelism, optimized.nodes[-1].parallelism) == (4, 4, 4)
    assert runs.uses_memory and merge.uses_memory
    assert runs.absorbs(0)


def test_a_small_sort_is_done_in_one_subtask_and_says_why():
    optimized = planned(lambda builder, source: builder.sort(source, "a"), rows=1_000)
    assert [node.parallelism for node in operators(optimized, SortOperator)] == [1]
    assert operators(optimized, MergeRunsOperator) == []
    assert "sorted in one subtask, as up to 4 MB" in explain(optimized)
    assert SMALL_SORT_BYTES == 4e6


def test_one_subtask_by_default_means_one_subtask():
    optimized = planned(lambda builder, source: builder.sort(source, "a"), parallelism=1)
    assert operators(optimized, MergeRunsOperator) == []


def test_a_top_stays_without_a_sort_of_everything():
    optimized = planned(lambda builder, source: builder.limit(builder.sort(source, "a"), 10))
    assert [node.strategy for node in operators(optimized, SortOperator)] == ["LOCAL_TOP", "TOP"]


def test_a_limit_behind_a_function_reads_the_subtasks_in_turn():
    optimized = planned(lambda builder, source: builder.limit(builder.python(builder.sort(source, "a"), "filter"), 10))
    local, final = operators(optimized, LimitOperator)
    assert (local.parallelism, final.parallelism) == (4, 1)
    (channel,) = final.inputs
    assert channel.partitioner.in_order
    assert "one subtask after the other, in order" in explain(optimized)


def test_a_limit_without_an_order_takes_what_comes():
    optimized = planned(lambda builder, source: builder.limit(source, 10))
    (channel,) = operators(optimized, LimitOperator)[-1].inputs
    assert not channel.partitioner.in_order


def test_a_top_larger_than_memory_is_a_sort_and_a_limit():
    optimized = planned(lambda builder, source: builder.limit(builder.sort(source, "a"), LARGE - 1))
    assert operators(optimized, SortOperator) == []
    (runs,) = operators(optimized, SortRunsOperator)
    assert runs.descriptor.operator.limit == LARGE - 1
    local, final = operators(optimized, LimitOperator)
    assert (local.parallelism, final.parallelism) == (4, 1)
    assert final.inputs[0].partitioner.in_order
