"""Equal keys: what a filter says of a key on one side of a join is said of the key on the other side, too.

    (a where x < 5) ⋈ b on x = y   ->   (a where x < 5) ⋈ (b where y < 5)

Rows of the other side that are left out have no partner. So they may go where such rows are not returned:

    from left to right     inner, left, semi, anti
    from right to left     inner, right, semi

A null-aware anti join looks at all rows of its right. Filters are followed to where they stand, through projections,
joins, groups and sorts, so that a key which is equal through a third is reached in a few rounds, and is not filtered
twice. Only comparisons of the key with constants move, and what OR makes of them: they may spare row groups, and cost
little where they do not.

Source: predicate move-around; Levy, Mumick and Sagiv, "Query Optimization by Predicate Move-Around" (1994).
Held by: tests/optimizer/test_equal_keys.py
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.expressions.text import expression_text
from engine.graph.expression import Call, ColumnRef, Expression, Literal, columns_of, conjuncts
from engine.graph.plan import Aggregate, Filter, Join, PartialAggregate, PlanNode, Project, Sort, Union
from engine.graph.said_operators import JoinType
from engine.optimizer.expression_rewriting import cannot_raise, column_behind, substitute
from engine.optimizer.input_changes import filter_input
from engine.optimizer.logical_plan import LogicalPlan

_TO_RIGHT: Final = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI})
_TO_LEFT: Final = frozenset({JoinType.INNER, JoinType.RIGHT, JoinType.SEMI})
#: joins whose result has no values of the left, or right, column that were not there before
_KEEPS_LEFT: Final = frozenset({JoinType.INNER, JoinType.CROSS, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI})
_KEEPS_RIGHT: Final = frozenset({JoinType.INNER, JoinType.CROSS, JoinType.RIGHT})
_COMPARISONS: Final = frozenset(
    {"equal", "less", "less_equal", "greater", "greater_equal", "between", "is_in", "str_starts_with"}
)

#: comparisons that are true of all values of columns, by node and name
_Values = dict[tuple[int, str], list[Expression]]


def apply(plan: LogicalPlan) -> None:
    """Filter each side of every join by what is known of the other side's keys."""
    values: _Values = {}
    for listed in plan.order():
        node = plan.node(listed.id)
        join = node.operator
        if isinstance(join, Join) and not join.null_aware and _spread(plan, node, join, values):
            values.clear()


def _spread(plan: LogicalPlan, node: PlanNode, join: Join, values: _Values) -> bool:
    """Filter each side of a join by what is known of the other side's keys; return whether there was something."""
    added: tuple[list[Expression], list[Expression]] = ([], [])
    said = set(join.implied)
    for keys in zip(join.left_keys, join.right_keys, strict=True):
        known = [_known(plan, plan.node(node.inputs[side]), keys[side], values) for side in (0, 1)]
        if not (known[0] or known[1]):
            continue
        for side, passing in ((0, _TO_LEFT), (1, _TO_RIGHT)):
            if join.how not in passing:
                continue
            schema = plan.node(node.inputs[side]).schema
            own = {keys[1 - side]: ColumnRef(keys[side])}
            moved = [substitute(part, own) for part in known[1 - side]]
            added[side].extend(
                part
                for part in moved
                # said once: filters may be where later rules do not follow them
                if part not in known[side] and expression_text(part) not in said and cannot_raise(part, schema)
            )
    for side in (0, 1):
        filter_input(plan, plan.node(node.id), side, added[side])
    if texts := tuple(expression_text(part) for parts in added for part in parts):
        plan.replace(plan.node(node.id), operator=msgspec.structs.replace(join, implied=(*join.implied, *texts)))
    return bool(texts)


def _known(plan: LogicalPlan, node: PlanNode, name: str, values: _Values) -> list[Expression]:
    """Return the comparisons that are true of all values of a column, in terms of it; ``values`` has those found."""
    if (node.id, name) not in values:
        values[node.id, name] = _found(plan, node, name, values)
    return values[node.id, name]


def _found(plan: LogicalPlan, node: PlanNode, name: str, values: _Values) -> list[Expression]:
    found: list[Expression] = []
    if isinstance(node.operator, Filter):
        found = [part for part in conjuncts(node.operator.predicate) if _is_comparison(part, name)]
    below = []
    for source, behind in _behind(plan, node, name):
        known = _known(plan, plan.node(source), behind, values)
        below.append(known if behind == name else [substitute(part, {behind: ColumnRef(name)}) for part in known])
    # of a union's rows only what is true in all of its inputs
    return found + [part for part in (below or [[]])[0] if part not in found and all(part in each for each in below)]


def _behind(plan: LogicalPlan, node: PlanNode, name: str) -> list[tuple[int, str]]:
    """Return the inputs that a column's values come from, each with its name there; [] where it has others, too."""
    match node.operator:
        case Filter() | Sort() | Union():
            return [(source, name) for source in node.inputs]
        case Project(expressions=expressions):
            behind = column_behind(expressions, name)
            return [] if behind is None else [(node.inputs[0], behind)]
        case Aggregate(keys=keys) | PartialAggregate(keys=keys) if name in keys:
            return [(node.inputs[0], name)]
        case Join() as join:
            return _behind_join(plan, node, join, name)
    return []


def _behind_join(plan: LogicalPlan, node: PlanNode, join: Join, name: str) -> list[tuple[int, str]]:
    if name in plan.node(node.inputs[0]).schema.names:
        if join.how in (JoinType.RIGHT, JoinType.FULL) and join.coalesce_keys and name in join.left_keys:
            # the key of either side
            right = join.right_keys[join.left_keys.index(name)]
            return [(node.inputs[0], name), (node.inputs[1], right)]
        return [(node.inputs[0], name)] if join.how in _KEEPS_LEFT else []
    return [(node.inputs[1], name)] if join.how in _KEEPS_RIGHT else []


def _is_comparison(part: Expression, name: str) -> bool:
    """Whether a predicate compares a column with constants."""
    if set(columns_of(part)) != {name} or not isinstance(part, Call):
        return False
    if part.function in ("or", "and"):
        return all(_is_comparison(argument, name) for argument in part.arguments)
    return part.function in _COMPARISONS and all(isinstance(each, ColumnRef | Literal) for each in part.arguments)
