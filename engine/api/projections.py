"""Projections: from what users pass to select, with_columns, drop and rename to named expressions of a node.

names, Exprs, lists of them, name=value ──► NamedExpression * ──► LogicalNode(Project)

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.api.expression import Expr, to_expression
from engine.api.logical_node import LogicalNode
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Cast, ColumnRef, NamedExpression
from engine.graph.plan import Project


def project_node(source: LogicalNode, named: Sequence[NamedExpression], what: str) -> LogicalNode:
    """Return a projection of a node; SchemaError for no columns, a name that occurs twice, or bad expressions."""
    from engine.expressions.infer import infer_schema

    if not named:
        raise SchemaError(f"{what}: no columns are left")
    names = [check_column_name(one.name, what) for one in named]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise SchemaError(f"{what}: column {', '.join(map(repr, twice))} would be there twice; use alias()")
    return LogicalNode(Project(tuple(named)), (source,), infer_schema(named, source.schema))


def free_name(wanted: str, *schemas: pa.Schema) -> str:
    """Return a name that no column has, for one that only the engine sees."""
    taken = {name for schema in schemas for name in schema.names}
    while wanted in taken:
        wanted = f"_{wanted}"
    return wanted


def flattened(values: Iterable[Any]) -> list[Any]:
    """Return arguments with lists and tuples among them opened."""
    result: list[Any] = []
    for value in values:
        result += flattened(value) if isinstance(value, list | tuple) else [value]
    return result


def check_columns(names: Iterable[str], schema: pa.Schema) -> None:
    """Raise SchemaError for a name that is no column."""
    known = set(schema.names)
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(f"{name!r} is no column name")
        if name not in known:
            from engine.expressions.compile import unknown_column

            raise unknown_column(name, schema.names)


def to_named(value: Any) -> NamedExpression:
    """Return a column name or an Expr as a named expression."""
    if isinstance(value, str):
        return NamedExpression(value, ColumnRef(value))
    if isinstance(value, Expr):
        return value.named()
    to_expression(value)
    raise SchemaError(f"{value!r}: expected a column name or an expression; a constant is lit({value!r}).alias('name')")


def column_name(value: Any, what: str) -> str:
    """Return the name of a plain column, given by name or as ``col(name)``."""
    if isinstance(value, str):
        return value
    if isinstance(value, Expr) and isinstance(value.expression, ColumnRef):
        return value.expression.name
    if callable(value) and not isinstance(value, Expr):
        name = getattr(value, "__name__", type(value).__name__)
        raise SchemaError(
            f"{what}: Could not extract key from {name}: keys are columns, not functions; compute the key as a column "
            "first, with with_columns(key=expression) or map(function, schema), and name it here"
        )
    raise SchemaError(f"{what}: {value!r} is no column name; make a column of it first with with_columns(name=...)")


def column_names(values: Any, what: str) -> list[str]:
    """Return plain column names given as one or as a list."""
    return [column_name(value, what) for value in flattened([values])]


def selected(columns: Iterable[Any], named: Mapping[str, Any]) -> list[NamedExpression]:
    """Return columns, and those that are given by a name."""
    return [*(to_named(value) for value in flattened(columns)), *_named(named, "select")]


def _named(named: Mapping[str, Any], what: str) -> list[NamedExpression]:
    for name, value in named.items():
        if isinstance(value, str):
            raise SchemaError(f"{what}({name}={value!r}): write col({value!r}) or lit({value!r})")
    return [NamedExpression(name, to_expression(value)) for name, value in named.items()]


def with_columns(schema: pa.Schema, exprs: Iterable[Any], named: Mapping[str, Any]) -> list[NamedExpression]:
    """Return all columns, with some replaced in their place and new ones at the end."""
    new: dict[str, NamedExpression] = {}
    for value in flattened(exprs):
        one = to_named(value)
        new[one.name] = one
    new |= {one.name: one for one in _named(named, "with_columns")}
    if not new:
        raise SchemaError("with_columns: no columns are given")
    known = set(schema.names)
    kept = [new.get(name) or NamedExpression(name, ColumnRef(name)) for name in schema.names]
    return [*kept, *(one for name, one in new.items() if name not in known)]


def renamed(schema: pa.Schema, names: Mapping[str, str]) -> list[NamedExpression]:
    """Return all columns, some under new names (old name to new name)."""
    check_columns(names, schema)
    for new in names.values():
        check_column_name(new, "rename")
    return [NamedExpression(names.get(name, name), ColumnRef(name)) for name in schema.names]


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
