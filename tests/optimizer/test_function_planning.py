"""Functions over groups and functions with broadcast data sets in the physical plan."""

from __future__ import annotations

import pytest

from engine.graph.exchange_mode import DataExchangeMode, ExecutionMode
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.operator_descriptor import PythonOperator, SortOperator
from engine.graph.pipelined_regions import pipelined_regions
from engine.graph.plan import CoGroup, GroupReduce, PythonFunction, decode_plan, encode_plan
from engine.graph.plan_schema import PlanSchema
from engine.graph.ship_strategy import ShipStrategy
from engine.ids import JobId
from engine.memory.page_budget import OPERATOR_PAGES_MIN, PageBudget
from engine.optimizer.explain import explain
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.physical_plan import OptimizedPlan, PhysicalNode
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, lit, schema

PAIR = schema(k="int64", v="int64")
PAGE = 32 << 10


def function(kind: str, *broadcasts: str) -> PythonFunction:
    return PythonFunction(kind, b"pickle", "fn", "job.py", 7, broadcasts)


def reduced(builder: Builder, source: int, *keys: str, broadcasts: dict[str, int] | None = None) -> int:
    named = broadcasts or {}
    operator = GroupReduce(keys, function("reduce", *named))
    return builder.add(operator, (source, *named.values()), PAIR)


def co_grouped(builder: Builder, left: int, right: int) -> int:
    pairs = schema(__key0="int64", __side="int32", __left1="int64", __right1="int64")

    def columns(side: int) -> tuple[NamedExpression, ...]:
        own, other = ("__left1", "__right1") if side == 0 else ("__right1", "__left1")
        values = {"__key0": ColumnRef("k"), "__side": lit(side), own: ColumnRef("v"), other: lit(None)}
        return tuple(NamedExpression(name, values[name]) for name in pairs.names)

    views = ((("k", "__key0"), ("v", "__left1")), (("k", "__key0"), ("v", "__right1")))
    operator = CoGroup(("__key0",), function("co_group"), columns(0), columns(1), pairs, views)
    return builder.add(operator, (left, right), PAIR)


def optimized(builder: Builder, **settings: object) -> OptimizedPlan:
    plan = builder.plan()
    assert decode_plan(encode_plan(plan)) == plan
    return optimize(plan, OptimizerSettings(**{"parallelism": 4, **settings}))


def by_operator(plan: OptimizedPlan, kind: type) -> list[PhysicalNode]:
    return [node for node in plan.nodes if isinstance(node.descriptor.operator, kind)]


def test_a_reduce_is_a_sort_behind_a_hash_exchange_and_the_function_chained_to_it() -> None:
    builder = Builder()
    builder.sink(reduced(builder, builder.source(PAIR), "k"))
    plan = optimized(builder)
    (sort,), (python,) = by_operator(plan, SortOperator), by_operator(plan, PythonOperator)
    assert [channel.ship_strategy for channel in sort.inputs] == [ShipStrategy.PARTITION_HASH]
    assert sort.inputs[0].partitioner.keys == ("k",)
    assert [channel.source for channel in python.inputs] == [sort.id]
    assert (sort.parallelism, python.parallelism) == (4, 4)
    graph = generate_job_graph(plan, JobId("0" * 32), "job")
    assert [len(vertex.chain) for vertex in graph.vertices] == [1, 3], "source; sort, function and sink"
    text = explain(plan)
    assert "reduce fn by k, SORTED_GROUPS" in text
    assert "function fn (job.py:7)" in text


def test_rows_that_lie_grouped_stay_where_they_are() -> None:
    builder = Builder()
    counted = builder.aggregate(builder.source(PAIR), ("k",), ("sum", "v"))
    builder.sink(reduced(builder, counted, "k"))
    (sort,) = by_operator(optimized(builder), SortOperator)
    assert sort.inputs[0].ship_strategy is ShipStrategy.FORWARD


def test_without_keys_all_rows_go_to_one_subtask_and_nothing_is_sorted() -> None:
    builder = Builder()
    builder.sink(reduced(builder, builder.source(PAIR)))
    plan = optimized(builder)
    (python,) = by_operator(plan, PythonOperator)
    assert python.parallelism == 1
    assert not by_operator(plan, SortOperator)
    assert python.inputs[0].partitioner.kind == "GLOBAL"


def test_rows_of_a_sorted_input_keep_their_order_in_their_group() -> None:
    builder = Builder()
    builder.sink(reduced(builder, builder.sort(builder.source(PAIR, rows=1e8), "v"), "k"))
    grouping = by_operator(optimized(builder), SortOperator)[-1]
    assert grouping.inputs[0].partitioner.in_order


def test_both_sides_of_a_co_group_are_sorted_as_one() -> None:
    builder = Builder()
    left, right = builder.source(PAIR), builder.source(PAIR, rows=10)
    builder.sink(co_grouped(builder, left, right))
    plan = optimized(builder)
    (sort,), (python,) = by_operator(plan, SortOperator), by_operator(plan, PythonOperator)
    assert [channel.input_index for channel in sort.inputs] == [0, 0]
    assert {channel.partitioner.keys for channel in sort.inputs} == {("__key0",)}
    operator = sort.descriptor.operator
    assert isinstance(operator, SortOperator)
    assert [key.column for key in operator.keys] == ["__key0", "__side"]
    assert python.descriptor.input_schemas == (sort.descriptor.output_schema,)
    assert "co_group fn" in explain(plan)
    generate_job_graph(plan, JobId("0" * 32), "job").validate()


@pytest.mark.parametrize("mode", list(ExecutionMode))
def test_a_broadcast_data_set_is_blocking_in_every_mode(mode: ExecutionMode) -> None:
    builder = Builder()
    source = builder.source(PAIR)
    names = builder.python(source)
    mapped = builder.add(function("map", "names", "more"), (source, names, source), PAIR)
    builder.sink(reduced(builder, mapped, "k", broadcasts={"all": source}))
    plan = optimized(builder, execution_mode=mode)
    broadcasts = [
        channel for node in by_operator(plan, PythonOperator) for channel in node.inputs if channel.input_index > 0
    ]
    assert len(broadcasts) == 3
    assert {channel.ship_strategy for channel in broadcasts} == {ShipStrategy.BROADCAST}
    assert {channel.exchange_mode for channel in broadcasts} == {DataExchangeMode.BATCH}
    regions = pipelined_regions(generate_job_graph(plan, JobId("0" * 32), "job"))
    assert len(regions) >= 2, "what makes the data set has ended before the function starts"


def test_two_sorts_that_do_not_fit_into_a_slot_run_one_after_the_other() -> None:
    builder = Builder()
    first = reduced(builder, builder.source(PAIR), "k")
    builder.sink(reduced(builder, first, "v"))
    plan = optimized(builder, page_budget=PageBudget(OPERATOR_PAGES_MIN * PAGE, PAGE))
    second = by_operator(plan, SortOperator)[1]
    assert second.inputs[0].exchange_mode is DataExchangeMode.BATCH


def test_estimates_of_groups_never_exceed_the_rows() -> None:
    builder = Builder()
    left, right = builder.source(PAIR, rows=1e6), builder.source(PAIR, rows=100)
    builder.sink(reduced(builder, left, "k"))
    builder.sink(co_grouped(builder, left, right))
    found = {node.descriptor.name: node.estimates for node in by_operator(optimized(builder), PythonOperator)}
    assert found["reduce fn by k"].rows == pytest.approx(1e6**0.75)
    assert found["co_group fn"].rows == pytest.approx(1e6**0.75 + 100**0.75)
    assert all(each.size_bytes > 0 for each in found.values())


def test_names_of_columns_used_by_functions_are_all_kept() -> None:
    builder = Builder()
    wide: PlanSchema = schema(k="int64", v="int64", w="string")
    source = builder.source(wide)
    builder.sink(reduced(builder, source, "k"))
    (sort,) = by_operator(optimized(builder), SortOperator)
    assert sort.descriptor.output_schema.names == ("k", "v", "w")
