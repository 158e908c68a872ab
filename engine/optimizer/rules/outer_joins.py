"""Outer joins whose rows without a match are dropped above them are inner joins, or keep those of one side only.

    (a left join b on x = y) join c on b.z = c.z    ->  (a join b on x = y) join c on b.z = c.z
    filter(b.z > 5, a left join b)                  ->  filter(b.z > 5, a join b)
    filter(a.z > 5, a full join b)                  ->  filter(a.z > 5, a left join b)

An inner join reads the side with fewer rows first and filters the other one by it, and goes where it costs least.

A null in a column drops its row where that is the key of a join that returns no such row, or stands in a comparison
that a filter asks for. From there the column is followed to the joins that it comes through, as long as each node on
the way has one consumer: through filters, projections, sorts, unions, keys of groups and other joins. The first rows of
an order are others where some go.

Source: Galindo-Legaria and Rosenthal, "Outerjoin Simplification and Reordering for Query Optimization" (1997).
Held by: tests/optimizer/test_outer_joins.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from engine.graph.expression import Call, ColumnRef, Expression, conjuncts
from engine.graph.plan import Aggregate, Filter, Join, JoinType, PlanNode, Project, Sort, Union
from engine.optimizer.expression_rewriting import column_behind
from engine.optimizer.logical_plan import LogicalPlan

#: joins that drop rows of the left, or of the right, whose key is null
_DROPS_LEFT: Final = frozenset({JoinType.INNER, JoinType.RIGHT, JoinType.SEMI})
_DROPS_RIGHT: Final = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI})
#: functions that return null for a null argument
_STRICT: Final = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "between"})
#: join type without the rows that have nulls in the columns of the left, or of the right
_WITHOUT_LEFT: Final = {JoinType.RIGHT: JoinType.INNER, JoinType.FULL: JoinType.LEFT}
_WITHOUT_RIGHT: Final = {JoinType.LEFT: JoinType.INNER, JoinType.FULL: JoinType.RIGHT}


def apply(plan: LogicalPlan) -> None:
    """Make outer joins of a plan narrower, those above first."""
    if not any(isinstance(node.operator, Join) and node.operator.how in _OUTER for node in plan.order()):
        return
    for listed in reversed(plan.order()):
        node = plan.node(listed.id)
        for source, name in _dropping(node):
            _follow(plan, source, name)


_OUTER: Final = frozenset({*_WITHOUT_LEFT, *_WITHOUT_RIGHT})


def _dropping(node: PlanNode) -> Iterator[tuple[int, str]]:
    """Yield the columns of inputs whose nulls a node drops."""
    match node.operator:
        case Filter(predicate=predicate):
            for part in conjuncts(predicate):
                yield from ((node.inputs[0], name) for name in _not_null(part))
        case Join(how=how, left_keys=left_keys, right_keys=right_keys, null_aware=False):
            if how in _DROPS_LEFT:
                yield from ((node.inputs[0], name) for name in left_keys)
            if how in _DROPS_RIGHT:
                yield from ((node.inputs[1], name) for name in right_keys)


def _not_null(part: Expression) -> list[str]:
    """Return columns for whose nulls a condition is not true."""
    if not isinstance(part, Call) or part.function not in _STRICT:
        return []
    return [argument.name for argument in part.arguments if isinstance(argument, ColumnRef)]


def _follow(plan: LogicalPlan, start: int, column: str) -> None:
    """Follow a column, whose nulls are dropped above, down to the joins that add some."""
    waiting = [(start, column)]
    while waiting:
        node_id, name = waiting.pop()
        if len(plan.consumers()[node_id]) > 1:
            continue
        node = plan.node(node_id)
        match node.operator:
            case Filter() | Sort(limit=None) | Union():
                waiting.extend((source, name) for source in node.inputs)
            case Project(expressions=expressions):
                behind = column_behind(expressions, name)
                waiting.extend([] if behind is None else [(node.inputs[0], behind)])
            case Aggregate(keys=keys) if name in keys:
                waiting.append((node.inputs[0], name))
            case Join() as join:
                waiting.extend(_through_join(plan, node, join, name))


def _through_join(plan: LogicalPlan, node: PlanNode, join: Join, name: str) -> list[tuple[int, str]]:
    """Return the origin of a join's column, and drop all rows of the join for which it is null."""
    is_key = join.coalesce_keys and name in join.left_keys
    if is_key and join.how in (JoinType.RIGHT, JoinType.FULL):
        return []  # the key of either side
    side = 0 if name in plan.node(node.inputs[0]).schema.names else 1
    how = (_WITHOUT_LEFT, _WITHOUT_RIGHT)[side].get(join.how)
    if how is not None:
        plan.replace(node, operator=msgspec.structs.replace(join, how=how))
    return [(node.inputs[side], name)]
