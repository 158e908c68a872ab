"""Groups: keys that are computed become columns first; several sets of keys are groups each, and their union.

    GroupBy(keys, outputs)               rows ─► keys as columns ─► aggregates
    GroupBy(..., sets, grouping_id)      a, b (null where they are not in the set), the aggregates, the set's number

The number of a set has a bit for each key, the first key the highest, that is 1 where the key is not in the set: what
SQL's ``grouping(a, b)`` is. It tells a total from the group of a null.

Held by: tests/integration/test_shapes.py
Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.plan import Limit
from engine.graph.said_operators import GroupBy
from engine.lowering.aggregate_columns import aggregates_node
from engine.lowering.aggregate_nodes import aggregate_node
from engine.lowering.joins import union_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, project_node
from engine.records.key_types import is_key_type, key_remedy

#: type of a set's number, by the number of keys
_NUMBER_TYPES: Final = ((8, pa.uint8()), (16, pa.uint16()), (32, pa.uint32()), (64, pa.uint64()))


def keyed_node(source: LogicalNode, keys: Sequence[NamedExpression]) -> LogicalNode:
    """Return a node that has the keys as columns; SchemaError for a type that cannot be a key."""
    names = [one.name for one in keys]
    node = source
    if any(one.expression != ColumnRef(one.name) for one in keys):
        kept = [NamedExpression(name, ColumnRef(name)) for name in source.schema.names if name not in names]
        node = project_node(source, [*kept, *keys], "group_by")
    for name in names:
        data_type = infer_type(ColumnRef(name), node.schema)
        if not is_key_type(data_type):
            raise SchemaError(
                f"group_by: column {name!r} is {data_type}, which cannot be a key: {key_remedy(data_type)}"
            )
    return node


def grouped(source: LogicalNode, said: GroupBy) -> LogicalNode:
    """Return the groups of a node."""
    node = keyed_node(source, said.keys)
    names = tuple(one.name for one in said.keys)
    if said.sets is None:
        return aggregates_node(node, names, said.outputs)
    parts = [_of_set(node, said, names, wanted) for wanted in said.sets]
    return parts[0] if len(parts) == 1 else union_node(parts)


def _of_set(node: LogicalNode, said: GroupBy, names: tuple[str, ...], wanted: tuple[str, ...]) -> LogicalNode:
    own = tuple(name for name in names if name in wanted)
    if said.outputs:
        groups = aggregates_node(node, own, said.outputs)
    elif own:
        groups = aggregate_node(project_node(node, columns_as_they_are(own), "select"), own, ())
    else:
        # a set without keys and aggregates is one row where there are any
        groups = LogicalNode(Limit(1), (node,), node.schema)
    columns = [
        NamedExpression(name, ColumnRef(name) if name in wanted else make_literal(None, node.schema.field(name).type))
        for name in names
    ]
    if said.grouping_id:
        bits = sum(1 << place for place, name in enumerate(reversed(names)) if name not in wanted)
        number_type = next(one for most, one in _NUMBER_TYPES if len(names) <= most)
        columns.append(NamedExpression(said.grouping_id, make_literal(bits, number_type)))
    columns += columns_as_they_are(one.name for one in said.outputs)
    return project_node(groups, columns, "select")
