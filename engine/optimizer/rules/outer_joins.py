"""Outer joins whose rows without a match are dropped above them are inner joins, or keep those of one side only.

    (a left join b on x = y) join c on b.z = c.z    ->  (a join b on x = y) join c on b.z = c.z
    filter(b.z > 5, a left join b)                  ->  filter(b.z > 5, a join b)
    filter(a.z > 5, a full join b)                  ->  filter(a.z > 5, a left join b)
    filter(b.y is null, a left join b on x = y)     ->  a anti join b on x = y

An inner join reads the side with fewer rows first and filters the other one by it, and goes where it costs least.

A left join of which only rows without a match are kept is an anti join, which carries no column of the right: that is
what a filter leaves that asks for nulls of the right key, or of a column that has none. The right columns above it are
null, so none but keys may be used.

A null in a column drops its row where that is the key of a join that returns no such row, or stands in a comparison
that a filter asks for, as it is, in a sum, or with a constant in its place for which the comparison is not true:
``coalesce(b.z, 0) > 10``. From there the column is followed to the joins that it comes through, as long as each node on
the way has one consumer: through filters, projections, sorts, unions, keys of groups and other joins. The first rows of
an order are others where some go.

Source: Galindo-Legaria and Rosenthal, "Outerjoin Simplification and Reordering for Query Optimization" (1997).
Held by: tests/optimizer/test_outer_joins.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from engine.graph.expression import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    NamedExpression,
    conjunction,
    conjuncts,
    with_children,
)
from engine.graph.plan import Aggregate, Filter, Join, PlanNode, Project, Sort, Union
from engine.graph.said_operators import JoinType
from engine.optimizer.expression_rewriting import column_projection, mapping_of, strict_columns, truth_of_constants
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.projection_pruning import used_columns

#: joins that drop rows of the left, or of the right, whose key is null
_DROPS_LEFT: Final = frozenset({JoinType.INNER, JoinType.RIGHT, JoinType.SEMI})
_DROPS_RIGHT: Final = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI})
_COMPARISONS: Final = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "between"})
_FILLS: Final = ("coalesce", "fill_null")
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
        _keep_unmatched(plan, plan.node(listed.id))


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
    if not isinstance(part, Call) or part.function not in _COMPARISONS:
        return []
    found = [name for argument in part.arguments for name in strict_columns(argument)]
    for place, argument in enumerate(part.arguments):
        match argument:
            case Call(function=function, arguments=(filled, Literal() as constant)) if function in _FILLS:
                others = [*part.arguments[:place], constant, *part.arguments[place + 1 :]]
                if truth_of_constants(with_children(part, others)) is False:
                    found += strict_columns(filled)
    return found


def _keep_unmatched(plan: LogicalPlan, node: PlanNode) -> None:
    """Make the left join below a filter an anti join, where no row with a match passes the filter."""
    if not isinstance(node.operator, Filter) or len(plan.consumers()[node.inputs[0]]) > 1:
        return
    below = plan.node(node.inputs[0])
    join, parts = below.operator, conjuncts(node.operator.predicate)
    if not isinstance(join, Join) or join.how is not JoinType.LEFT or not join.left_keys:
        return
    left, right = (plan.node(source).schema for source in below.inputs)
    asked = [
        part.arguments[0].name
        for part in parts
        if isinstance(part, Call) and part.function == "is_null" and isinstance(part.arguments[0], ColumnRef)
    ]
    added = [column for column in below.schema.columns if column.name not in left.names]
    never_null = {*join.right_keys, *(column.name for column in right.columns if not column.nullable)}
    tests = [name for name in asked if name in never_null and any(name == column.name for column in added)]
    if not tests or used_columns(plan)[node.id].intersection(column.name for column in added) - set(join.right_keys):
        return
    anti = msgspec.structs.replace(join, how=JoinType.ANTI, coalesce_keys=False)
    kept = plan.replace(below, operator=anti, schema=left)
    key_of = dict(zip(join.right_keys, join.left_keys, strict=True))
    nulls = []
    for column in added:
        key = ColumnRef(key_of.get(column.name, join.left_keys[0]))
        null: Expression = Call("nullif", (key, key))
        null = null if column.name in key_of else Cast(null, column.ipc, column.type_text)
        nulls.append(NamedExpression(column.name, null))
    project = Project((*column_projection(left.names), *nulls))
    rest = [part for part in parts if not any(part == Call("is_null", (ColumnRef(name),)) for name in tests)]
    if rest:
        kept = plan.insert(project, (kept.id,), node.schema, node)
        plan.replace(node, operator=Filter(conjunction(rest)), inputs=(kept.id,))
    else:
        plan.replace(node, operator=project)


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
                behind = strict_columns(mapping_of(expressions)[name])
                waiting.extend((node.inputs[0], column) for column in behind)
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
