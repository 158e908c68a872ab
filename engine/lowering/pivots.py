"""Pivot: a column for each value of a column, as two aggregates.

    rows ──► group by index, on: agg(value) ──► group by index: for each value v of on, max(value where on is v)

The first has one row for each cell of the result and is any aggregate at all; the second puts the cells of a line
together.

Held by: tests/integration/test_shapes.py
"""

from __future__ import annotations

from engine.errors import SchemaError
from engine.expressions.text import expression_text
from engine.graph.expression import AggregateCall, ColumnRef, NamedExpression
from engine.graph.said_operators import Pivot
from engine.lowering.aggregate_columns import aggregates_node
from engine.lowering.aggregate_nodes import aggregate_node
from engine.lowering.groups import keyed_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, project_node
from engine.lowering.terms import case
from engine.records.key_types import is_key_type


def pivoted(source: LogicalNode, said: Pivot) -> LogicalNode:
    """Return a row for each index, and a column for each condition and cell."""
    keys = columns_as_they_are([*said.index, said.on])
    held = [f"__cell{number}" for number in range(len(said.cells))]
    cells = [NamedExpression(name, cell.expression) for name, cell in zip(held, said.cells, strict=True)]
    parts = aggregates_node(keyed_node(source, keys), (*said.index, said.on), cells)
    for cell in cells:
        data_type = parts.schema.field(cell.name).type
        if not is_key_type(data_type):
            raise SchemaError(f"pivot: {expression_text(cell.expression)} is {data_type}, which a cell cannot hold")
    calls: dict[str, AggregateCall] = {}
    for column in said.columns:
        for cell, name in zip(said.cells, held, strict=True):
            called = column.name if len(said.cells) == 1 else f"{column.name}_{cell.name}"
            if called in calls or called in said.index:
                raise SchemaError(f"pivot: there would be two columns {called!r}; rename one, or say columns=")
            calls[called] = AggregateCall("max", case((column.expression, ColumnRef(name))), called)
    if not calls:
        return aggregate_node(project_node(parts, columns_as_they_are(said.index), "pivot"), said.index, ())
    return aggregate_node(parts, said.index, tuple(calls.values()))
