"""Columns: where each column of a sink comes from, and what else decided which rows there are.

    SELECT k, sum(v * w) AS total FROM t WHERE u > 0 GROUP BY k

    k      ◄─ t.k   DIRECT IDENTITY              all of them ◄─ t.u  INDIRECT FILTER
    total  ◄─ t.v, t.w   DIRECT AGGREGATION                  ◄─ t.k  INDIRECT GROUP_BY

It walks the plan once, inputs first, with the columns of each node as sets of origins. What a Python function makes of
a row may come from each of its columns, and so is said of an operator that is not known here: rather too much than
too little.

Source: OpenLineage, ColumnLineageDatasetFacet 1-2-0 (types and subtypes of transformations)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import engine.graph.plan as ops
from engine.graph.expression import ColumnRef, Expression, columns_of
from engine.graph.plan import Plan, PlanNode
from engine.graph.said_operators import JoinType

IDENTITY, TRANSFORMATION, AGGREGATION = "IDENTITY", "TRANSFORMATION", "AGGREGATION"
FILTER, JOIN, GROUP_BY, SORT, WINDOW = "FILTER", "JOIN", "GROUP_BY", "SORT", "WINDOW"
#: kinds of direct origins, the one that says more last
_DIRECT = (IDENTITY, TRANSFORMATION, AGGREGATION)


class Origin(NamedTuple):
    """A column of a source, by the number of its node, and what became of its values."""

    source: int
    column: str
    subtype: str


class Rows(NamedTuple):
    """Origins of the columns of a node, by name, and of its rows."""

    columns: Mapping[str, frozenset[Origin]]
    decided_by: frozenset[Origin]


def origins(plan: Plan) -> list[Rows]:
    """Return the origins of each node's columns."""
    found: list[Rows] = []
    for node in plan.nodes:
        found.append(_of(node, [found[number] for number in node.inputs]))
    return found


def _of(node: PlanNode, inputs: list[Rows]) -> Rows:
    operator, names = node.operator, node.schema.names
    decided = frozenset().union(*(each.decided_by for each in inputs))
    if isinstance(operator, ops.Source):
        return Rows({name: frozenset({Origin(node.id, name, IDENTITY)}) for name in names}, decided)
    match operator:
        case ops.Project(expressions=expressions):
            columns = {one.name: _of_expression(one.expression, inputs[0]) for one in expressions}
        case ops.Filter(predicate=predicate):
            columns, decided = dict(inputs[0].columns), decided | _by(columns_of(predicate), inputs[0], FILTER)
        case ops.Join() | ops.AsofJoin():
            columns, more = _joined(operator, names, inputs)
            decided |= more
        case ops.Aggregate(keys=keys, calls=calls):
            columns = {key: inputs[0].columns[key] for key in keys}
            for call in calls:
                used = () if call.argument is None else tuple(columns_of(call.argument))
                columns[call.name] = _made(used, inputs[0], AGGREGATION)
            decided |= _by(keys, inputs[0], GROUP_BY)
        case ops.SortedAggregate(keys=keys, order_by=order_by, calls=sorted_calls):
            columns = {key: inputs[0].columns[key] for key in keys}
            for one in sorted_calls:
                columns[one.name] = _made([one.argument, *([one.where] if one.where else [])], inputs[0], AGGREGATION)
            decided |= _by(keys, inputs[0], GROUP_BY) | _by((key.column for key in order_by), inputs[0], SORT)
        case ops.Window(partition_by=partition_by, order_by=order_by, calls=window_calls):
            columns = dict(inputs[0].columns)
            for each in window_calls:
                said = [one for one in (each.argument, each.default) if one is not None]
                columns[each.name] = _made(said, inputs[0], TRANSFORMATION)
            decided |= _by([*partition_by, *(key.column for key in order_by)], inputs[0], WINDOW)
        case ops.Sort(keys=sort_keys):
            columns, decided = dict(inputs[0].columns), decided | _by((k.column for k in sort_keys), inputs[0], SORT)
        case ops.Union():
            columns = {
                name: frozenset().union(*(list(each.columns.values())[place] for each in inputs))
                for place, name in enumerate(names)
            }
        case ops.Explode(column=column, position=position):
            columns = dict(inputs[0].columns)
            if position:
                columns[position] = _made([column], inputs[0], TRANSFORMATION)
        case ops.PythonFunction(kind="column", arguments=arguments, result=result):
            columns = {**inputs[0].columns, result: _made(arguments or inputs[0].columns, inputs[0], TRANSFORMATION)}
        case ops.Partition() | ops.Limit() | ops.Sink():
            columns = dict(inputs[0].columns)
        case _:
            all_of_them = frozenset().union(*(_made(each.columns, each, TRANSFORMATION) for each in inputs))
            columns = dict.fromkeys(names, all_of_them)
    return Rows({name: columns.get(name, frozenset()) for name in names}, decided)


def _joined(
    join: ops.Join | ops.AsofJoin, names: Iterable[str], inputs: list[Rows]
) -> tuple[dict[str, frozenset[Origin]], frozenset[Origin]]:
    left, right = inputs
    columns = {name: left.columns.get(name, right.columns.get(name, frozenset())) for name in names}
    said: Iterable[str] = ()
    if isinstance(join, ops.Join):
        said = () if join.condition is None else list(columns_of(join.condition))
        if join.coalesce_keys and join.how in (JoinType.RIGHT, JoinType.FULL):
            for mine, other in zip(join.left_keys, join.right_keys, strict=True):
                columns[mine] = left.columns[mine] | right.columns[other]
    decided = _by(join.left_keys, left, JOIN) | _by(join.right_keys, right, JOIN)
    for side in inputs:
        decided |= _by((name for name in said if name in side.columns), side, JOIN)
    return columns, decided


def _of_expression(expression: Expression, rows: Rows) -> frozenset[Origin]:
    if isinstance(expression, ColumnRef):
        return rows.columns[expression.name]
    return _made(columns_of(expression), rows, TRANSFORMATION)


def _made(names: Iterable[str], rows: Rows, subtype: str) -> frozenset[Origin]:
    """Return the origins of a value that is computed of columns."""
    found = frozenset().union(*(rows.columns[name] for name in names))
    return frozenset(one._replace(subtype=max(one.subtype, subtype, key=_DIRECT.index)) for one in found)


def _by(names: Iterable[str], rows: Rows, subtype: str) -> frozenset[Origin]:
    """Return the origins of columns that decide which rows there are."""
    found = frozenset().union(*(rows.columns[name] for name in names))
    return frozenset(one._replace(subtype=subtype) for one in found)
