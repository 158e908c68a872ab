"""Filters that all uses of a result have: asked once, before its rows are kept."""

from __future__ import annotations

import pytest

from engine.graph.expression import Call, ColumnRef, Expression, conjuncts
from engine.graph.plan import Aggregate, Filter, Plan, PlanNode
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.plan_building import Builder, call, column, lit, schema

ROWS = schema(k="int64", m="int64", a="int64")
#: column of the groups that no filter passes
SUM = "sum1_0"
LARGE = call("greater", SUM, lit(9))
RAISES = call("greater", call("divide", SUM, "m"), lit(1))
DRAWN = call("less", Call("rand", (), {"seed": 1}), SUM)


def total(number: int) -> Call:
    return call("equal", SUM, lit(number))


def uses(*filters: tuple[Expression, ...]) -> Plan:
    """Groups with uses that meet again in a join; each has some filters, those below first."""
    builder = Builder()
    groups = builder.aggregate(builder.source(ROWS), ("k", "m"), ("sum", "a"))
    sides = []
    for number, parts in enumerate(filters):
        node = groups
        for part in parts:
            node = builder.filter(node, part)
        sides.append(builder.project(node, *((column(f"{name}{number}"), ColumnRef(name)) for name in ("k", "m", SUM))))
    builder.sink(builder.join(sides[0], sides[1], left_on="k0", right_on="k1"))
    return builder.plan()


def asked_once(plan: Plan) -> list[list[Expression]]:
    """Return what is asked of the groups before they are read by two, filters above each other one by one."""
    nodes = rewrite(plan).nodes
    readers = {node.id: [one.id for one in nodes if node.id in one.inputs] for node in nodes}
    (shared,) = (node for node in nodes if len(readers[node.id]) > 1)
    found: list[list[Expression]] = []
    node: PlanNode = shared
    while isinstance(node.operator, Filter):
        found.insert(0, list(conjuncts(node.operator.predicate)))
        node = nodes[node.inputs[0]]
    assert isinstance(node.operator, Aggregate)
    return found


@pytest.mark.parametrize(
    ("filters", "asked"),
    [
        (((LARGE,), (LARGE,)), [[LARGE]]),
        (((total(2), LARGE), (LARGE, total(3))), [[LARGE]]),
        (((LARGE,), ()), []),
        (((total(2),), (total(3),)), []),
        # all rows are seen in one use
        (((total(2), RAISES), (RAISES,)), [[RAISES]]),
        # those that one of the uses sees are
        (((total(2), RAISES), (total(3), RAISES)), [[call("or", total(2), total(3))], [RAISES]]),
        # another draw for each use
        (((DRAWN,), (DRAWN,)), []),
    ],
)
def test_what_all_uses_ask_is_asked_before_the_rows_are_kept(filters, asked):
    assert asked_once(uses(*filters)) == asked


def test_each_use_asks_for_the_rest():
    plan = rewrite(uses((total(2), RAISES), (total(3), RAISES)))
    parts = [
        part for node in plan.nodes if isinstance(node.operator, Filter) for part in conjuncts(node.operator.predicate)
    ]
    assert parts.count(RAISES) == 1
    assert parts.count(total(2)) == parts.count(total(3)) == 1


def test_a_part_that_can_raise_stays_behind_another_one_that_can():
    other = call("less", call("divide", SUM, "k"), lit(1))
    assert asked_once(uses((other, RAISES), (total(3), RAISES))) == []


def test_uses_that_are_left_when_another_one_is_found_to_have_no_rows_are_asked_once():
    """The total has no row of such a key, which is known when the filter has come down to it."""
    builder = Builder()
    rows = builder.source(ROWS)
    sides = []
    for keys in (("k", "m"), ("k",), ()):
        groups = builder.aggregate(rows, keys, ("sum", "a"))
        of_all = ColumnRef(builder.nodes[groups].schema.names[-1])
        key = ColumnRef("k") if keys else lit(0)
        sides.append(builder.project(groups, (column("k"), key), (column("total"), of_all)))
    others = builder.filter(builder.source(schema(other="int64")), call("greater", "other", lit(1)))
    builder.sink(builder.join(builder.union(*sides), others, left_on="k", right_on="other"))
    filters = [node.operator.predicate for node in rewrite(builder.plan()).nodes if isinstance(node.operator, Filter)]
    assert sorted(filters, key=repr) == [call("greater", "k", lit(1)), call("greater", "other", lit(1))]
