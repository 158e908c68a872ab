"""Combine projections: ``select(...).select(...)`` becomes one, and a projection that changes nothing goes.

The outer expressions are written in terms of the inner one's input. An inner expression that does work is not
repeated: two projections stay when one of its columns is used twice. Nor does an expression become deeper than can be
walked: a loop over ``with_columns`` may be of any length.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections import Counter

from engine.graph.expression import ColumnRef, NamedExpression, columns_of, depth_of
from engine.graph.plan import PlanNode, Project
from engine.optimizer.expression_rewriting import is_trivial, mapping_of, substitute
from engine.optimizer.logical_plan import LogicalPlan

#: depth limit of a combined expression
DEPTH_MAX = 64


def apply(plan: LogicalPlan) -> None:
    """Combine neighbouring projections and drop those that change nothing."""
    consumers = plan.consumers()
    for listed in plan.order():
        node = plan.node(listed.id)
        if not isinstance(node.operator, Project) or node.id not in consumers:
            continue
        inner = plan.node(node.inputs[0])
        if isinstance(inner.operator, Project) and len(consumers[inner.id]) == 1 and _combinable(node, inner):
            mapping = mapping_of(inner.operator.expressions)
            combined = tuple(
                NamedExpression(named.name, substitute(named.expression, mapping))
                for named in node.operator.expressions
            )
            node = plan.replace(node, operator=Project(combined), inputs=inner.inputs, parallelism=inner.parallelism)
            consumers = plan.consumers()
        if _is_identity(plan, node):
            plan.redirect(node.id, node.inputs[0])
            consumers = plan.consumers()


def _combinable(outer: PlanNode, inner: PlanNode) -> bool:
    if outer.parallelism not in (None, inner.parallelism):
        return False
    assert isinstance(outer.operator, Project)
    assert isinstance(inner.operator, Project)
    uses = Counter(name for named in outer.operator.expressions for name in columns_of(named.expression))
    if _depth(outer.operator) + _depth(inner.operator) > DEPTH_MAX:
        return False
    mapping = mapping_of(inner.operator.expressions)
    return all(is_trivial(mapping[name]) or count == 1 for name, count in uses.items())


def _depth(project: Project) -> int:
    return max((depth_of(named.expression) for named in project.expressions), default=0)


def _is_identity(plan: LogicalPlan, node: PlanNode) -> bool:
    assert isinstance(node.operator, Project)
    source = plan.node(node.inputs[0])
    if node.parallelism not in (None, source.parallelism) or node.schema != source.schema:
        return False
    return all(
        isinstance(named.expression, ColumnRef) and named.expression.name == named.name
        for named in node.operator.expressions
    )
