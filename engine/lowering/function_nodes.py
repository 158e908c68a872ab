"""Nodes of users' functions over groups of two inputs, and functions that are given whole data sets.

    co_group_node        both sides with keys of one type, and how a row of each is one of their rows together
    with_broadcasts      a function's node with more inputs

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.column_names import check_columns
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.plan import CoGroup, GroupReduce, PythonFunction
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import cast_node


def co_group_node(
    left: LogicalNode, right: LogicalNode, keys: list[str], function: PythonFunction, schema: pa.Schema
) -> LogicalNode:
    """Return the node of a function over the groups of two nodes; ``schema``: what it returns."""
    from engine.expressions.infer import infer_schema
    from engine.lowering.exact_keys import compared_type

    if not keys or len(set(keys)) < len(keys):
        raise SchemaError(f"co_group: no key, or one given twice: {', '.join(keys)}")
    for side in (left, right):
        check_columns(keys, side.schema)
    fields = {key: (left.schema.field(key), right.schema.field(key)) for key in keys}
    types = {key: compared_type(*pair, is_total=True, call="co_group") for key, pair in fields.items()}
    left, right = cast_node(left, types), cast_node(right, types)
    names = tuple(f"__key{index}" for index in range(len(keys)))
    views = (_view(left.schema, keys, names, "left"), _view(right.schema, keys, names, "right"))
    pairs = [_pair_columns(side, (left.schema, right.schema), views) for side in (0, 1)]
    pair_schema = infer_schema(pairs[0], left.schema)
    operator = CoGroup(names, function, tuple(pairs[0]), tuple(pairs[1]), to_plan_schema(pair_schema), views)
    return LogicalNode(operator, (left, right), schema)


def _view(schema: pa.Schema, keys: list[str], names: tuple[str, ...], side: str) -> tuple[tuple[str, str], ...]:
    """Return (name, name in the output where both sides are one) for each column of a side."""
    key_names = dict(zip(keys, names, strict=True))
    return tuple((name, key_names.get(name, f"__{side}{index}")) for index, name in enumerate(schema.names))


def _pair_columns(
    side: int, schemas: tuple[pa.Schema, pa.Schema], views: Sequence[tuple[tuple[str, str], ...]]
) -> list[NamedExpression]:
    """Return the columns of both sides as expressions over one: keys, the side's number, own columns, nulls."""
    from engine.functions.group_rows import SIDE

    own = {column: name for name, column in views[side]}
    keys = sorted(column for column in own if column.startswith("__key"))
    columns = [NamedExpression(key, ColumnRef(own[key])) for key in keys]
    columns.append(NamedExpression(SIDE, make_literal(side, pa.int8())))
    for index, (schema, view) in enumerate(zip(schemas, views, strict=True)):
        for name, column in view:
            if column not in keys:
                value = ColumnRef(name) if index == side else make_literal(None, schema.field(name).type)
                columns.append(NamedExpression(column, value))
    return columns


def with_broadcasts(node: LogicalNode, data_sets: dict[str, LogicalNode]) -> LogicalNode:
    """Return a function's node with more broadcast data sets; SchemaError when it is none, or a name is taken."""
    operator = node.operator
    function = operator.function if isinstance(operator, GroupReduce | CoGroup) else operator
    if not isinstance(function, PythonFunction):
        raise SchemaError("with_broadcast: goes right behind map, flat_map, filter(function), reduce and the like")
    taken = sorted(set(function.broadcasts) & set(data_sets))
    if taken or not data_sets:
        raise SchemaError(f"with_broadcast: {f'{taken[0]!r} is there already' if taken else 'no data set is given'}")
    names = (*function.broadcasts, *data_sets)
    from engine.functions.worker_protocol import BROADCASTS_MAX

    if len(names) > BROADCASTS_MAX:
        raise SchemaError(f"with_broadcast: {len(names)} data sets; at most {BROADCASTS_MAX}")
    function = msgspec.structs.replace(function, broadcasts=names)
    changed = (
        msgspec.structs.replace(operator, function=function)
        if isinstance(operator, GroupReduce | CoGroup)
        else function
    )
    return LogicalNode(changed, (*node.inputs, *data_sets.values()), node.schema, node.name, node.parallelism)
