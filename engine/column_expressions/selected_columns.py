"""Expressions over several columns as one for each: what selectors mean once a schema is known.

    expanded([cs.float() * 2, "k"], schema) -> [a * 2 under the name a, b * 2 under the name b, "k"]

``Columns`` is the leaf that stands for the columns. Data sets replace it where they take columns: a plan holds none.

Held by: tests/integration/test_selectors.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from engine.column_expressions.expression import Expr, NamedLater
from engine.errors import SchemaError
from engine.graph.expression import (
    Aggregated,
    Call,
    ColumnRef,
    Expression,
    OrderedBy,
    Over,
    parts_of,
    with_children,
)

#: function that returns the names of the chosen columns, in the order of the schema
Choose = Callable[[pa.Schema], Sequence[str]]

#: functions of any number of like values, among whose arguments a selector stands for all its columns
_OF_MANY: Final = frozenset({"array", "coalesce", "greatest", "least", "hash64"})


class Columns(ColumnRef, frozen=True, tag="column"):
    """The place of several columns in an expression, until a schema says which; ``name`` is the selector's text."""

    choose: Choose

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def is_pattern(name: str) -> bool:
    """Whether a name is a regular expression, as Polars writes it."""
    return len(name) > 1 and name[0] == "^" and name[-1] == "$"


def expanded(values: Sequence[Any], schema: pa.Schema) -> list[Any]:
    """Return arguments with selectors and patterns among them replaced by the columns of a schema, one by one.

    A column that is chosen as it is comes as its name. Raises: SchemaError where nothing is chosen, where one
    expression has several selectors, or one name is given to several columns.
    """
    found: list[Any] = []
    for value in values:
        if isinstance(value, str):
            leaf = _leaf(value, schema)
            found += [value] if leaf is None else chosen(leaf, schema)
        else:
            found += _columns_of(value, schema) if isinstance(value, Expr) else [value]
    return found


def _leaf(name: str, schema: pa.Schema) -> Columns | None:
    """Return the choice of a pattern, or of ``*``; None of the name of a column."""
    if not (name == "*" or is_pattern(name)) or name in schema.names:
        return None
    return Columns("cs.all()", lambda schema: schema.names) if name == "*" else columns_like(name)


def columns_like(pattern: str) -> Columns:
    """Return the choice of columns in whose name a regular expression is found."""
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise SchemaError(f"matches({pattern!r}): no regular expression: {error}") from None
    return Columns(
        f"cs.matches({pattern!r})", lambda schema: [name for name in schema.names if compiled.search(name) is not None]
    )


def chosen(leaf: Columns, schema: pa.Schema) -> list[str]:
    """Return the names of the chosen columns; SchemaError where there is none."""
    names = list(leaf.choose(schema))
    if not names:
        there = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise SchemaError(f"{leaf.name} selects no column; there are {there}")
    return names


def _columns_of(value: Expr, schema: pa.Schema) -> list[Any]:
    expression = _with_lists(value.expression, schema)
    leaves: list[Columns] = []
    _collect(expression, schema, leaves)
    if not leaves:
        return [value] if expression is value.expression else [Expr(expression, value.output_name)]
    if len(leaves) > 1:
        raise SchemaError(
            f"several selectors in one expression, {leaves[0].name} and {leaves[1].name}; an expression is repeated "
            "for the columns of one"
        )
    (leaf,) = leaves
    names = chosen(leaf, schema)
    naming = value.naming if isinstance(value, NamedLater) else _alias_of(value, leaf, names, schema)
    if naming is None and isinstance(expression, ColumnRef):
        return names
    return [
        Expr(_with_column(expression, leaf, schema, name), name if naming is None else naming(name)) for name in names
    ]


def _alias_of(value: Expr, leaf: Columns, names: Sequence[str], schema: pa.Schema) -> Callable[[str], str] | None:
    """Return the function by which an alias names a column, None where it has none; SchemaError of several columns."""
    alias = value.output_name
    # a cast has the name of what is cast
    if not value.has_name or alias == leaf.name or _leaf(alias, schema) is not None:
        return None
    if len(names) > 1:
        raise SchemaError(
            f"alias({alias!r}) is one name for {len(names)} columns ({', '.join(names[:5])}); write "
            ".name.suffix(text), .name.prefix(text) or .name.map(function)"
        )
    return lambda _: alias


def _with_parts(expression: Expression, parts: Sequence[Expression]) -> Expression:
    if not isinstance(expression, Aggregated):
        return with_children(expression, parts)
    count, has_where = len(expression.arguments), expression.where is not None
    keys = zip(expression.order_by, parts[count + has_where :], strict=True)
    return replace(
        expression,
        arguments=tuple(parts[:count]),
        where=parts[count] if has_where else None,
        order_by=tuple(replace(key, expression=one) for key, one in keys),
    )


def _leaf_of(part: Expression, schema: pa.Schema) -> Columns | None:
    if isinstance(part, Columns):
        return part
    return _leaf(part.name, schema) if isinstance(part, ColumnRef) else None


def _collect(expression: Expression, schema: pa.Schema, leaves: list[Columns]) -> None:
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        leaf = _leaf_of(part, schema)
        if leaf is not None and leaf not in leaves:
            leaves.append(leaf)
        waiting.extend(parts_of(part)[::-1])


def _with_column(expression: Expression, leaf: Columns, schema: pa.Schema, name: str) -> Expression:
    if _leaf_of(expression, schema) == leaf:
        return ColumnRef(name)
    parts = parts_of(expression)
    return _with_parts(expression, [_with_column(part, leaf, schema, name) for part in parts]) if parts else expression


def _with_lists(expression: Expression, schema: pa.Schema) -> Expression:
    """Return an expression with selectors opened where a list of columns stands: keys of windows, ``least`` ..."""
    if not _has_leaf(expression, schema):
        return expression
    parts = [_with_lists(part, schema) for part in parts_of(expression)]
    made = _with_parts(expression, parts) if parts else expression
    if isinstance(made, Call) and made.function in _OF_MANY:
        return replace(made, arguments=tuple(_many(made.arguments, schema)))
    if isinstance(made, Over):
        order = [
            OrderedBy(one, key.descending, key.nulls_last)
            for key in made.order_by
            for one in _many([key.expression], schema)
        ]
        return replace(made, partition_by=tuple(_many(made.partition_by, schema)), order_by=tuple(order))
    return made


def _has_leaf(expression: Expression, schema: pa.Schema) -> bool:
    leaves: list[Columns] = []
    _collect(expression, schema, leaves)
    return bool(leaves)


def _many(values: Sequence[Expression], schema: pa.Schema) -> Iterator[Expression]:
    for value in values:
        leaf = _leaf_of(value, schema)
        if leaf is None:
            yield value
        else:
            yield from (ColumnRef(name) for name in chosen(leaf, schema))
