"""Limit pushdown: limits move below projections, into each other and into sorts.

    limit(n) over project   -> project over limit(n)         fewer rows are computed
    limit(n) over sort      -> sort with limit n             a sort that keeps n rows needs no spilling
    limit(n) over limit(m)  -> limit(min(n, m))

Only where the lower node has no other consumer. Limits never pass filters, Python functions or joins.
"""

from __future__ import annotations

import msgspec

from engine.graph.plan import Limit, PlanNode, Project, Sort
from engine.optimizer.logical_plan import LogicalPlan


def apply(plan: LogicalPlan) -> None:
    """Move every limit down as far as it goes by one step a call of each kind."""
    consumers = plan.consumers()
    for listed in plan.order():
        node = plan.node(listed.id)
        if not isinstance(node.operator, Limit) or node.id not in consumers:
            continue
        lower = plan.node(node.inputs[0])
        if len(consumers[lower.id]) > 1:
            continue
        _push(plan, node, node.operator.count, lower)
        consumers = plan.consumers()


def _push(plan: LogicalPlan, node: PlanNode, count: int, lower: PlanNode) -> None:
    match lower.operator:
        case Project():
            below = plan.node(lower.inputs[0])
            limit = plan.insert(Limit(count), lower.inputs, below.schema, node)
            plan.replace(lower, inputs=(limit.id,))
            plan.redirect(node.id, lower.id)
        case Sort(limit=limit):
            smaller = count if limit is None else min(count, limit)
            plan.replace(lower, operator=msgspec.structs.replace(lower.operator, limit=smaller))
            plan.redirect(node.id, lower.id)
        case Limit(count=inner):
            plan.replace(lower, operator=Limit(min(count, inner)))
            plan.redirect(node.id, lower.id)
        case _:
            pass
