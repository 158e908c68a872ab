"""Projections of nodes: new columns, checked; columns widened; names that no column has.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Cast, ColumnRef, NamedExpression
from engine.graph.plan import Project
from engine.lowering.logical_node import LogicalNode


def project_node(source: LogicalNode, named: Sequence[NamedExpression], what: str) -> LogicalNode:
    """Return a projection of a node; SchemaError for no columns, a name that occurs twice, or bad expressions."""
    from engine.expressions.infer import infer_schema

    if not named:
        raise SchemaError(f"{what}: no columns are left")
    names = [check_column_name(one.name, what) for one in named]
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise SchemaError(f"{what}: column {', '.join(map(repr, twice))} would be there twice; use alias()")
    return LogicalNode(Project(tuple(named)), (source,), infer_schema(named, source.schema))


def free_name(wanted: str, *schemas: pa.Schema) -> str:
    """Return a name that no column has, for one that only the engine sees."""
    taken = {name for schema in schemas for name in schema.names}
    while wanted in taken:
        wanted = f"_{wanted}"
    return wanted


def columns_as_they_are(names: Iterable[str]) -> list[NamedExpression]:
    """Return columns of the input for a projection."""
    return [NamedExpression(name, ColumnRef(name)) for name in names]


def fresh_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken, like this one."""
    known = set(taken)
    while name in known:
        name = f"_{name}"
    return name


def cast_node(source: LogicalNode, types: Mapping[str, pa.DataType]) -> LogicalNode:
    """Return a node with some columns widened, or the node itself when all have their type already."""
    if all(source.schema.field(name).type == data_type for name, data_type in types.items()):
        return source
    named = []
    for field in source.schema:
        column = ColumnRef(field.name)
        wanted = types.get(field.name, field.type)
        widened = column if wanted == field.type else Cast(column, type_to_ipc(wanted), str(wanted), widens=True)
        named.append(NamedExpression(field.name, widened))
    return project_node(source, named, "cast")
