"""Semi-join pullup: an inner join that leaves fewer rows than the semi or anti join below it comes first.

    (a semi c) ⋈ b   ->   (a ⋈ b) semi c        where the inner join leaves a smaller share of a, by PULLS at least

The semi join then looks at fewer rows, and so do what filters c by them and what is built of them. It is the other way
of ``semi_join_pushdown``, which moves a semi join only below joins that leave no fewer rows: no two undo each other. A
null-aware one stays, and so does one below a join whose condition can raise, which would see more rows.

Held by: tests/optimizer/test_semi_join_pushdown.py
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.graph.expression import columns_of
from engine.graph.plan import Join, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinHint, JoinType
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import cannot_raise
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.registry import entry_of
from engine.statistics.estimates import Estimates

#: share of a semi join's rows that the inner join may leave: estimates are no more exact than that
PULLS: Final = 0.5


def apply(plan: LogicalPlan) -> None:
    """Pull every semi and anti join above the inner join that reads it, by one node."""
    consumers = plan.consumers()
    for listed in plan.order():
        node = plan.node(listed.id)
        join = node.operator
        if not isinstance(join, Join) or join.how is not JoinType.INNER:
            continue
        for side in (0, 1):
            semi = plan.node(node.inputs[side])
            if len(consumers.get(semi.id, ())) == 1 and _may_pull(plan, node, semi) and _pays(plan, node, semi, side):
                _pull(plan, node, semi, side)
                consumers = plan.consumers()
                break


def _may_pull(plan: LogicalPlan, node: PlanNode, below: PlanNode) -> bool:
    semi, join = below.operator, node.operator
    assert isinstance(join, Join)
    if not isinstance(semi, Join) or semi.how not in (JoinType.SEMI, JoinType.ANTI) or semi.null_aware:
        return False
    if any(each.name or each.parallelism is not None for each in (node, below)):
        return False
    if any(each.hint is not JoinHint.OPTIMIZER_CHOOSES for each in (join, semi)):
        return False
    own = set(plan.node(below.inputs[0]).schema.names)
    wanted = set(semi.left_keys)
    if semi.condition is not None:
        asked = set(columns_of(semi.condition))
        if (asked - own).intersection(node.schema.names):
            return False  # the same name would be another column
        wanted |= asked & own
    if not wanted <= set(node.schema.names):
        return False
    schemas = [plan.node(source).schema for source in node.inputs]
    pairs = PlanSchema(tuple(column for schema in schemas for column in schema.columns))
    return join.condition is None or cannot_raise(join.condition, pairs)


def _pays(plan: LogicalPlan, node: PlanNode, below: PlanNode, side: int) -> bool:
    known: dict[int, Estimates] = {}
    left = estimate_below(plan, plan.node(below.inputs[0]), known)
    asked = estimate_below(plan, below, known)
    inputs = [estimate_below(plan, plan.node(source), known) for source in node.inputs]
    inputs[side] = left
    joined = entry_of(node.operator).estimate(node, node.operator, inputs)
    return joined.rows <= PULLS * asked.rows


def _pull(plan: LogicalPlan, node: PlanNode, below: PlanNode, side: int) -> None:
    inputs = tuple(below.inputs[0] if index == side else old for index, old in enumerate(node.inputs))
    joined = plan.insert(node.operator, inputs, node.schema, node)
    assert isinstance(below.operator, Join)
    semi = msgspec.structs.replace(below.operator, ordered="behind the join that leaves fewer rows")
    plan.replace(node, operator=semi, inputs=(joined.id, below.inputs[1]))
