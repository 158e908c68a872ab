"""The clauses of a merge, as expressions over pairs of a row of the table and one of the source.

    names of a pair       target.id  source.id                     in expressions also id, where one side alone has it
    clauses.action()          KEPT, UPDATED, DELETED or INSERTED; IGNORED, of rows of the source that are not wanted
    clauses.column(name)      the columns of a pair then
    clauses.inserted(name)    those of a new row

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from engine.api.expression import Expr, to_expression
from engine.api.expressions import col, lit, when
from engine.errors import ConfigurationError, SchemaError
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Cast, ColumnRef, Expression, replaced
from engine.graph.merge_action import DELETED, IGNORED, INSERTED, KEPT, UPDATED

#: a word, or a dict with set or values, delete, and where
Clause: TypeAlias = str | Mapping[str, Any]

TARGET, SOURCE = "target.", "source."
#: columns of pairs that are true where there is a row of the source, and one of the table
IN_SOURCE, IN_TARGET = "in source", "in target"
_CALL: Final = "merge_into"


class Sides(NamedTuple):
    """The columns of both sides."""

    target: pa.Schema
    source: pa.Schema


class _Clause(NamedTuple):
    """An action, and the rows that it is for."""

    #: UPDATED, DELETED, INSERTED; None: nothing
    action: int | None
    where: Expression | None
    #: new values by column; of those that are not named the old one, or null
    values: dict[str, Expression]
    #: condition of rows that go, in place of being updated
    deletes: Expression | None = None


def _names(sides: Sides, known: str) -> Callable[[Expression], Expression | None]:
    """Return a function that gives a column its name in pairs. ``known``: sides that have a row: target, source."""

    def named(each: Expression) -> Expression | None:
        if not isinstance(each, ColumnRef):
            return None
        for side, schema in ((TARGET, sides.target), (SOURCE, sides.source)):
            if each.name.startswith(side) and each.name.removeprefix(side) in schema.names:
                return each
        found = [
            side
            for side, schema in ((TARGET, sides.target), (SOURCE, sides.source))
            if side.rstrip(".") in known and each.name in schema.names
        ]
        if len(found) == 1:
            return ColumnRef(found[0] + each.name)
        which = "both sides have" if found else "no side has"
        raise SchemaError(
            f"{_CALL}: {which} a column {each.name!r} there: write col('target.{each.name}') or"
            f" col('source.{each.name}')"
        )

    return named


def _clause(clause: Clause, what: str, words: Mapping[str, int | None], sides: Sides, known: str) -> _Clause:
    """Return a clause; ``words``: those that it may be, and the action of each."""
    if isinstance(clause, str):
        if clause not in words:
            raise ConfigurationError(f"{_CALL}: {what}={clause!r}: choose {', '.join(words)}, or pass a dict")
        action = words[clause]
        names = {UPDATED: sides.source.names, INSERTED: sides.source.names}.get(-1 if action is None else action, [])
        return _Clause(action, None, {name: ColumnRef(SOURCE + name) for name in names if name in sides.target.names})
    setting = "values" if "insert" in words else "set"
    wrong = sorted(set(clause) - {setting, "where", *({"delete"} if setting == "set" else ())})
    deletes = clause.get("delete") if isinstance(clause.get("delete"), Expr) else None
    if wrong or (setting in clause) == bool(deletes is None and clause.get("delete")):
        other = " or 'delete': True" if setting == "set" else ""
        raise ConfigurationError(f"{_CALL}: {what}={dict(clause)!r}: a dict has '{setting}'{other}, and maybe 'where'")
    named = _names(sides, known)
    where = None if clause.get("where") is None else replaced(to_expression(clause["where"]), named)
    values = {}
    for name, value in clause.get(setting, {}).items():
        if name not in sides.target.names:
            raise SchemaError(f"{_CALL}: {what}: the table has no column {name!r}; it has {sides.target.names}")
        values[name] = replaced(to_expression(value), named)
    if deletes is not None:
        return _Clause(UPDATED, where, values, replaced(to_expression(deletes), named))
    action = DELETED if clause.get("delete") else INSERTED if setting == "values" else UPDATED
    return _Clause(action, where, values)


class MergeClauses:
    """The three clauses of a merge."""

    def __init__(self, sides: Sides, matched: Clause, not_matched: Clause, not_matched_by_source: Clause) -> None:
        self._sides = sides
        words = {"update": UPDATED, "delete": DELETED, "ignore": None}
        self.matched = _clause(matched, "when_matched", words, sides, "target source")
        words = {"insert": INSERTED, "ignore": None}
        self.not_matched = _clause(not_matched, "when_not_matched", words, sides, "source")
        words = {"delete": DELETED, "ignore": None}
        self.by_source = _clause(not_matched_by_source, "when_not_matched_by_source", words, sides, "target")

    def action(self) -> Expr:
        """Return the action of each pair."""
        kept = lit(KEPT)
        matched, alone = _chosen(self.matched, kept), _chosen(self.by_source, kept)
        there = when(col(IN_SOURCE).is_not_null()).then(matched).otherwise(alone)
        if self.not_matched.action is None:
            return there
        new = _chosen(self.not_matched, lit(IGNORED))
        return when(col(IN_TARGET).is_null()).then(new).otherwise(there)

    def column(self, name: str, action: str) -> Expr:
        """Return a column of pairs, by the column of actions. A new row has null where no value is said."""
        value = col(TARGET + name)
        inserts = self.not_matched.action is not None and name in self.not_matched.values
        matched, alone = (each.action == UPDATED and name in each.values for each in (self.matched, self.by_source))
        has_source = col(IN_SOURCE).is_not_null()
        if alone:
            is_changed = (col(action) == UPDATED) & col(IN_SOURCE).is_null()
            value = when(is_changed).then(self._value(self.by_source, name)).otherwise(value)
        if matched and inserts and self.matched.values[name] == self.not_matched.values[name]:
            # Most merges take a column of the source for both.
            plain = self.matched.where is None and self.not_matched.where is None
            is_taken = has_source if plain else has_source & ((col(action) == UPDATED) | (col(action) == INSERTED))
            return when(is_taken).then(self._value(self.matched, name)).otherwise(value)
        if matched:
            is_updated = (col(action) == UPDATED) & has_source
            value = when(is_updated).then(self._value(self.matched, name)).otherwise(value)
        if inserts:
            value = when(col(action) == INSERTED).then(self._value(self.not_matched, name)).otherwise(value)
        return value

    def inserted(self, name: str) -> Expr:
        """Return a column of rows that are inserted."""
        return self._value(self.not_matched, name)

    def _value(self, clause: _Clause, name: str) -> Expr:
        value, data_type = clause.values.get(name), self._sides.target.field(name).type
        return lit(None, data_type) if value is None else Expr(Cast(value, type_to_ipc(data_type), str(data_type)))


def _chosen(clause: _Clause, otherwise: Expr) -> Expr:
    if clause.action is None:
        return otherwise
    action = lit(clause.action)
    if clause.deletes is not None:
        action = when(Expr(clause.deletes)).then(DELETED).otherwise(action)
    return action if clause.where is None else when(Expr(clause.where)).then(action).otherwise(otherwise)
