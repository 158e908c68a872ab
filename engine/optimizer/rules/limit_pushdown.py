"""Limit pushdown: limits move below projections, into each other and into sorts.

    limit(n) over project   -> project over limit(n)         fewer rows are computed
    limit(n) over sort      -> sort with limit n             a sort that keeps n rows needs no spilling
    limit(n) over limit(m)  -> limit(min(n, m))

Only where the lower node has no other consumer. Limits never pass filters, Python functions or joins.
What an operator does with one is said by its entry (``take_limit``).

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from engine.graph.plan import Limit
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.registry import entry_of


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
        entry_of(lower.operator).take_limit(plan, lower, lower.operator, node)
        consumers = plan.consumers()
