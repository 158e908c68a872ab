"""A plan under change: what it keeps is true after each change."""

from __future__ import annotations

from engine.graph.plan import Filter
from engine.optimizer.logical_plan import LogicalPlan
from tests.optimizer.plan_building import Builder, call, lit, schema

WIDE = schema(k="int64", a="int64")
SOME = call("greater", "a", lit(1))
MORE = call("greater", "k", lit(2))


def logical_plan() -> LogicalPlan:
    """A source, a filter and a sink: nodes 0, 1 and 2."""
    builder = Builder()
    builder.sink(builder.filter(builder.source(WIDE), SOME))
    return LogicalPlan(builder.plan())


def test_order_and_consumers_follow_each_change():
    plan = logical_plan()
    assert [node.id for node in plan.order()] == [0, 1, 2]
    assert plan.consumers() == {0: [1], 1: [2], 2: []}
    changed = plan.replace(plan.node(1), operator=Filter(MORE))
    assert plan.order()[1] is changed
    added = plan.insert(Filter(SOME), (1,), changed.schema, changed)
    assert [node.id for node in plan.order()] == [0, 1, 2]
    plan.replace(plan.node(2), inputs=(added.id,))
    assert [node.id for node in plan.order()] == [0, 1, added.id, 2]
    assert plan.consumers() == {0: [1], 1: [added.id], added.id: [2], 2: []}
    plan.redirect(added.id, 0)
    assert [node.id for node in plan.order()] == [0, 2]
    assert plan.consumers() == {0: [2], 2: []}


def test_nodes_are_new_to_a_rule_until_it_asked_about_them_as_they_are():
    plan = logical_plan()
    source, kept, _ = plan.order()
    assert plan.is_new("a rule", kept, source)
    assert not plan.is_new("a rule", kept, source)
    assert plan.is_new("another rule", kept, source)
    changed = plan.replace(source, parallelism=2)
    assert plan.is_new("a rule", kept, changed)
    assert plan.is_new("a rule", kept)
