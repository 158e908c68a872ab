"""Semi-join pushdown: which rows of one side of an inner join have a partner elsewhere is asked before that join.

    (a ⋈ b) semi c   ->   (a semi c) ⋈ b        keys and condition over columns of a, and a has no more rows than a ⋈ b

The semi join then sees no more rows than before, narrower ones, and the inner join sees fewer. Where the inner join
leaves few rows, it comes first, as written. An anti join moves likewise; a null-aware one stays, and so does a
condition that can raise, which would see rows that the inner join kept from it. A projection between the two, such as
the one that restores the columns of joins in another order, comes after both.

Held by: tests/optimizer/test_semi_join_pushdown.py
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.graph.expression import columns_of
from engine.graph.plan import Join, PlanNode, Project
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinType
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import cannot_raise, column_behind
from engine.optimizer.logical_plan import LogicalPlan
from engine.statistics.estimates import Estimates

#: ratio up to which row counts of the side and of the join count as equal, since estimates are rounded
_EQUAL = 1.01


def apply(plan: LogicalPlan) -> None:
    """Push every semi and anti join below the inner join on its left, by one node."""
    consumers = plan.consumers()
    for listed in reversed(plan.order()):
        node = plan.node(listed.id)
        semi = node.operator
        if not isinstance(semi, Join) or semi.how not in (JoinType.SEMI, JoinType.ANTI) or semi.null_aware:
            continue
        below, project = plan.node(node.inputs[0]), None
        if isinstance(below.operator, Project) and _is_free(below, consumers):
            project, renamed = below.operator, _over_input(semi, below.operator)
            if renamed is None:
                continue
            semi, below = renamed, plan.node(below.inputs[0])
        if not isinstance(below.operator, Join) or below.operator.how is not JoinType.INNER:
            continue
        if not _is_free(below, consumers):
            continue
        side = _side_of(plan, node, semi, below)
        if side is not None and _pays(plan, below, plan.node(below.inputs[side])):
            joined = _pushed(plan, node, semi, below, side)
            operator, inputs = (below.operator, joined.inputs) if project is None else (project, (joined.id,))
            plan.replace(node, operator=operator, inputs=inputs, name="", parallelism=None)
            consumers = plan.consumers()


def _is_free(node: PlanNode, consumers: Mapping[int, list[int]]) -> bool:
    return len(consumers[node.id]) == 1 and not node.name and node.parallelism is None


def _over_input(semi: Join, project: Project) -> Join | None:
    """Return a semi join of a projection as one of its input; None where it looks at what is computed."""
    keys = [column_behind(project.expressions, key) for key in semi.left_keys]
    known = tuple(key for key in keys if key is not None)
    if semi.condition is not None or len(known) < len(keys):
        return None
    return msgspec.structs.replace(semi, left_keys=known)


def _side_of(plan: LogicalPlan, node: PlanNode, semi: Join, below: PlanNode) -> int | None:
    """Return the input of the inner join that has all columns which the semi join looks at."""
    wanted = set(semi.left_keys)
    right = plan.node(node.inputs[1]).schema
    if semi.condition is not None:
        pairs = PlanSchema((*below.schema.columns, *right.columns))
        if not cannot_raise(semi.condition, pairs):
            return None
        wanted |= set(columns_of(semi.condition)).intersection(below.schema.names)
    for side, source in enumerate(below.inputs):
        if wanted <= set(plan.node(source).schema.names):
            return side
    return None


def _pays(plan: LogicalPlan, below: PlanNode, side: PlanNode) -> bool:
    known: dict[int, Estimates] = {}
    return estimate_below(plan, side, known).rows <= _EQUAL * estimate_below(plan, below, known).rows


def _pushed(plan: LogicalPlan, node: PlanNode, semi: Join, below: PlanNode, side: int) -> PlanNode:
    """Add the semi join before one side of the inner join, and the inner join after it; return that."""
    source = plan.node(below.inputs[side])
    asked = plan.insert(semi, (source.id, node.inputs[1]), source.schema, source)
    plan.replace(asked, name=node.name, parallelism=node.parallelism)
    inputs = tuple(asked.id if index == side else old for index, old in enumerate(below.inputs))
    return plan.insert(below.operator, inputs, below.schema, below)
