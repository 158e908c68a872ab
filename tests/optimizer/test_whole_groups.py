"""Whole groups: which aggregates may give out states as they come, and that none does where the job would hang."""

from __future__ import annotations

import pytest

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.operator_descriptor import HashAggregateOperator
from engine.graph.plan import Plan
from engine.graph.said_operators import JoinHint
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.optimizer import optimize
from engine.optimizer.physical_plan import OptimizedPlan
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, schema

SALES = schema(customer="int64", day="int64", price="int32")
FEW = {"customer": ColumnStatistics(distinct_count=1000), "day": ColumnStatistics(distinct_count=4)}
UNIQUE = {"id": ColumnStatistics(distinct_count=1000)}


def grouped(builder: Builder, sales: int, *keys: str) -> int:
    """Groups above a join, which are states below it."""
    customers = builder.source(
        schema(id="int64", name="string"), rows=900, columns=UNIQUE, path=f"customers{len(builder.nodes)}.parquet"
    )
    joined = builder.join(sales, customers, left_on="customer", right_on="id")
    return builder.aggregate(joined, keys, ("sum", "price"))


def optimized(builder: Builder, mode: ExecutionMode = ExecutionMode.PIPELINED, parallelism: int = 1) -> OptimizedPlan:
    plan: Plan = builder.plan()
    return optimize(plan, OptimizerSettings(parallelism=parallelism, execution_mode=mode))


def marks(plan: OptimizedPlan) -> list[bool]:
    """Whether each final phase may give out states as they come."""
    found = (node.descriptor.operator for node in plan.nodes)
    return [
        each.takes_whole_groups for each in found if isinstance(each, HashAggregateOperator) and each.phase == "final"
    ]


@pytest.mark.parametrize(
    ("keys", "is_marked"),
    [(("id", "name", "day"), True), (("customer", "day"), True), (("name", "day"), False), (("day", "id"), True)],
)
def test_keys_that_say_which_group_of_the_first_phase_a_row_is_of(keys, is_marked):
    builder = Builder()
    builder.sink(grouped(builder, builder.source(SALES, rows=1e6, columns=FEW), *keys))
    assert marks(optimized(builder)) == [is_marked]
    assert True not in marks(optimized(builder, parallelism=2))


@pytest.mark.parametrize("mode", ExecutionMode)
def test_an_aggregate_that_the_join_above_holds_up_takes_all_states_first(mode):
    """Sales are the build side, for which the groups of the same sales would have to wait."""
    builder = Builder()
    sales = builder.limit(builder.source(SALES, rows=1e6, columns=FEW), 900_000)
    groups = grouped(builder, sales, "id", "day")
    days = builder.python(sales, out=schema(sold="int64", paid="int32"))
    builder.sink(builder.join(groups, days, left_on="id", right_on="sold", hint=JoinHint.REPARTITION_HASH_SECOND))
    assert marks(optimized(builder, mode)) == [mode is not ExecutionMode.PIPELINED_FORCED]
