"""Columns as users pass them to select, with_columns, drop and rename: names and named expressions.

    names, selectors, Exprs, lists of them, name=value ──► NamedExpression *

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from engine.column_expressions.expression import Expr, to_expression
from engine.column_expressions.python_habits import check_own
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name, check_columns
from engine.graph.expression import ColumnRef, NamedExpression


def flattened(values: Iterable[Any]) -> list[Any]:
    """Return arguments with lists and tuples among them opened."""
    result: list[Any] = []
    for value in values:
        result += flattened(value) if isinstance(value, list | tuple) else [value]
    return result


def columns_given(values: Iterable[Any], schema: pa.Schema) -> list[Any]:
    """Return arguments with lists opened, and with the columns of a schema in the place of selectors and patterns."""
    from engine.column_expressions.selected_columns import expanded

    return expanded(flattened(values), schema)


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
    check_own(value, f"{what}: ")
    if callable(value) and not isinstance(value, Expr):
        name = getattr(value, "__name__", type(value).__name__)
        raise SchemaError(
            f"{what}: Could not extract key from {name}: keys are columns, not functions; compute the key as a column "
            "first, with with_columns(key=expression) or map(function, schema), and name it here"
        )
    raise SchemaError(f"{what}: {value!r} is no column name; make a column of it first with with_columns(name=...)")


def column_names(values: Any, what: str, schema: pa.Schema | None = None) -> list[str]:
    """Return plain column names given as one or as a list; with a schema also by selectors."""
    given = flattened([values]) if schema is None else columns_given([values], schema)
    return [column_name(value, what) for value in given]


def selected(schema: pa.Schema, columns: Iterable[Any], named: Mapping[str, Any]) -> list[NamedExpression]:
    """Return columns, and those that are given by a name."""
    return [*(to_named(value) for value in columns_given(columns, schema)), *_named(schema, named, "select")]


def _named(schema: pa.Schema, named: Mapping[str, Any], what: str) -> list[NamedExpression]:
    found = []
    for name, value in named.items():
        if isinstance(value, str):
            raise SchemaError(f"{what}({name}={value!r}): write col({value!r}) or lit({value!r})")
        check_column_name(name, what)
        one = columns_given([value.alias(name)], schema) if isinstance(value, Expr) else [Expr(to_expression(value))]
        found.append(NamedExpression(name, one[0].expression))
    return found


def with_columns(schema: pa.Schema, exprs: Iterable[Any], named: Mapping[str, Any]) -> list[NamedExpression]:
    """Return all columns, with some replaced in their place and new ones at the end."""
    new: dict[str, NamedExpression] = {}
    for value in columns_given(exprs, schema):
        one = to_named(value)
        new[one.name] = one
    new |= {one.name: one for one in _named(schema, named, "with_columns")}
    if not new:
        raise SchemaError("with_columns: no columns are given")
    known = set(schema.names)
    kept = [new.get(name) or NamedExpression(name, ColumnRef(name)) for name in schema.names]
    return [*kept, *(one for name, one in new.items() if name not in known)]


def renamed(
    schema: pa.Schema, names: Mapping[str, str] | Callable[[str], str] | None, more: Mapping[str, str]
) -> list[NamedExpression]:
    """Return all columns, some under new names: old name to new name, or a function of the name."""
    if callable(names):
        names = {name: names(name) for name in schema.names}
    names = {**(names or {}), **more}
    check_columns(names, schema)
    for new in names.values():
        check_column_name(new, "rename")
    return [NamedExpression(names.get(name, name), ColumnRef(name)) for name in schema.names]
