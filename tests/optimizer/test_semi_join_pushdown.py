"""Semi joins over inner joins: where they move, where they stay, and the same rows."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest
from hypothesis import strategies as st

from engine.graph.plan import Join, JoinType, Plan, PlanNode, Source
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.planner import rewrite
from tests.optimizer.interpreter import run_plan
from tests.optimizer.plan_building import Builder, call, lit, schema

VALUES = st.sampled_from([None, 0, 1, 1, 2, 3])
COLUMNS = {"orders": ("k", "c", "x"), "customers": ("k2", "y"), "large": ("k3", "z")}
RISKY = call("greater", call("divide", lit(6), "x"), "z")


def asked(
    how: JoinType = JoinType.SEMI,
    rows: tuple[float, float] = (1e6, 1e5),
    key: str = "c",
    coalesce: bool = False,
    is_unique: bool = False,
    **rest: object,
) -> Plan:
    """Orders of customers that are among the large ones."""
    builder = Builder()
    known = {"k": ColumnStatistics(distinct_count=rows[0] if is_unique else rows[1])}
    orders = builder.source(schema(k="int64", c="int64", x="int64"), rows=rows[0], path="orders", columns=known)
    customers = builder.source(schema(k2="int64", y="int64"), rows=rows[1], path="customers")
    large = builder.source(schema(k3="int64", z="int64"), rows=1000, path="large")
    if coalesce:
        customers = builder.project(customers, (builder.schema(orders).column("k"), call("add", "k2", lit(0))), "y")
    keys = {"on": "k"} if coalesce else {"left_on": "k", "right_on": "k2"}
    pairs = builder.join(orders, customers, **keys)
    builder.sink(builder.join(pairs, large, left_on=key, right_on="k3", how=how, **rest))
    return builder.plan()


def below_the_asking_join(plan: Plan) -> PlanNode:
    (join,) = [
        node
        for node in plan.nodes
        if isinstance(node.operator, Join) and node.operator.how in (JoinType.SEMI, JoinType.ANTI)
    ]
    return plan.node(join.inputs[0])


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
def test_the_side_with_the_key_is_asked_first(how):
    plan = rewrite(asked(how))
    below = below_the_asking_join(plan).operator
    assert isinstance(below, Source) and below.spec.paths == ("orders",)
    assert plan.node(plan.sinks[0]).schema.names == ("k", "c", "x", "k2", "y")
    assert rewrite(plan) == plan


@pytest.mark.parametrize(
    "rest",
    [
        {"is_unique": True},  # the inner join leaves few rows
        {"condition": call("less", "y", "z")},  # over the other side
        {"condition": RISKY},
        {"how": JoinType.ANTI, "null_aware": True},
    ],
)
def test_it_stays_where_it_was_written(rest):
    assert isinstance(below_the_asking_join(rewrite(asked(**rest))).operator, Join)


@hypothesis.given(
    st.sampled_from([JoinType.SEMI, JoinType.ANTI]),
    st.sampled_from([(10.0, 1e5), (1e6, 1e5), (1e6, 10.0)]),
    st.sampled_from(["k", "c", "y"]),
    st.booleans(),
    st.sampled_from([None, call("less", "x", "z"), call("less", "y", "z")]),
    st.fixed_dictionaries(
        {
            name: st.lists(st.fixed_dictionaries(dict.fromkeys(columns, VALUES)), min_size=1, max_size=5)
            for name, columns in COLUMNS.items()
        }
    ),
)
def test_the_rows_are_the_same(how, rows, key, coalesce, condition, data):
    plan = asked(how, rows, key, coalesce, condition=condition)
    rewritten = rewrite(plan)
    names = plan.node(plan.sinks[0]).schema.names
    found = [run_plan(each, data)[0] for each in (plan, rewritten)]
    shown = [Counter(tuple(row[name] for name in names) for row in rows) for rows in found]
    assert shown[0] == shown[1]
