"""Rows on their way into a table that a job changes: values of hidden partitions behind them, in the table's order.

    with_images(rows, before)       beside rows that are updated, for tables that keep their changes, those of before

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from typing import Any

from engine.api.expressions import lit
from engine.api.output_calls import sorted_sink
from engine.formats.table_target import TableOutput
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.merge_action import ACTION, FILE, POSITION, PREIMAGE
from engine.graph.sort_key import SortKey
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import project_node


def table_rows(rows: LogicalNode, output: TableOutput, call: str) -> LogicalNode:
    """Return rows in the form in which an output takes them."""
    if output.partitions:
        own = [NamedExpression(name, ColumnRef(name)) for name in rows.schema.names]
        rows = project_node(rows, [*own, *output.partitions], call)
    (node,) = sorted_sink(rows, output.spec, tuple(map(SortKey, output.order))).inputs
    return node


def with_images(rows: Any, before: Any) -> Any:
    """Return the rows of a change, and those that it updates as they were: ``before`` has the columns of the table."""
    image = {
        name: lit(PREIMAGE if name == ACTION else None, rows.schema.field(name).type)
        for name in (ACTION, FILE, POSITION)
        if name in rows.schema.names
    }
    return rows.union(before.with_columns(**image))
