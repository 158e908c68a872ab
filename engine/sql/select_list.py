"""The list of a SELECT, its stars taken apart: one column after the other.

    SELECT k, * EXCLUDE (v) REPLACE (k + 1 AS k), COLUMNS('^s'), v * 2 AS w

Held by: tests/sql/test_select_items.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlglot import exp

from engine.dialects.parser import did_you_mean, sentence, written
from engine.errors import NotYetSupportedError, PlanError
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
            if table is None:
                known = [one.name for one in frame.scope.tables]
                said = f"no table {inner.table}{did_you_mean(inner.table, known)}"
                raise PlanError(sentence(inner, said, text))
            yield from _starred(frame, inner.this, list(table.columns))
        elif isinstance(inner, exp.Anonymous) and inner.name.lower() == "columns":
            if inner is not node:
                raise NotYetSupportedError(sentence(inner, "COLUMNS(...) AS a name; write * RENAME (...)", text))
            yield from _matching(frame, inner)
        elif isinstance(node, exp.Alias):
            yield Item(node.alias, node.this, has_alias=True)
        elif isinstance(node, exp.Column):
            yield Item(node.name, node)
        elif isinstance(node, exp.Dot):
            yield Item(node.expression.name, node)
        else:
            yield Item(written(node, text), node)


def _starred(frame: Frame, star: exp.Star, columns: Sequence[Named]) -> Iterator[Item]:
    if not frame.scope.tables:
        raise PlanError(sentence(star, "* without FROM", frame.session.text))
    left_out = _named(frame, star.args.get("except_") or (), columns)
    replaced = {one.alias.lower(): one.this for one in star.args.get("replace") or ()}
    renamed = {one.this.name.lower(): one.alias for one in star.args.get("rename") or ()}
    _check_names(frame, star, (*replaced, *renamed), columns)
    for one in columns:
        lower = one.name.lower()
        if lower in left_out:
            continue
        name = renamed.get(lower, one.name)
        if lower in replaced:
            yield Item(name, replaced[lower])
        else:
            yield Item(name, None, one.column)


def _named(frame: Frame, nodes: Sequence[exp.Expr], columns: Sequence[Named]) -> set[str]:
    for node in nodes:
        _check_names(frame, node, (node.name,), columns)
    return {node.name.lower() for node in nodes}


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
