"""The list of a SELECT, its stars taken apart: one column after the other.

    SELECT k, * EXCLUDE (v) REPLACE (k + 1 AS k), COLUMNS('^s'), s.*, v * 2 AS w

Held by: tests/sql/test_select_items.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from sqlglot import exp

from engine.dialects.parser import sentence, written
from engine.errors import NotYetSupportedError, PlanError
from engine.near_names import did_you_mean
from engine.sql.frames import Frame
from engine.sql.scopes import Named, matching


class Item(NamedTuple):
    """A column of the list of SELECT: its name, and what it is."""

    name: str
    node: exp.Expr | None
    #: column of the rows that it is, where it is written as *
    column: str = ""
    has_alias: bool = False


def expanded(select: exp.Select, frame: Frame) -> Iterator[Item]:
    """Yield the columns of the list, those of * one by one."""
    text = frame.session.text
    for node in select.expressions:
        inner = node.unalias() if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Star):
            yield from _starred(frame, inner, list(frame.scope.columns))
        elif isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
            table = frame.scope.table(inner.table)
            yield from _starred(frame, inner.this, table.columns if table is not None else _fields(frame, inner))
        elif isinstance(inner, exp.Anonymous) and inner.name.lower() == "columns":
            if inner is not node:
                raise NotYetSupportedError(sentence(inner, "COLUMNS(...) AS a name; write * RENAME (...)", text))
            yield from _matching(frame, inner)
        elif isinstance(node, exp.Alias):
            yield Item(node.alias, node.this, has_alias=True)
        elif isinstance(node, exp.Column | exp.Dot):
            yield Item(node.name, node)
        else:
            yield Item(written(node, text), node)


def _starred(frame: Frame, star: exp.Star, columns: Sequence[Named]) -> Iterator[Item]:
    if not frame.scope.tables:
        raise PlanError(sentence(star, "* without FROM", frame.session.text))
    excluded = [one.name for one in star.args.get("except_") or ()]
    replaced = {one.alias.lower(): one.this for one in star.args.get("replace") or ()}
    renamed = {one.this.name.lower(): one.alias for one in star.args.get("rename") or ()}
    _check_names(frame, star, (*excluded, *replaced, *renamed), columns)
    left_out = {one.lower() for one in excluded}
    for one in columns:
        lower = one.name.lower()
        if lower in left_out:
            continue
        name = renamed.get(lower, one.name)
        if lower in replaced:
            yield Item(name, replaced[lower])
        else:
            yield Item(name, None, one.column)


def _fields(frame: Frame, star: exp.Column) -> list[Named]:
    """Return the fields of a struct as columns. Raises: PlanError where a name is that of no table and no struct."""
    found = frame.column([star.args[part] for part in ("db", "table") if star.args.get(part)])
    value = reduce(lambda whole, part: whole.field(part.name), found[1], found[0]) if found is not None else None
    if value is None or not pa.types.is_struct(kind := frame.binder.type_of(value)):
        said = f"no table {star.table}{did_you_mean(star.table, [one.name for one in frame.scope.tables])}"
        raise PlanError(sentence(star, said, frame.session.text))
    return [Named(field.name, frame.with_column(value.field(field.name), "field")) for field in kind]


def _check_names(frame: Frame, node: exp.Expr, names: Sequence[str], columns: Sequence[Named]) -> None:
    for name in names:
        if not matching(name, columns):
            known = [one.name for one in columns]
            raise PlanError(sentence(node, f"no column {name}{did_you_mean(name, known)}", frame.session.text))


def _matching(frame: Frame, node: exp.Anonymous) -> Iterator[Item]:
    """Yield the columns of COLUMNS('pattern')."""
    pattern = node.expressions[0] if node.expressions else exp.Star()
    columns = list(frame.scope.columns)
    if isinstance(pattern, exp.Star):
        yield from _starred(frame, pattern, columns)
        return
    if not isinstance(pattern, exp.Literal):
        raise NotYetSupportedError(sentence(node, "COLUMNS() of what is no text", frame.session.text))
    found = [one for one in columns if re.search(str(pattern.this), one.name)]
    if not found:
        raise PlanError(sentence(node, f"no column matches '{pattern.this}'", frame.session.text))
    for one in found:
        yield Item(one.name, None, one.column)


def is_unnest(node: exp.Expr) -> bool:
    """Return whether a node is a call of unnest()."""
    return isinstance(node, exp.Anonymous) and str(node.name).lower() == "unnest"
