"""Rows on their way into a table of Iceberg: columns of its types, partitions computed, sorted by them.

    rows ─► cast, missing columns null ─► + hidden columns: transforms ─► sort by these, then sort_by ─► sink

Ranges of the sort are shipped, so that a subtask writes one partition after the other, with one file open, however many
partitions there are. With a target size that the user gives, rows are sorted by their places last: ranges may end
within a partition then, and a large one is written by several subtasks.

Held by: tests/iceberg_tables/test_write_iceberg.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engine.column_expressions.expressions import col, lit
from engine.errors import SchemaError
from engine.files.store_access import StoreAccess
from engine.graph.expression import Call, ColumnRef, NamedExpression
from engine.graph.plan import Sink
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables.write_options import encoded
from engine.iceberg_tables.write_plan import WritePlan, WriteRequest, write_plan
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, project_node
from engine.outputs.sink_options import file_size
from engine.outputs.sorted_sinks import sorted_rows, sorted_to_the_row
from engine.parquet.writer import check_compression
from engine.records.key_types import is_key_type, key_remedy

_CALL = "write_iceberg"


class IcebergOutput(NamedTuple):
    """The arguments of ``write_iceberg``."""

    table: str
    catalog: Any
    mode: str
    partition_by: Sequence[str] | None
    sort_by: Sequence[str] | None
    target_file_size: int | str | None
    #: None: that of the table
    compression: str | None
    properties: Mapping[str, str] | None
    stores: StoreAccess


def iceberg_sink(rows: LogicalNode, output: IcebergOutput) -> LogicalNode:
    """Return the sink of rows in a table. Raises: what ``write_plan`` does."""
    if output.compression is not None:
        check_compression(output.compression, None, _CALL)
    request = WriteRequest(
        output.table,
        output.catalog,
        output.mode,
        output.partition_by,
        output.sort_by,
        output.properties or {},
        output.stores,
    )
    plan = write_plan(request, rows.schema)
    ready = _partitioned(_like_table(rows, plan), plan)
    order = tuple(SortKey(name) for name in dict.fromkeys([*(each.name for each in plan.hidden), *plan.sort_by]))
    _check_order(order, ready)
    size = file_size(output.target_file_size, _CALL)
    codec = plan.codec if output.compression is None else (output.compression, None)
    if order:
        ready = sorted_to_the_row(ready, order) if size and plan.hidden else sorted_rows(ready, order)
    mode = output.mode if output.mode in ("append", "overwrite_partitions") else ""
    spec = SinkSpec(
        "iceberg",
        plan.options.location,
        overwrite=output.mode == "overwrite",
        compression=codec[0],
        compression_level=codec[1],
        mode=mode,
        partition_by=tuple(each.name for each in plan.hidden),
        target_file_bytes=size or plan.target_file_bytes,
        options=encoded(plan.options),
    )
    return LogicalNode(Sink(spec), (ready,), ready.schema)


def _like_table(rows: LogicalNode, plan: WritePlan) -> LogicalNode:
    """Return rows with the columns of a table, in its order and of its types."""
    named = []
    for field in plan.columns:
        value = col(field.name) if field.name in rows.schema.names else lit(None)
        is_same = field.name in rows.schema.names and rows.schema.field(field.name).type == field.type
        named.append(NamedExpression(field.name, value.expression if is_same else value.cast(field.type).expression))
    return project_node(rows, named, _CALL)


def _partitioned(rows: LogicalNode, plan: WritePlan) -> LogicalNode:
    """Return rows with the values of their partitions behind them."""
    if not plan.hidden:
        return rows
    return project_node(rows, [*columns_as_they_are(rows.schema.names), *partition_values(plan)], _CALL)


def partition_values(plan: WritePlan) -> Iterator[NamedExpression]:
    """Yield the hidden columns with the values of partitions."""
    for each in plan.hidden:
        options: dict[str, Any] = {"transform": each.transform, "width": each.width}
        yield NamedExpression(each.name, Call("partition_transform", (ColumnRef(each.source),), options))


def _check_order(order: Sequence[SortKey], rows: LogicalNode) -> None:
    for key in order:
        data_type = rows.schema.field(key.column).type
        if not is_key_type(data_type):
            raise SchemaError(
                f"{_CALL}: column {key.column!r} is {data_type}, which has no order: {key_remedy(data_type)}"
            )
