"""Join conditions: what of them is a key becomes one, what is over one side alone becomes a filter of that side.

    cross join, a == b and ...  ->  inner join on a, b with the rest: pairs are found by hash instead of tried

Only columns of one and the same type; a float is equal to the same ones as a key and in an expression.

    to the left     inner, right, semi, cross          a left row for which the part is not true has no match, and such
    to the right    inner, left, semi, anti, cross     rows of that side are not returned

Where the rows without match of that side are returned (the left of left, full, anti; the right of right, full) the part
stays. A part over coalesced keys goes to whichever side may take it. Parts move only if they cannot raise: before the
join they see rows that no pair would have shown them.

Held by: tests/optimizer/test_join_rules.py
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import Call, ColumnRef, Expression, columns_of, conjunction, conjuncts
from engine.graph.plan import Join, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinType
from engine.optimizer.expression_rewriting import cannot_raise, substitute
from engine.optimizer.input_changes import filter_input
from engine.optimizer.logical_plan import LogicalPlan

TO_LEFT = frozenset({JoinType.INNER, JoinType.RIGHT, JoinType.SEMI, JoinType.CROSS})
TO_RIGHT = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI, JoinType.CROSS})


def apply(plan: LogicalPlan) -> None:
    """Move what can be moved out of every join's condition."""
    for listed in plan.order():
        node = plan.node(listed.id)
        if not isinstance(node.operator, Join) or node.operator.condition is None:
            continue
        if node.operator.how is JoinType.CROSS:
            node = _with_keys(plan, node, node.operator, node.operator.condition)
        assert isinstance(node.operator, Join)
        if node.operator.condition is not None:
            _move(plan, node, node.operator, node.operator.condition)


def _with_keys(plan: LogicalPlan, node: PlanNode, join: Join, condition: Expression) -> PlanNode:
    """Return a cross join as an inner join where its condition has equalities between the sides."""
    left, right = (plan.node(source).schema for source in node.inputs)
    keys: list[tuple[str, str]] = []
    kept = []
    for part in conjuncts(condition):
        pair = _key_pair(part, left, right)
        if pair is None or any(pair[side] == known[side] for known in keys for side in (0, 1)):
            kept.append(part)
        else:
            keys.append(pair)
    if not keys:
        return node
    left_keys, right_keys = zip(*keys, strict=True)
    rest = conjunction(kept) if kept else None
    inner = Join(JoinType.INNER, left_keys, right_keys, coalesce_keys=False, hint=join.hint, condition=rest)
    return plan.replace(node, operator=inner)


def _key_pair(part: Expression, left: PlanSchema, right: PlanSchema) -> tuple[str, str] | None:
    """Return (left column, right column) when a part says that they are equal as keys are."""
    match part:
        case Call(function="equal", arguments=(ColumnRef(name=one), ColumnRef(name=other))):
            names = (one, other) if one in left.names else (other, one)
            if names[0] not in left.names or names[1] not in right.names:
                return None
            columns = left.column(names[0]), right.column(names[1])
            if columns[0].ipc != columns[1].ipc or not columns[0].is_key_type:
                return None
            return names
        case _:
            return None


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
