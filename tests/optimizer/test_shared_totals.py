"""Shared totals: aggregates without keys over the same rows are computed at once."""

from __future__ import annotations

import pytest

from engine.graph.expression import ColumnRef, Expression
from engine.graph.plan import Aggregate, Plan, Source
from engine.graph.said_operators import JoinType
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.interpreter import Row, run_plan
from tests.optimizer.plan_building import Builder, call, column, lit, schema

ROWS = schema(a="int64", b="int64", c="int64")
LARGE, ODD = call("greater", "a", lit(1)), call("equal", "b", lit(1))
DATA: dict[str, list[Row]] = {"rows": [{"a": number % 5, "b": number % 2, "c": number} for number in range(20)]}


def side_by_side(*totals: tuple[Expression | None, tuple[str, str | None]]) -> Plan:
    """Totals of filtered rows, each beside the others in the one row of a result."""
    builder = Builder()
    source = builder.source(ROWS, path="rows")
    made = []
    for predicate, (function, name) in totals:
        kept = source if predicate is None else builder.filter(source, predicate)
        chosen = builder.project(kept, "a" if name is None else name)
        made.append(builder.aggregate(chosen, (), (function, name)))
    row = made[0]
    for other in made[1:]:
        row = builder.join(row, other, how=JoinType.CROSS)
    builder.sink(row)
    return builder.plan()


def aggregates(plan: Plan) -> list[Aggregate]:
    return [node.operator for node in plan.nodes if isinstance(node.operator, Aggregate)]


def test_totals_of_the_same_rows_are_one_aggregate_each_call_once():
    plan = side_by_side(
        (LARGE, ("sum", "c")), (LARGE, ("count_all", None)), (LARGE, ("sum", "c")), (LARGE, ("max", "b"))
    )
    rewritten = rewrite(plan)
    (shared,) = aggregates(rewritten)
    assert [(each.function, each.argument) for each in shared.calls] == [
        ("sum", ColumnRef("c")),
        ("count_all", None),
        ("max", ColumnRef("b")),
    ]
    assert shared.argument_schema.names == ("__arg0", "__arg2")
    assert shared.state_schema.names == ("__state0_0", "__state1_0", "__state2_0")
    assert sum(isinstance(node.operator, Source) for node in rewritten.nodes) == 1
    assert run_plan(rewritten, DATA) == run_plan(plan, DATA)
    assert rewrite(rewritten) == rewritten


def test_filters_are_the_same_in_whatever_order_and_steps():
    builder = Builder()
    source = builder.source(ROWS, path="rows")
    one = builder.filter(builder.filter(source, LARGE), ODD)
    renamed = builder.project(source, (column("x"), ColumnRef("a")), (column("y"), ColumnRef("b")))
    other = builder.filter(renamed, call("and", call("equal", "y", lit(1)), call("greater", "x", lit(1))))
    totals = [builder.aggregate(one, (), ("max", "c")), builder.aggregate(other, (), ("min", "x"))]
    builder.sink(builder.join(*totals, how=JoinType.CROSS))
    plan = builder.plan()
    assert len(aggregates(rewrite(plan))) == 1
    assert run_plan(rewrite(plan), DATA) == run_plan(plan, DATA)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((LARGE, ("sum", "c")), (ODD, ("sum", "c"))),
        ((LARGE, ("sum", "c")), (None, ("sum", "c"))),
        ((LARGE, ("sum", "c")), (LARGE, ("first", "c"))),
        # it can raise: what it sees stays what it saw
        ((call("greater", call("divide", lit(6), "a"), lit(1)), ("sum", "c")),) * 2,
    ],
)
def test_other_rows_other_passes(one, other):
    assert len(aggregates(rewrite(side_by_side(one, other)))) == 2


def test_totals_by_keys_stay():
    builder = Builder()
    source = builder.source(ROWS, path="rows")
    one, other = (builder.aggregate(source, ("a",), ("sum", name)) for name in ("b", "c"))
    builder.sink(one, "one")
    builder.sink(other, "other")
    assert len(aggregates(rewrite(builder.plan()))) == 2
