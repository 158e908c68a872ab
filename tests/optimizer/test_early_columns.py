"""Early columns: what is computed of one side of a join is computed before it, where that side has far fewer rows."""

from __future__ import annotations

import pytest

from engine.graph.expression import ColumnRef, columns_of
from engine.graph.plan import Join, Plan, PlanNode, Project
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.plan_building import Builder, call, column, lit, schema

SALES = schema(item="int64", day="int32", price="int32", note="string")
ITEMS = schema(id="int64", name="string", size="int32")
UNIQUE = {"id": ColumnStatistics(distinct_count=1000)}
FEW = {"item": ColumnStatistics(distinct_count=1000)}

LOWER = call("str_length", "name")
CUT = (column("cut", "int64"), LOWER)


def joined(builder: Builder, how: JoinType = JoinType.INNER, is_turned: bool = False, rows: float = 1e6) -> int:
    sales = builder.source(SALES, rows=rows, columns=FEW, path="sales.parquet")
    items = builder.source(ITEMS, rows=1000, columns=UNIQUE, path="items.parquet")
    if is_turned:
        return builder.join(items, sales, left_on="id", right_on="item", how=how)
    return builder.join(sales, items, left_on="item", right_on="id", how=how)


def rewritten(builder: Builder, node: int) -> Plan:
    builder.sink(node)
    plan = rewrite(builder.plan())
    plan.validate()
    return plan


def computing(plan: Plan) -> list[PlanNode]:
    """Return the projections that compute something."""
    return [
        node
        for node in plan.nodes
        if isinstance(node.operator, Project)
        and not all(isinstance(named.expression, ColumnRef) for named in node.operator.expressions)
    ]


def reads(plan: Plan, node: PlanNode) -> str:
    """Return which table a projection is right above, "" for neither."""
    names = plan.node(node.inputs[0]).schema.names
    is_source = not plan.node(node.inputs[0]).inputs
    return "" if not is_source else "items" if set(names) <= set(ITEMS.names) else "sales"


@pytest.mark.parametrize("is_turned", [False, True])
def test_names_are_looked_at_before_the_join_and_not_carried_through_it(is_turned):
    builder = Builder()
    plan = rewritten(builder, builder.project(joined(builder, is_turned=is_turned), "price", CUT))
    (node,) = computing(plan)
    assert reads(plan, node) == "items"
    (join,) = (each for each in plan.nodes if isinstance(each.operator, Join))
    assert set(join.schema.names) == {"price", "cut"}
    assert plan.node(plan.sinks[0]).schema.names == ("price", "cut")


def test_columns_go_below_all_joins_filters_and_other_names():
    builder = Builder()
    sales = joined(builder)
    renamed = builder.project(sales, "price", "day", (column("called", "string"), ColumnRef("name")))
    days = builder.source(schema(number="int32", year="int32"), rows=1000, path="days.parquet")
    both = builder.join(renamed, days, left_on="day", right_on="number")
    some = builder.filter(both, call("less", "year", "price"))
    plan = rewritten(builder, builder.project(some, "price", (CUT[0], call("str_length", "called"))))
    (node,) = computing(plan)
    assert reads(plan, node) == "items"
    assert plan.node(plan.sinks[0]).schema.names == ("price", "cut")


def test_a_column_takes_another_name_where_a_side_has_its_own():
    builder = Builder()
    plan = rewritten(builder, builder.project(joined(builder), "price", (column("name", "int64"), LOWER)))
    (node,) = computing(plan)
    assert reads(plan, node) == "items"
    assert {"name#2"} == set(node.schema.names) - set(ITEMS.names)
    assert plan.node(plan.sinks[0]).schema.names == ("price", "name")


@pytest.mark.parametrize(
    ("how", "is_turned", "is_early"),
    [
        (JoinType.LEFT, False, False),  # items without a partner are null, whose length may be anything
        (JoinType.LEFT, True, True),
        (JoinType.RIGHT, False, True),
        (JoinType.RIGHT, True, False),
        (JoinType.FULL, False, False),
        (JoinType.FULL, True, False),
    ],
)
def test_rows_of_that_side_come_out_as_they_are(how, is_turned, is_early):
    builder = Builder()
    plan = rewritten(builder, builder.project(joined(builder, how, is_turned), "price", CUT))
    assert [reads(plan, node) == "items" for node in computing(plan)] == [is_early]


@pytest.mark.parametrize(
    "expression",
    [
        call("str_to_number", "name"),  # may raise for an item that nobody has bought
        call("random", "name"),
        call("str_concat", "name", "note"),  # of both sides
        call("str_length", "note"),  # of the side with more rows
    ],
    ids=lambda expression: f"{expression.function}({','.join(columns_of(expression))})",
)
def test_other_expressions_stay(expression):
    builder = Builder()
    plan = rewritten(builder, builder.project(joined(builder), "price", (CUT[0], expression)))
    assert [reads(plan, node) for node in computing(plan)] == [""]


@pytest.mark.parametrize("is_used_elsewhere", [False, True])
def test_numbers_are_computed_early_where_nobody_else_needs_them(is_used_elsewhere):
    builder = Builder()
    is_small = (column("is_small", "bool"), call("less", "size", lit(3)))
    others = ["size"] if is_used_elsewhere else []
    plan = rewritten(builder, builder.project(joined(builder), "price", is_small, *others))
    assert [reads(plan, node) for node in computing(plan)] == ["" if is_used_elsewhere else "items"]


def test_few_rows_are_left_alone():
    builder = Builder()
    plan = rewritten(builder, builder.project(joined(builder, rows=10_000), "price", CUT))
    assert [reads(plan, node) for node in computing(plan)] == [""]


def test_a_join_that_another_reads_too_is_left_alone():
    builder = Builder()
    both = joined(builder)
    builder.sink(builder.aggregate(both, ("name", "note"), ("count_all", None)))
    plan = rewritten(builder, builder.project(both, "price", CUT))
    assert all(reads(plan, node) == "" for node in computing(plan))


def test_a_second_rewriting_changes_nothing():
    builder = Builder()
    plan = rewritten(builder, builder.project(joined(builder), "price", CUT))
    assert rewrite(plan) == plan
