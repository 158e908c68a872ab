"""Calls on Delta tables: what ``write_delta`` and ``env.optimize`` make of their arguments.

Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec.structs import replace

from engine.errors import ConfigurationError
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Cast, ColumnRef, NamedExpression
from engine.graph.source_spec import SinkSpec
from engine.lowering.projections import project_node
from engine.outputs.sink_options import MODES, with_options

if TYPE_CHECKING:
    from engine.lowering.logical_node import LogicalNode
    from engine.outputs.sink_options import SinkOptions

#: bytes of a file, where neither the user says it nor there are partitions
_FILE_BYTES: Final = 128 << 20


def delta_write(
    node: LogicalNode,
    place: str,
    mode: str,
    schema_mode: str,
    options: SinkOptions,
    properties: Mapping[str, str],
) -> tuple[LogicalNode, SinkSpec, Any]:
    """Return rows as a table takes them, the sink, and the order of the rows."""
    from engine.delta_tables.planned_write import planned_write
    from engine.delta_tables.table_write import encoded

    call = "write_delta"
    if mode not in MODES:
        raise ConfigurationError(f"{call}: mode={mode!r}: choose one of {', '.join(MODES)}")
    if schema_mode not in ("strict", "union"):
        raise ConfigurationError(f"{call}: schema_mode={schema_mode!r}: choose strict or union")
    if any(not isinstance(text, str) for pair in properties.items() for text in pair):
        raise ConfigurationError(f"{call}: properties={dict(properties)!r}: names and values are texts")
    keys = options.get("partition_by") or ()
    if len({*keys}) < len(keys) and not isinstance(keys, str):
        raise ConfigurationError(f"{call}: partition_by={list(keys)!r}: name each column once")
    write, wanted = planned_write(
        place, node.schema, mode, (keys,) if isinstance(keys, str) else tuple(keys), schema_mode, properties
    )
    if mode == "overwrite_partitions" and not write.partition_by:
        raise ConfigurationError(f"{call}: mode='overwrite_partitions' needs partition_by")
    rows = _converted(node, wanted)
    ordered: SinkOptions = {**options, "partition_by": write.partition_by}
    if not write.partition_by:
        ordered.setdefault("target_file_size", _FILE_BYTES)
    spec, order = with_options(SinkSpec("delta", place, options=encoded(write)), rows.schema, ordered, call)
    # With a mode a subtask without rows makes no file.
    return rows, replace(spec, mode=mode, overwrite=mode == "overwrite"), order


def _converted(node: LogicalNode, wanted: pa.Schema) -> LogicalNode:
    """Return a node with the columns of a schema, in its order and of its types."""
    if node.schema.equals(wanted):
        return node
    named = [NamedExpression(field.name, _as_type(node.schema.field(field.name), field)) for field in wanted]
    return project_node(node, named, "write_delta")


def _as_type(found: pa.Field, wanted: pa.Field) -> Any:
    column = ColumnRef(found.name)
    return column if found.type == wanted.type else Cast(column, type_to_ipc(wanted.type), str(wanted.type))
