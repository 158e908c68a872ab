"""Inner joins whose pairs are not counted: where they become semi joins, where they stay, and the same rows."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest
from hypothesis import strategies as st

from engine.graph.expression import ColumnRef
from engine.graph.plan import Join, Plan
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.interpreter import run_plan
from tests.optimizer.plan_building import Builder, call, column, lit, schema

VALUES = st.sampled_from([None, 0, 1, 1, 2, 3])
COLUMNS = {"asked": ("k", "x"), "sales": ("k2", "y"), "returns": ("k3", "z")}
KINDS = ("semi", "anti", "distinct", "minimum", "filter", "union")
COUNTED = ("rows", "sum", "left")


def plan_of(kind: str, side: str = "k2", hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES, **join: object) -> Plan:
    """Sales beside the returns of the same key, of which one column is read."""
    builder = Builder()
    keys = {name: ColumnStatistics(distinct_count=6e5) for name in ("k", "k2", "k3")}
    asked, sales, returns = (
        builder.source(schema(**dict.fromkeys(columns, "int64")), rows=1e6, path=name, columns=keys)
        for name, columns in COLUMNS.items()
    )
    pairs = builder.join(sales, returns, left_on="k2", right_on="k3", hint=hint, **join)
    rows = builder.project(pairs, (column("key"), ColumnRef(side)))
    match kind:
        case "filter":
            rows = builder.aggregate(builder.filter(rows, call("greater", "key", lit(0))), ("key",))
        case "union":
            rows = builder.aggregate(
                builder.union(rows, builder.project(asked, (column("key"), ColumnRef("k")))), ("key",)
            )
        case "distinct":
            rows = builder.aggregate(rows, ("key",))
        case "minimum":
            rows = builder.aggregate(rows, (), ("min", "key"))
        case "sum":
            rows = builder.aggregate(rows, (), ("sum", "key"))
        case "semi" | "anti" | "left":
            rows = builder.join(asked, rows, left_on="k", right_on="key", how=JoinType(kind))
    builder.sink(rows)
    return builder.plan()


def inner_joins(plan: Plan) -> int:
    return sum(isinstance(node.operator, Join) and node.operator.how is JoinType.INNER for node in plan.nodes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["k2", "y", "k3", "z"])
def test_a_join_for_distinct_rows_becomes_a_semi_join(kind, side):
    plan = rewrite(plan_of(kind, side))
    assert inner_joins(plan) == 0
    assert rewrite(plan) == plan


@pytest.mark.parametrize("kind", COUNTED)
def test_rows_that_are_counted_stay(kind):
    assert inner_joins(rewrite(plan_of(kind))) == 1


def test_a_hint_stays():
    assert inner_joins(rewrite(plan_of("semi", hint=JoinHint.BROADCAST_HASH_SECOND))) == 1


@hypothesis.given(
    st.sampled_from(KINDS + COUNTED),
    st.sampled_from(["k2", "y", "k3", "z"]),
    st.sampled_from([None, call("less", "y", "z")]),
    st.fixed_dictionaries(
        {
            name: st.lists(st.fixed_dictionaries(dict.fromkeys(columns, VALUES)), min_size=1, max_size=5)
            for name, columns in COLUMNS.items()
        }
    ),
)
def test_the_rows_are_the_same(kind, side, condition, data):
    plan = plan_of(kind, side, condition=condition)
    assert shown(plan, data) == shown(rewrite(plan), data)


def shown(plan: Plan, data: dict[str, list[dict[str, object]]]) -> Counter[tuple[object, ...]]:
    names = plan.node(plan.sinks[0]).schema.names
    return Counter(tuple(row[name] for name in names) for row in run_plan(plan, data)[0])
