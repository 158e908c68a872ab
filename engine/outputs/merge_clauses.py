"""The clauses of a merge, as expressions over pairs of a row of the table and one of the source.

    names of a pair       target.id  source.id                     in expressions also id, where one side alone has it
    clauses.action()          KEPT, UPDATED, DELETED or INSERTED; IGNORED, of rows of the source that are not wanted
    clauses.column(name)      the columns of a pair then
    clauses.inserted(name)    those of a new row

Held by: tests/delta_tables/test_merge_clauses.py
Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from engine.column_expressions.expression import Expr, to_expression
from engine.column_expressions.expressions import col, lit, when
from engine.errors import ConfigurationError, DataError, SchemaError
from engine.expressions.evaluate import evaluate
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Cast, ColumnRef, Expression, Literal, replaced
from engine.graph.merge_action import DELETED, IGNORED, INSERTED, KEPT, UPDATED
from engine.outputs.assigned_types import is_bare_time, may_lose

#: a word, or a dict with set or values, delete, and where
Clause: TypeAlias = str | Mapping[str, Any]

TARGET, SOURCE = "target.", "source."
#: words for rows that have no other beside them, by the side that is not there
_ROWS: Final = {
    SOURCE: "it is for rows of the table that match none of the source",
    TARGET: "it is for rows of the source that match none of the table",
}
#: columns of pairs that are true where there is a row of the source, and one of the table
IN_SOURCE, IN_TARGET = "in source", "in target"
_CALL: Final = "merge_into"
_ONE_ROW: Final = pa.record_batch({"": pa.nulls(1)})


class Sides(NamedTuple):
    """The columns of both sides."""

    target: pa.Schema
    source: pa.Schema

    @property
    def pair(self) -> pa.Schema:
        """The columns of a pair."""
        sides = ((TARGET, self.target), (SOURCE, self.source))
        return pa.schema([field.with_name(side + field.name) for side, schema in sides for field in schema])


class _Clause(NamedTuple):
    """An action, and the rows that it is for."""

    #: UPDATED, DELETED, INSERTED; None: nothing
    action: int | None
    where: Expression | None
    #: new values by column; of those that are not named the old one, or null
    values: dict[str, Expression]
    #: condition of rows that go, in place of being updated
    deletes: Expression | None = None


def _names(sides: Sides, known: str, what: str) -> Callable[[Expression], Expression | None]:
    """Return a function that gives a column its name in pairs. ``known``: sides that have a row: target, source."""

    def named(each: Expression) -> Expression | None:
        if not isinstance(each, ColumnRef):
            return None
        for side, schema in ((TARGET, sides.target), (SOURCE, sides.source)):
            if each.name.startswith(side) and each.name.removeprefix(side) in schema.names:
                if side.rstrip(".") not in known:
                    raise SchemaError(f"{_CALL}: {what}: {_ROWS[side]}, so that {each.name} has no value there")
                return each
        for side, schema in ((TARGET, sides.target), (SOURCE, sides.source)):
            if each.name.startswith(side) and each.name not in {*sides.target.names, *sides.source.names}:
                which = "the table" if side == TARGET else "the source"
                name = each.name.removeprefix(side)
                raise SchemaError(f"{_CALL}: {which} has no column {name!r}; it has {schema.names}")
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
        names = [name for name in sides.source.names if name in sides.target.names]
        taken: dict[str, Expression] = {}
        if action in (UPDATED, INSERTED):
            taken = {name: _checked(name, ColumnRef(SOURCE + name), sides, what) for name in names}
        return _Clause(action, None, taken)
    setting = "values" if "insert" in words else "set"
    wrong = sorted(set(clause) - {setting, "where", *({"delete"} if setting == "set" else ())})
    deletes = clause.get("delete") if isinstance(clause.get("delete"), Expr) else None
    if wrong or (setting in clause) == bool(deletes is None and clause.get("delete")):
        other = " or 'delete': True" if setting == "set" else ""
        raise ConfigurationError(f"{_CALL}: {what}={dict(clause)!r}: a dict has '{setting}'{other}, and maybe 'where'")
    if not isinstance(clause.get(setting, {}), Mapping):
        raise ConfigurationError(f"{_CALL}: {what}: '{setting}' is a dict of columns and their values")
    named = _names(sides, known, what)
    where = None if clause.get("where") is None else replaced(to_expression(clause["where"]), named)
    values = {}
    for name, value in clause.get(setting, {}).items():
        if name not in sides.target.names:
            raise SchemaError(f"{_CALL}: {what}: the table has no column {name!r}; it has {sides.target.names}")
        values[name] = _checked(name, replaced(to_expression(value), named), sides, what)
    if deletes is not None:
        return _Clause(UPDATED, where, values, replaced(to_expression(deletes), named))
    action = DELETED if clause.get("delete") else INSERTED if setting == "values" else UPDATED
    return _Clause(action, where, values)


def _checked(name: str, value: Expression, sides: Sides, what: str) -> Expression:
    """Return a value of a column. Raises: SchemaError for a constant that it cannot hold, or where a part may go."""
    data_type = sides.target.field(name).type
    if isinstance(value, Literal):
        if holds(data_type, value):
            return value
        said = f"{what}: {value.value!r} is no value of the column {name!r}, which is {data_type}"
        raise SchemaError(f"{_CALL}: {said}; write a cast or another value")
    own = infer_type(value, sides.pair)
    if may_lose(own, data_type):
        said = f"{what}: the value of the column {name!r} is {own}, of which {data_type} may lose a part"
        raise SchemaError(f"{_CALL}: {said}; cast it: .cast({str(data_type).partition('[')[0]!r})")
    return value


class MergeClauses:
    """The three clauses of a merge.

    ``default``: returns the value that a new row has in a column of which nothing is said; None: null.
    """

    def __init__(
        self,
        sides: Sides,
        matched: Clause,
        not_matched: Clause,
        not_matched_by_source: Clause,
        default: Callable[[str], pa.Scalar | None] = lambda _: None,
    ) -> None:
        self._sides = sides
        words = {"update": UPDATED, "delete": DELETED, "ignore": None}
        self.matched = _clause(matched, "when_matched", words, sides, "target source")
        words = {"insert": INSERTED, "ignore": None}
        self.not_matched = _clause(not_matched, "when_not_matched", words, sides, "source")
        if self.not_matched.action is not None:
            for name in sides.target.names:
                if name not in self.not_matched.values and (value := default(name)) is not None:
                    self.not_matched.values[name] = make_literal(value)
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

    def changes(self, keys: Collection[str]) -> list[str]:
        """Return the columns in which a row that is updated because it matches may be another then."""
        values = self.matched.values.items() if self.matched.action == UPDATED else ()
        return [name for name, value in values if not self._is_own(name, value, keys)]

    def _is_own(self, name: str, value: Expression, keys: Collection[str]) -> bool:
        """Return whether a row gets the value that it has: its own, or that of a key by which it matches."""
        if not isinstance(value, ColumnRef) or value.name not in (TARGET + name, SOURCE + name):
            return False
        if value.name == TARGET + name:
            return True
        data_type = self._sides.target.field(name).type
        # 0.0 equals -0.0
        return name in keys and data_type == self._sides.source.field(name).type and not pa.types.is_floating(data_type)

    def changed(self, name: str, action: str, changes: Collection[str]) -> Expr:
        """Return a column of pairs that change: of those that are there, only what ``changes`` has is looked at."""
        inserts = self.not_matched.action is not None
        if name not in changes:
            new = self._value(self.not_matched, name)
            none = lit(None, self._sides.target.field(name).type)
            return when(col(action) == INSERTED).then(new).otherwise(none) if inserts else none
        value = self._value(self.matched, name)
        if not inserts or self.matched.values[name] == self.not_matched.values.get(name):
            return value
        return when(col(action) == INSERTED).then(self._value(self.not_matched, name)).otherwise(value)

    @property
    def updates_alone(self) -> bool:
        """Whether each pair of both sides that changes is updated, and no other row of the table changes."""
        return self.matched.action == UPDATED and self.matched.deletes is None and self.by_source.action is None

    def updated(self, name: str, action: str) -> Expr:
        """Return a column of pairs that change, of clauses that only update and insert."""
        own = ColumnRef(TARGET + name)
        if self.matched.values.get(name, own) == own:
            new = self._value(self.not_matched, name)
            return when(col(action) == INSERTED).then(new).otherwise(col(TARGET + name))
        return self.changed(name, action, [name])

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
            plain = self.matched.where is None and self.not_matched.where is None and self.matched.deletes is None
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


def holds(data_type: pa.DataType, value: Expression) -> bool:
    """Return whether a column of a type takes a constant; any other value is not known before it is there."""
    if is_bare_time(infer_type(value, pa.schema([])), data_type):
        return False
    try:
        evaluate(Cast(value, type_to_ipc(data_type), str(data_type)), _ONE_ROW)
    except (DataError, SchemaError):
        return not isinstance(value, Literal)
    return True


def _chosen(clause: _Clause, otherwise: Expr) -> Expr:
    if clause.action is None:
        return otherwise
    action = lit(clause.action)
    if clause.deletes is not None:
        action = when(Expr(clause.deletes)).then(DELETED).otherwise(action)
    return action if clause.where is None else when(Expr(clause.where)).then(action).otherwise(otherwise)
