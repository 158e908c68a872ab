"""Rows on their way into a table that a job changes: values of hidden partitions behind them, in the table's order.

    in_file_order(rows, output, spread, call)     changes of files, and new rows
    kept_ids(version, updated, side)    ids of rows that move into other files
    with_images(rows, before)       beside rows that are updated, for tables that keep their changes, those of before

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit, when
from engine.column_expressions.windows import row_number
from engine.formats.table_target import TableOutput
from engine.graph.merge_action import ACTION, CHANGED_AT, FILE, ORDER, POSITION, PREIMAGE, ROW_ID
from engine.graph.sort_key import SortKey
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, project_node
from engine.outputs.sorted_sinks import sorted_sink

if TYPE_CHECKING:
    from engine.column_expressions.expression import Expr
    from engine.formats.table_target import TableVersion


def table_rows(rows: LogicalNode, output: TableOutput, call: str) -> LogicalNode:
    """Return rows in the form in which an output takes them."""
    if output.partitions:
        rows = project_node(rows, [*columns_as_they_are(rows.schema.names), *output.partitions], call)
    (node,) = sorted_sink(rows, output.spec, tuple(map(SortKey, output.order))).inputs
    return node


def in_file_order(rows: Any, output: TableOutput, spread: Sequence[str], call: str) -> LogicalNode:
    """Return rows for an output: changes of each file in the order of their places; new ones by some columns."""
    rows = rows.select(*rows.schema.names, **{each.name: Expr(each.expression) for each in output.partitions})
    parts = {f"{ORDER} {name}": when(col(FILE).is_null()).then(col(name)).otherwise(None) for name in spread}
    names = [FILE, *parts]
    number = row_number().over(partition_by=names, order_by=[POSITION])
    numbered = rows.select(*rows.schema.names, **parts).with_columns(**{ORDER: number})
    ordered = numbered.select(*rows.schema.names, ORDER)
    return table_rows(ordered._node, output._replace(partitions=()), call)


def kept_ids(version: TableVersion, is_updated: Expr, side: str = "") -> dict[str, Expr]:
    """Return the columns that rows take into other files; ``side``: before their names in the rows that there are."""
    if not version.keeps_ids:
        return {}
    changed = when(is_updated).then(None).otherwise(col(side + CHANGED_AT))
    return {ROW_ID: col(side + ROW_ID), CHANGED_AT: changed}


def with_images(rows: Any, before: Any) -> Any:
    """Return the rows of a change, and those that it updates as they were: ``before`` has the columns of the table."""
    image = {
        name: lit(PREIMAGE if name == ACTION else None, rows.schema.field(name).type)
        for name in (ACTION, FILE, POSITION)
        if name in rows.schema.names
    }
    return rows.union(before.with_columns(**image))
