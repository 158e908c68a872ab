"""Aggregates below joins: groups that nobody asks for are not made, and the rows are the same."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from engine import Environment
from engine.graph.expression import ColumnRef
from engine.graph.plan import Aggregate, Join, Plan
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.interpreter import run_plan
from tests.optimizer.plan_building import Builder, call, column, lit, schema

VALUES = st.sampled_from([None, 0, 1, 1, 2, 3])
TABLES = ("asked", "items")
KEPT = {JoinType.INNER: True, JoinType.LEFT: True, JoinType.SEMI: True, JoinType.ANTI: True, JoinType.RIGHT: False}


def asked_groups(how: JoinType = JoinType.INNER, asked_rows: float = 10, between: bool = True) -> Plan:
    """Some keys beside the sums of a large table, with a filter and new names between."""
    builder = Builder()
    asked = builder.source(schema(k="int64", x="int64"), rows=asked_rows, path="asked")
    items = builder.source(schema(k="int64", v="int64"), rows=1e6, path="items")
    groups = builder.aggregate(items, ("k",), ("sum", "v"))
    total = builder.schema(groups).names[1]
    if between:
        groups = builder.filter(groups, call("greater", total, lit(1)))
    groups = builder.project(groups, (column("key"), ColumnRef("k")), (column("total"), ColumnRef(total)))
    builder.sink(builder.join(asked, groups, left_on="k", right_on="key", how=how))
    return builder.plan()


def is_reduced(plan: Plan) -> bool:
    (groups,) = [node for node in plan.nodes if isinstance(node.operator, Aggregate)]
    below = plan.node(groups.inputs[0]).operator
    return isinstance(below, Join) and below.how is JoinType.SEMI


@pytest.mark.parametrize("how", KEPT)
def test_only_groups_that_are_asked_for_are_made(how):
    plan = rewrite(asked_groups(how))
    assert is_reduced(plan) is KEPT[how]
    assert rewrite(plan) == plan


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
def test_distinct_keys_are_not_reduced_by_what_their_join_asks(how):
    builder = Builder()
    asked = builder.source(schema(k="int64"), rows=10, path="asked")
    items = builder.source(schema(key="int64", v="int64"), rows=1e6, path="items")
    builder.sink(builder.join(asked, builder.aggregate(items, ("key",)), left_on="k", right_on="key", how=how))
    assert not is_reduced(rewrite(builder.plan()))


def test_a_side_that_asks_for_most_groups_reduces_nothing():
    assert not is_reduced(rewrite(asked_groups(asked_rows=1e6)))


def test_up_to_a_quarter_of_the_groups_is_worth_asking_for():
    for rows, is_worth in ((0.2, True), (0.3, False)):
        builder = Builder()
        asked = builder.source(schema(k2="int64"), rows=rows * 100_000, path="asked")
        known = {"k": ColumnStatistics(distinct_count=100_000)}
        items = builder.source(schema(k="int64", v="int64"), rows=1e6, columns=known, path="items")
        groups = builder.aggregate(items, ("k",), ("sum", "v"))
        builder.sink(builder.join(asked, groups, left_on="k2", right_on="k"))
        assert is_reduced(rewrite(builder.plan())) is is_worth


@pytest.mark.parametrize(("stores", "is_worth"), [(20, False), (1000, True)])
def test_groups_of_two_keys_are_asked_for_by_values_of_one(stores, is_worth):
    builder = Builder()
    asked = builder.source(schema(s2="int64"), rows=10, path="asked")
    known = {"s": ColumnStatistics(distinct_count=stores), "k": ColumnStatistics(distinct_count=50_000)}
    items = builder.source(schema(s="int64", k="int64", v="int64"), rows=1e6, columns=known, path="items")
    groups = builder.aggregate(items, ("s", "k"), ("sum", "v"))
    builder.sink(builder.join(asked, groups, left_on="s2", right_on="s"))
    assert is_reduced(rewrite(builder.plan())) is is_worth


def test_rows_are_reduced_once_also_where_the_semi_join_moves_to_the_other_side():
    """Names of customers are asked for, so the semi join goes to the customers, the right side of the join below."""
    builder = Builder()
    asked = builder.source(schema(who="int64"), rows=100, path="asked")
    sales = builder.source(schema(c="int64", v="int64"), rows=1e6, path="sales")
    customers = builder.source(schema(id="int64", name="int64"), rows=1e4, path="customers")
    groups = builder.aggregate(builder.join(sales, customers, left_on="c", right_on="id"), ("name",), ("max", "v"))
    builder.sink(builder.join(asked, groups, left_on="who", right_on="name"))
    plan = rewrite(builder.plan())
    (semi,) = [node for node in plan.nodes if isinstance(node.operator, Join) and node.operator.how is JoinType.SEMI]
    assert plan.node(semi.inputs[0]).operator.spec.paths == ("customers",)
    assert rewrite(plan) == plan


def test_keys_that_are_no_group_keys_reduce_nothing():
    builder = Builder()
    asked = builder.source(schema(x="int64"), rows=10, path="asked")
    groups = builder.aggregate(
        builder.source(schema(k="int64", v="int64"), rows=1e6, path="items"), ("k",), ("sum", "v")
    )
    total = builder.schema(groups).names[1]
    builder.sink(builder.join(asked, groups, left_on="x", right_on=total))
    assert not is_reduced(rewrite(builder.plan()))


@pytest.mark.parametrize("how", ["left", "inner"])
def test_groups_whose_key_equals_two_columns_are_asked_for_by_one_of_them(how):
    with Environment(config={"parallelism.default": 3}) as env:
        asked = env.from_arrow(pa.table({"x": [1, 2], "y": [1, 3]}))
        pairs = env.from_arrow(pa.table({"v": [0, 1, 2] * 8, "u": [row // 3 for row in range(24)]})).distinct()
        found = asked.join(pairs, left_on=["x", "y"], right_on=["u", "u"], how=how)
        assert "semi join on u, HASH" in found.explain()
        rows = [(1, 1, v) for v in (0, 1, 2)] + ([(2, 3, None)] if how == "left" else [])
        assert sorted((row.x, row.y, row.v) for row in found.collect()) == rows


def test_the_first_of_a_group_stays_the_first():
    builder = Builder()
    asked = builder.source(schema(k2="int64"), rows=10, path="asked")
    items = builder.sort(builder.source(schema(k="int64", v="int64"), rows=1e6, path="items"), "v")
    groups = builder.aggregate(items, ("k",), ("first", "v"))
    builder.sink(builder.join(asked, groups, left_on="k2", right_on="k"))
    assert not is_reduced(rewrite(builder.plan()))


def test_groups_with_another_use_are_all_made():
    builder = Builder()
    asked = builder.source(schema(k2="int64"), rows=10, path="asked")
    groups = builder.aggregate(
        builder.source(schema(k="int64", v="int64"), rows=1e6, path="items"), ("k",), ("sum", "v")
    )
    builder.sink(builder.join(asked, groups, left_on="k2", right_on="k"))
    builder.sink(groups, "all")
    assert not is_reduced(rewrite(builder.plan()))


@hypothesis.given(
    st.sampled_from([how for how in JoinType if how is not JoinType.CROSS]),
    st.sampled_from([10, 1e6]),
    st.booleans(),
    st.fixed_dictionaries(
        {
            "asked": st.lists(st.fixed_dictionaries({"k": VALUES, "x": VALUES}), min_size=1, max_size=6),
            "items": st.lists(st.fixed_dictionaries({"k": VALUES, "v": VALUES}), min_size=1, max_size=8),
        }
    ),
)
def test_the_rows_are_the_same(how, asked_rows, between, data):
    plan = asked_groups(how, asked_rows, between)
    rewritten = rewrite(plan)
    names = plan.node(plan.sinks[0]).schema.names
    found = [run_plan(each, data)[0] for each in (plan, rewritten)]
    shown = [Counter(tuple(row[name] for name in names) for row in rows) for rows in found]
    assert shown[0] == shown[1]


def test_different_values_that_a_semi_join_looks_at_are_not_asked_for_by_that_join_again():
    builder = Builder()
    asked = builder.source(schema(k="int64"), rows=10, path="asked")
    items = builder.source(schema(key="int64", v="int64"), rows=1e6, path="items")
    builder.sink(
        builder.join(asked, builder.aggregate(items, ("key",)), left_on="k", right_on="key", how=JoinType.SEMI)
    )
    assert not is_reduced(rewrite(builder.plan()))
