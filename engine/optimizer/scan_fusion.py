"""Filters that are evaluated where rows are read: a filter right behind a Parquet source becomes a part of it.

    source ─► filter ─► projection of columns        source (filter, columns)

The reader leaves out row groups by their statistics, looks at the columns of the filter first, and reads the others
where rows are left (``engine.parquet.row_filter``). A projection that only leaves columns out is gone with the filter.

What is fused: rows of the source without another consumer, unless the filter, or the projection, has a name, with which
it stays visible, or the source a rate, which counts rows that are read. The plan keeps its filter: estimates, and all
that is decided by them, are what they were; the fused operator has those of the filter.

Source: TableScan of DataFusion and DuckDB.
Held by: tests/optimizer/test_scan_fusion.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from engine.formats.registry import format_of
from engine.graph.expression import ColumnRef, Expression, columns_of
from engine.graph.operator_descriptor import FilterOperator, ProjectOperator, SourceOperator
from engine.graph.plan import Plan
from engine.graph.plan_schema import PlanSchema
from engine.graph.ship_strategy import ShipStrategy
from engine.graph.source_spec import SourceSpec
from engine.optimizer.physical_plan import PhysicalNode
from engine.shown_sizes import rows_text


def fuse_scans(nodes: Sequence[PhysicalNode], plan: Plan) -> list[PhysicalNode]:
    """Return the nodes with filters in their sources, numbered anew."""
    readers = Counter(channel.source for node in nodes for channel in node.inputs)
    changed = {node.id: node for node in nodes}
    #: sources by the nodes that were fused into them
    gone: dict[int, int] = {}
    for node in nodes:
        below = node.inputs[0].source if len(node.inputs) == 1 else None
        if below is None or readers[below] != 1:
            continue
        source = changed[gone.get(below, below)]
        if not _is_behind(node, source):
            continue
        is_named = bool(plan.node(node.plan_node).name)
        fused = None if is_named else _with_filter(source, node) or _with_columns(source, node)
        if fused is not None:
            changed[source.id] = fused
            gone[node.id] = source.id
        elif isinstance(node.descriptor.operator, ProjectOperator) and _predicate(source) is not None:
            changed[source.id], changed[node.id] = _narrowed(source, node)
    kept = [node for node_id, node in changed.items() if node_id not in gone]
    position = {node.id: index for index, node in enumerate(kept)}
    return [_moved(node, position, gone) for node in kept]


def _moved(node: PhysicalNode, position: dict[int, int], gone: dict[int, int]) -> PhysicalNode:
    """Return a node with its own and all other ids as they are now."""
    channels = (
        msgspec.structs.replace(channel, source=position[gone.get(channel.source, channel.source)])
        for channel in node.inputs
    )
    return msgspec.structs.replace(node, id=position[node.id], inputs=tuple(channels))


def _is_behind(node: PhysicalNode, source: PhysicalNode) -> bool:
    """Whether a node takes rows as they are read, of a source whose reader takes filters."""
    operator = source.descriptor.operator
    if not isinstance(operator, SourceOperator):
        return False
    is_beside = node.inputs[0].ship_strategy is ShipStrategy.FORWARD and node.parallelism == source.parallelism
    return is_beside and operator.rate_limit is None and format_of(operator.spec).takes_filters


def _spec(source: PhysicalNode) -> SourceSpec:
    operator = source.descriptor.operator
    assert isinstance(operator, SourceOperator)
    return operator.spec


def _predicate(source: PhysicalNode) -> Expression | None:
    return format_of(_spec(source)).predicate(_spec(source))


def _with_filter(source: PhysicalNode, node: PhysicalNode) -> PhysicalNode | None:
    """Return the source with a filter; None when the node is no filter, or not of the source's rows as they are."""
    operator = node.descriptor.operator
    if not isinstance(operator, FilterOperator) or _predicate(source) is not None:
        return None
    if not any(True for _ in columns_of(operator.predicate)):
        return None
    before = source.estimates
    origin = f"{node.estimates.origin}; of {rows_text(before.rows)} rows, {before.origin}"
    return _in_place_of(source, node, origin, msgspec.structs.replace(_spec(source), predicate=operator.predicate))


def _with_columns(source: PhysicalNode, node: PhysicalNode) -> PhysicalNode | None:
    """Return a source that has a filter without the columns that a projection leaves out; None when it does more."""
    operator = node.descriptor.operator
    if not isinstance(operator, ProjectOperator) or node.is_local_phase or _predicate(source) is None:
        return None
    if not operator.expressions or any(named.expression != ColumnRef(named.name) for named in operator.expressions):
        return None
    origin = source.estimates.origin
    columns = tuple(named.name for named in operator.expressions)
    return _in_place_of(source, node, origin, msgspec.structs.replace(_spec(source), columns=columns))


def _in_place_of(source: PhysicalNode, node: PhysicalNode, origin: str, spec: SourceSpec) -> PhysicalNode:
    """Return a source that does what the node behind it did, too; its size comes from ``origin``."""
    return msgspec.structs.replace(
        _reading(source, node.descriptor.output_schema, spec),
        estimates=msgspec.structs.replace(node.estimates, origin=origin),
        costs=source.costs + node.costs,
        cumulative_costs=node.cumulative_costs,
    )


def _narrowed(source: PhysicalNode, node: PhysicalNode) -> tuple[PhysicalNode, PhysicalNode]:
    """Return a source that gives a projection the columns that it computes with, and the projection."""
    schema = source.descriptor.output_schema
    operator = node.descriptor.operator
    assert isinstance(operator, ProjectOperator)
    used = {name for named in operator.expressions for name in columns_of(named.expression)}
    # Rows without columns have no place in a batch.
    columns = tuple(name for name in schema.names if name in used) or schema.names[:1]
    narrow = schema.select(columns)
    descriptor = msgspec.structs.replace(node.descriptor, input_schemas=(narrow,))
    spec = msgspec.structs.replace(_spec(source), columns=columns)
    return _reading(source, narrow, spec), msgspec.structs.replace(node, descriptor=descriptor)


def _reading(source: PhysicalNode, schema: PlanSchema, spec: SourceSpec) -> PhysicalNode:
    """Return a source with another specification, whose rows have the columns of a schema."""
    operator = source.descriptor.operator
    assert isinstance(operator, SourceOperator)
    descriptor = msgspec.structs.replace(
        source.descriptor, operator=msgspec.structs.replace(operator, spec=spec), output_schema=schema
    )
    return msgspec.structs.replace(source, descriptor=descriptor)
