"""Combine filters: ``filter(a).filter(b)`` becomes ``filter(a and b)``, one pass over the rows; a part is said once.

Only when ``b`` cannot raise: alone it sees just the rows where ``a`` is true, combined it sees all. When ``a`` can
raise and ``b`` cannot, they change places instead: ``b`` goes on towards the sources and may become a key of a join,
and ``a`` sees fewer rows. So do the parts of one predicate above a join.

A part that another one implies goes: of ``x == 1`` and (``x == 1`` or ``x == 2``) the second, and as one of a list; of
two ORs of the same parts, in whatever order, the second.
SQL writes these where a query asks for one year of a table expression that has two.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.expression import Call, Expression, conjunction, conjuncts, disjuncts
from engine.graph.plan import Filter, Join, PlanNode
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
        if plan.is_new("implied", outer):
            needed = [part for place, part in enumerate(parts) if not _is_implied(part, parts, place)]
            if len(needed) < len(parts):
                plan.replace(outer, operator=Filter(conjunction(needed)))
                continue
        inner = plan.node(outer.inputs[0])
        if len(consumers[inner.id]) > 1 or not plan.is_new("combine_filters", outer, inner):
            continue
        if isinstance(inner.operator, Join):
            _part(plan, outer, parts)
        elif isinstance(inner.operator, Filter) and outer.parallelism in (None, inner.parallelism):
            _combine(plan, outer, parts, inner, conjuncts(inner.operator.predicate))


def _combine(
    plan: LogicalPlan, outer: PlanNode, parts: Sequence[Expression], inner: PlanNode, known: Sequence[Expression]
) -> None:
    """Make one filter of two, or let the outer one go first."""
    if not _all_safe(parts, inner):
        return
    if _all_safe(known, inner) or outer.name or inner.name:
        predicate = conjunction((*known, *(part for part in parts if part not in known)))
        plan.replace(outer, operator=Filter(predicate), inputs=inner.inputs, parallelism=inner.parallelism)
    else:
        plan.replace(inner, operator=Filter(conjunction(parts)))
        plan.replace(outer, operator=Filter(conjunction(known)), parallelism=inner.parallelism)


def _part(plan: LogicalPlan, node: PlanNode, parts: Sequence[Expression]) -> None:
    """Have the parts that cannot raise, of a filter above a join, filter first."""
    safe = [part for part in parts if cannot_raise(part, node.schema)]
    if not safe or len(safe) == len(parts) or node.name:
        return
    first = plan.insert(Filter(conjunction(safe)), node.inputs, node.schema, node)
    plan.replace(node, operator=Filter(conjunction(part for part in parts if part not in safe)), inputs=(first.id,))


def _all_safe(parts: Sequence[Expression], node: PlanNode) -> bool:
    return all(cannot_raise(part, node.schema) for part in parts)


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
