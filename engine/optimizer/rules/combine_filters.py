"""Combine filters: ``filter(a).filter(b)`` becomes ``filter(a and b)``, one pass over the rows; a part is said once.

Only when ``b`` cannot raise: alone it sees just the rows where ``a`` is true, combined it sees all.

A part that another one implies goes: of ``x == 1`` and (``x == 1`` or ``x == 2``) the second, and as one of a list; of
two ORs of the same parts, in whatever order, the second.
SQL writes these where a query asks for one year of a table expression that has two.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.expression import Call, Expression, conjunction, conjuncts, disjuncts
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
        parts = conjuncts(outer.operator.predicate)
        needed = [part for place, part in enumerate(parts) if not _is_implied(part, parts, place)]
        if len(needed) < len(parts):
            plan.replace(outer, operator=Filter(conjunction(needed)))
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


def _is_implied(part: Expression, parts: Sequence[Expression], place: int) -> bool:
    """Whether a part is true of every row of which the others are: an OR of one of them, or of its parts, and more."""
    match part:
        case Call(function="or"):
            branches = disjuncts(part)
            narrower = (disjuncts(other) for at, other in enumerate(parts) if at != place)
            if any(len(each) < len(branches) and all(one in branches for one in each) for each in narrower):
                return True
            earlier = (disjuncts(other) for other in parts[:place])
            return any(len(each) == len(branches) and all(one in branches for one in each) for each in earlier)
        case Call(function="is_in", arguments=(value, *listed)):
            return any(Call("equal", (value, one)) in parts for one in listed)
        case _:
            return False
