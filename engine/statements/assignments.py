"""Assignments of MERGE and UPDATE: which column of the table gets which value; and conditions of which one may fail.

    SET n = 1, d.s = 'a'         each column once, of the table that changes and of no other
    INSERT (n, s) VALUES (...)
    WHERE n <> 0 AND 10 / n > 5  what may fail is computed where the other conditions are true, as in SELECT

A constant that the column cannot hold is an error before anything runs, and so is a value of a type of which the
column may lose a part (``assigned_types``).

Held by: tests/sql/test_assignments.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.dialects.parser import sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.infer import infer_type
from engine.graph.expression import Call, Cast, Expression, children_of
from engine.graph.function_table import SAFE_FUNCTIONS
from engine.near_names import did_you_mean
from engine.outputs.assigned_types import is_bare_time, may_lose
from engine.outputs.merge_clauses import holds
from engine.sql.relations import Rows
from engine.sql.scopes import Named, matching
from engine.sql_values.constants import is_constant, scalar_of
from engine.sql_values.data_types import shown_type

#: parts of the name of a table that changes
_OF_NAMES: Final = ("this", "db", "catalog", "alias", "only")


class Columns(NamedTuple):
    """The columns of a table that changes, and the names that it has in a statement."""

    rows: Rows
    node: exp.Table
    text: str

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [one.name for one in self.rows.scope.tables[0].columns]

    def of(self, nodes: Sequence[exp.Expr]) -> list[str]:
        """Return the columns that are assigned to. Raises: PlanError for one that is there twice, or not at all."""
        found: list[str] = []
        for node in nodes:
            name = self._one(node)
            if name in found:
                raise PlanError(self._said(node, f"the column {name} is there twice"))
            found.append(name)
        return found

    def _said(self, node: exp.Expr, words: str) -> str:
        return sentence(node, words, self.text)

    def _one(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Column):
            said = "a value is given to a column; write SET a = 1, b = 2 without parentheses, parts and signs"
            raise PlanError(self._said(node, said))
        *around, own = [part.name for part in node.parts]
        if around and not self._is_table(around):
            said = f"{'.'.join(around)} is not the table that changes; write {own}, or {self._name}.{own}"
            column = matching(around[0], self.rows.scope.tables[0].columns)
            if column and pa.types.is_struct(self._type(column[0].name)):
                said = f"a field of the column {around[0]} is not set alone; write SET {around[0]} = {{'{own}': ...}}"
            raise PlanError(self._said(node, said))
        found = matching(own, [Named(one, one) for one in self.names])
        if len(found) != 1:
            known = f"{did_you_mean(own, self.names)} (it has {', '.join(self.names)})"
            raise PlanError(self._said(node, f"the table has no column {own}{known}"))
        return found[0].name

    @property
    def _name(self) -> str:
        return str(self.node.alias or self.node.parts[-1].name)

    def _type(self, name: str) -> pa.DataType:
        columns = self.rows.scope.tables[0].columns
        return self.rows.data.schema.field(next(one.column for one in columns if one.name == name)).type

    def _is_table(self, around: Sequence[str]) -> bool:
        names = [self._name] if self.node.alias else [part.name for part in self.node.parts]
        return [one.lower() for one in names][-len(around) :] == [one.lower() for one in around]

    def taken(self, name: str, value: Expr, node: exp.Expr, schema: pa.Schema) -> Expr:
        """Return a value over some columns in the type of its column.

        Raises: PlanError for a constant that it cannot hold, and for other values of which a part may be lost.
        """
        data_type = self._type(name)
        shown = shown_type(data_type)
        if is_constant(value):
            if not holds(data_type, value.expression):
                given = scalar_of(value).as_py()
                given = repr(given) if isinstance(given, str) else given
                said = f"{given} is no value of the column {name}, which is {shown}"
                raise PlanError(self._said(node, f"{said}; write CAST, round() or another value"))
            return value.cast(data_type)
        own = infer_type(value.expression, schema)
        if is_bare_time(own, data_type):
            said = f"a value of {shown_type(own)} for the column {name}, which is {shown}; a number is no date or time"
            raise PlanError(
                self._said(node, f"{said}: write CAST of a text, make_date(y, m, d), from_unixtime(seconds)")
            )
        if may_lose(own, data_type):
            said = f"a value of {shown_type(own)} for the column {name}, which is {shown} and may lose a part of it"
            raise PlanError(self._said(node, f"{said}; write CAST(... AS {shown})"))
        return value if own == data_type else value.cast(data_type)


def check_target(node: exp.Table, call: str, text: str) -> None:
    """Refuse words around the table that changes. Raises: PlanError, NotYetSupportedError."""
    for name, part in node.args.items():
        if part and name == "joins":
            said = f"{call} of several tables (write MERGE INTO ... USING another)"
            raise NotYetSupportedError(sentence(part[0].this, said, text))
        if part and name not in _OF_NAMES:
            raise PlanError(sentence(node, f"{call} changes the table as it is now; write its name alone", text))


def all_true(conditions: Sequence[Expr]) -> Expr:
    """Return whether all conditions are true: one that may fail for a row is computed where the others are true."""
    safe = [one for one in conditions if not _may_fail(one.expression)]
    others = [one for one in conditions if _may_fail(one.expression)]
    found = others.pop() if others else None
    for one in reversed(others):
        assert found is not None, "there is a last one"
        found = when(one).then(found).otherwise(lit(False))
    if not safe:
        assert found is not None, "there is a condition"
        return found
    first = reduce(and_, safe)
    # the first part leaves files out, and guards the second one
    return first if found is None else first & when(first).then(found).otherwise(lit(False))


def _may_fail(expression: Expression) -> bool:
    is_risk = isinstance(expression, Cast) or (
        isinstance(expression, Call) and expression.function not in SAFE_FUNCTIONS
    )
    return is_risk or any(map(_may_fail, children_of(expression)))
