"""Columns as users pass them to select, with_columns, drop and rename: names and named expressions.

    names, Exprs, lists of them, name=value ──► NamedExpression *

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from engine.column_expressions.expression import Expr, to_expression
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name, check_columns
from engine.graph.expression import ColumnRef, NamedExpression


def flattened(values: Iterable[Any]) -> list[Any]:
    """Return arguments with lists and tuples among them opened."""
    result: list[Any] = []
    for value in values:
        result += flattened(value) if isinstance(value, list | tuple) else [value]
    return result


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
