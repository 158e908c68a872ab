"""The filters of a plan's sources, as near to them as the optimizer will bring them: on a copy of the plan.

    source_filters(plan) -> SourceFilters
        .every      source -> predicates of all filters over it, in terms of its columns
        .sole       source -> predicate of the filter that alone reads it

Held by: tests/sources/test_key_samples.py
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.formats.registry import format_of
from engine.graph.expression import Expression, depth_of
from engine.graph.plan import Filter, Plan, PlanNode, Project, Source
from engine.optimizer.expression_rewriting import mapping_of, substitute
from engine.optimizer.logical_optimizer import push_filters
from engine.optimizer.logical_plan import LogicalPlan

#: depth of predicates that are followed through projections
_DEPTH_MAX: Final = 64


class SourceFilters(NamedTuple):
    """Predicates by the ids of sources whose splits they may rule out."""

    every: dict[int, list[Expression]]
    sole: dict[int, Expression]


def source_filters(plan: Plan) -> SourceFilters:
    """Return the predicates that rows of such sources meet first."""
    found = SourceFilters({}, {})
    has_filter = any(isinstance(node.operator, Filter) for node in plan.nodes)
    if not has_filter or not any(map(is_prunable, plan.nodes)):
        return found
    pushed = LogicalPlan(plan)
    push_filters(pushed)
    readers = pushed.consumers()
    for node in pushed.order():
        if not isinstance(node.operator, Filter):
            continue
        predicate, below = node.operator.predicate, pushed.node(node.inputs[0])
        if is_prunable(below) and len(readers[below.id]) == 1:
            found.sole[below.id] = predicate
        while isinstance(below.operator, Filter | Project):
            if isinstance(below.operator, Project):
                predicate = substitute(predicate, mapping_of(below.operator.expressions))
            below = pushed.node(below.inputs[0])
        if is_prunable(below) and depth_of(predicate) <= _DEPTH_MAX:
            found.every.setdefault(below.id, []).append(predicate)
    return found


def is_prunable(node: PlanNode) -> bool:
    """Return whether filters may leave out splits of a node."""
    return isinstance(node.operator, Source) and format_of(node.operator.spec).is_prunable
