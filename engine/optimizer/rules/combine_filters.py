"""Combine filters: ``filter(a).filter(b)`` becomes ``filter(a and b)``, one pass over the rows; a part is said once.

Only when ``b`` cannot raise: alone it sees just the rows where ``a`` is true, combined it sees all.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from engine.graph.expression import conjunction, conjuncts
from engine.graph.plan import Filter
from engine.optimizer.expression_rewriting import cannot_raise
from engine.optimizer.logical_plan import LogicalPlan


def apply(plan: LogicalPlan) -> None:
    """Combine every pair of neighbouring filters of which the first has no other consumer."""
    consumers = plan.consumers()
    for node in plan.order():
        outer = plan.node(node.id)
        if not isinstance(outer.operator, Filter):
            continue
        inner = plan.node(outer.inputs[0])
        if not isinstance(inner.operator, Filter) or len(consumers[inner.id]) > 1:
            continue
        if cannot_raise(outer.operator.predicate, inner.schema) and outer.parallelism in (None, inner.parallelism):
            known = conjuncts(inner.operator.predicate)
            predicate = conjunction(
                (*known, *(part for part in conjuncts(outer.operator.predicate) if part not in known))
            )
            plan.replace(outer, operator=Filter(predicate), inputs=inner.inputs, parallelism=inner.parallelism)
