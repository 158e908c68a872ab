"""Join conditions: parts of a join's condition over one side alone become filters of that side.

    to the left     inner, right, semi, cross          a left row for which the part is not true has no match, and such
    to the right    inner, left, semi, anti, cross     rows of that side are not returned

Where the rows without match of that side are returned (the left of left, full, anti; the right of right, full) the part
stays. A part over coalesced keys goes to whichever side may take it. Parts move only if they cannot raise: before the
join they see rows that no pair would have shown them.
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import ColumnRef, Expression, columns_of
from engine.graph.plan import Join, JoinType, PlanNode
from engine.optimizer.expression_rewriting import cannot_raise, conjunction, conjuncts, substitute
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.filter_pushdown import filter_input

TO_LEFT = frozenset({JoinType.INNER, JoinType.RIGHT, JoinType.SEMI, JoinType.CROSS})
TO_RIGHT = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI, JoinType.CROSS})


def apply(plan: LogicalPlan) -> None:
    """Move what can be moved out of every join's condition."""
    for listed in plan.order():
        node = plan.node(listed.id)
        if isinstance(node.operator, Join) and node.operator.condition is not None:
            _move(plan, node, node.operator, node.operator.condition)


def _move(plan: LogicalPlan, node: PlanNode, join: Join, condition: Expression) -> None:
    left, right = (plan.node(source).schema for source in node.inputs)
    right_of = {one: ColumnRef(other) for one, other in zip(join.left_keys, join.right_keys, strict=True)}
    keys = set(join.left_keys) if join.coalesce_keys else set()
    to_left, to_right, kept = [], [], []
    for part in conjuncts(condition):
        names = set(columns_of(part))
        moved = substitute(part, right_of) if names <= keys else part
        if join.how in TO_LEFT and names and names <= set(left.names) and cannot_raise(part, left):
            to_left.append(part)
        elif (
            join.how in TO_RIGHT
            and names
            and (names <= keys or names <= set(right.names) - set(left.names))
            and cannot_raise(moved, right)
        ):
            to_right.append(moved)
        else:
            kept.append(part)
    if len(kept) == len(conjuncts(condition)):
        return
    rest = conjunction(kept) if kept else None
    node = plan.replace(node, operator=msgspec.structs.replace(join, condition=rest))
    filter_input(plan, node, 0, to_left)
    filter_input(plan, plan.node(node.id), 1, to_right)
