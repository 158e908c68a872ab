"""Aggregates over an inequality become running ones where there are many more pairs than rows."""

from __future__ import annotations

import pytest

from engine.graph.plan import AsofJoin, Plan
from engine.graph.said_operators import JoinHint, JoinType
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.plan_building import Builder, call, schema


def groups_of_pairs(rows: float, own_rows: float, hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> Plan:
    builder = Builder()
    left = builder.source(schema(t="int64"), rows=rows, path="left")
    right = builder.source(schema(u="int64", v="int64"), rows=own_rows, path="right")
    joined = builder.join(left, right, how=JoinType.CROSS, condition=call("less", "u", "t"), hint=hint)
    builder.sink(builder.aggregate(joined, ("t",), ("count", "v")))
    return builder.plan()


@pytest.mark.parametrize(
    ("rows", "own_rows", "is_running"), [(1000, 1000, True), (1e6, 1e6, True), (1e6, 10, False), (10, 1e6, False)]
)
def test_it_pays_where_there_are_more_pairs_than_rows(rows, own_rows, is_running):
    plan = rewrite(groups_of_pairs(rows, own_rows))
    assert any(isinstance(node.operator, AsofJoin) for node in plan.nodes) is is_running
    assert rewrite(plan) == plan


def test_a_join_that_is_hinted_stays():
    plan = rewrite(groups_of_pairs(1000, 1000, JoinHint.BROADCAST_HASH_SECOND))
    assert not any(isinstance(node.operator, AsofJoin) for node in plan.nodes)
