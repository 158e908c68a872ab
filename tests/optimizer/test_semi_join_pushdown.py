"""Semi joins over and below inner joins: where they move, where they stay, and the same rows."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest
from hypothesis import strategies as st

from engine.graph.expression import ColumnRef, Expression
from engine.graph.plan import Join, Plan, PlanNode, Project, Source
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.explain import explain
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.interpreter import run_plan
from tests.optimizer.plan_building import Builder, call, column, lit, schema

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


@pytest.mark.parametrize("is_computed", [False, True])
def test_a_projection_between_comes_after_both_unless_it_makes_the_key(is_computed):
    builder = Builder()
    orders = builder.source(schema(k="int64", c="int64", x="int64"), rows=1e6, path="orders")
    customers = builder.source(schema(k2="int64", y="int64"), rows=1e5, path="customers")
    large = builder.source(schema(k3="int64"), rows=1000, path="large")
    pairs = builder.join(orders, customers, left_on="k", right_on="k2")
    made = call("add", "c", lit(1)) if is_computed else ColumnRef("c")
    named = builder.project(pairs, (column("who"), made), (column("sum"), call("add", "x", "y")))
    builder.sink(builder.join(named, large, left_on="who", right_on="k3", how=JoinType.SEMI))
    plan = rewrite(builder.plan())
    below = below_the_asking_join(plan).operator
    assert isinstance(below, Project if is_computed else Source)
    assert plan.node(plan.sinks[0]).schema.names == ("who", "sum")
    data = {
        "orders": [{"k": number % 3, "c": number, "x": number} for number in range(9)],
        "customers": [{"k2": number, "y": 10} for number in range(2)],
        "large": [{"k3": number} for number in (1, 4, 5, 6)],
    }
    assert run_plan(plan, data) == run_plan(builder.plan(), data) != [[]]


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


def asked_first(
    how: JoinType = JoinType.SEMI,
    customers_rows: float = 10,
    side: int = 0,
    coalesce: bool = False,
    condition: Expression | None = None,
    join_condition: Expression | None = None,
    hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES,
    large_rows: float = 1e6,
    **rest: object,
) -> Plan:
    """Orders that are among the large ones, with their customers."""
    builder = Builder()
    known = {"c": ColumnStatistics(distinct_count=1e6), "k": ColumnStatistics(distinct_count=1e5)}
    orders = builder.source(schema(k="int64", c="int64", x="int64"), rows=1e6, path="orders", columns=known)
    customers = builder.source(schema(k2="int64", y="int64"), rows=customers_rows, path="customers")
    asked_of = {"k3": ColumnStatistics(distinct_count=large_rows / 2)}
    large = builder.source(schema(k3="int64", z="int64"), rows=large_rows, path="large", columns=asked_of)
    if coalesce:
        customers = builder.project(customers, (builder.schema(orders).column("k"), ColumnRef("k2")), "y")
    first = builder.join(orders, large, left_on="c", right_on="k3", how=how, condition=condition, **rest)
    keys = {"on": "k"} if coalesce else {"left_on": ("k", "k2")[side], "right_on": ("k2", "k")[side]}
    sides = (first, customers) if side == 0 else (customers, first)
    builder.sink(builder.join(*sides, condition=join_condition, hint=hint, **keys))
    return builder.plan()


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("side", [0, 1])
def test_a_join_that_leaves_fewer_rows_comes_first(how, side):
    plan = rewrite(asked_first(how, side=side))
    assert isinstance(below_the_asking_join(plan).operator, Join)
    assert plan.node(plan.sinks[0]).schema.names == asked_first(how, side=side).nodes[-1].schema.names
    assert "behind the join that leaves fewer rows" in explain(optimize(plan, OptimizerSettings()))
    assert rewrite(plan) == plan


@pytest.mark.parametrize(
    "rest",
    [
        {"customers_rows": 1e5},  # the join leaves all rows
        {"large_rows": 20},  # the semi join leaves fewer
        {"how": JoinType.ANTI, "null_aware": True},
        {"hint": JoinHint.REPARTITION_HASH_FIRST},
        {"join_condition": call("greater", call("divide", lit(6), "x"), "y")},
    ],
)
def test_a_semi_join_stays_below(rest):
    assert isinstance(below_the_asking_join(rewrite(asked_first(**rest))).operator, Source)


@hypothesis.given(
    st.sampled_from([JoinType.SEMI, JoinType.ANTI]),
    st.sampled_from([10, 1e5]),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.sampled_from([None, call("less", "x", "z"), call("not", call("equal", "c", "z"))]),
    st.sampled_from([None, call("less", "x", "y")]),
    st.fixed_dictionaries(
        {
            name: st.lists(st.fixed_dictionaries(dict.fromkeys(columns, VALUES)), min_size=1, max_size=5)
            for name, columns in COLUMNS.items()
        }
    ),
)
def test_the_rows_of_a_join_that_comes_first_are_the_same(how, rows, side, coalesce, condition, join_condition, data):
    plan = asked_first(how, rows, 0 if coalesce else side, coalesce, condition, join_condition)
    assert shown(plan, data) == shown(rewrite(plan), data)


def shown(plan: Plan, data: dict[str, list[dict[str, object]]]) -> Counter[tuple[object, ...]]:
    names = plan.node(plan.sinks[0]).schema.names
    return Counter(tuple(row[name] for name in names) for row in run_plan(plan, data)[0])


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
    assert shown(plan, data) == shown(rewrite(plan), data)
