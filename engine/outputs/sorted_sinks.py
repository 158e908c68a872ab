"""Sinks whose rows are in an order: by the columns of partitions, then as the user says.

    sorted_sink(node, spec, order)         Sort below the sink
    sorted_to_the_row(node, order)         by their places last, where a partition may have several files

Held by: tests/integration/test_partitioned_outputs.py
"""

from __future__ import annotations

from engine.graph.expression import ROW_PLACE, NamedExpression
from engine.graph.plan import Sink, Sort
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, free_name, project_node


def sorted_sink(node: LogicalNode, spec: SinkSpec, order: tuple[SortKey, ...]) -> LogicalNode:
    """Return a sink of rows in an order."""
    rows = sorted_rows(node, order) if order else node
    if spec.partition_by and spec.target_file_bytes and not _is_sorted_by(node, order):
        rows = sorted_to_the_row(node, order)
    # One subtask reads the others in the order of their rows.
    return LogicalNode(Sink(spec), (rows,), node.schema, parallelism=1 if spec.is_single_file else None)


def sorted_rows(node: LogicalNode, order: tuple[SortKey, ...]) -> LogicalNode:
    """Return the rows in an order."""
    return LogicalNode(Sort(order), (node,), node.schema)


def sorted_to_the_row(node: LogicalNode, order: tuple[SortKey, ...]) -> LogicalNode:
    """Return the rows in an order, last by their places: no two are equal, so ranges may end between any two."""
    place = free_name("__place", node.schema)
    kept = columns_as_they_are(node.schema.names)
    placed = project_node(node, [*kept, NamedExpression(place, ROW_PLACE)], "write")
    return project_node(sorted_rows(placed, (*order, SortKey(place))), kept, "write")


def _is_sorted_by(node: LogicalNode, order: tuple[SortKey, ...]) -> bool:
    operator = node.operator
    return isinstance(operator, Sort) and operator.keys[: len(order)] == order
