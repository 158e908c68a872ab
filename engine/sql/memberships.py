"""Memberships: the joins of a query with marks that are IN, and the condition that each tests.

    follow(CASE WHEN random() ...)          a projection has the values of an IN (see ``marked_membership``)
    takes(col("computed#2") == 99)          a filter below the join is the membership: 99 NOT IN (SELECT ...)
    of(right, condition)                    Membership(99, the values, the other conditions); None: EXISTS

Held by: tests/sql/test_marked_membership.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.api.expression import Expr
from engine.errors import NotYetSupportedError
from engine.graph.expression import Call, columns_of
from engine.sql.column_names import Relation
from engine.sql.join_conditions import JoinCondition, JoinKey
from engine.sql.marked_membership import marked_value

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression

_REFUSED = "sql: NOT IN in this query (write NOT EXISTS (SELECT ... WHERE inner.key = outer.key))"


class Membership(NamedTuple):
    """A value and those it may be one of, and what pairs must meet besides."""

    key: JoinKey
    others: JoinCondition


class Memberships:
    """The marked columns of one query."""

    def __init__(self, functions: Mapping[int, str]) -> None:
        self._functions = functions
        self._columns: set[str] = set()
        #: constants that a filter compares a marked column with
        self._constants: dict[str, JoinKey] = {}
        self._found = 0

    def follow(self, message: Expression, columns: Sequence[str], name: str) -> None:
        """Take note of a column that a projection computes: of one with a mark, and of a marked one in another type."""
        while message.WhichOneof("rex_type") == "cast":
            message = message.cast.input
        if message.WhichOneof("rex_type") == "selection":
            source = columns[message.selection.direct_reference.struct_field.field]
            if source in self._columns and source not in self._constants:
                self._columns.remove(source)
                self._columns.add(name)
        elif marked_value(message, self._functions) is not None:
            self._columns.add(name)

    def takes(self, condition: Expr) -> bool:
        """Return whether a part of a filter is kept for the join: a marked column equal to a constant."""
        expression = condition.expression
        read = self._columns.intersection(columns_of(expression))
        if not read or not isinstance(expression, Call) or expression.function != "equal":
            return False
        value, values = expression.arguments
        if not set(columns_of(values)):
            value, values = values, value
        (column, *others) = read
        if others or set(columns_of(value)) or set(columns_of(values)) != {column} or column in self._constants:
            return False
        self._constants[column] = JoinKey(Expr(value), Expr(values), null_safe=False)
        return True

    def of(self, right: Relation, condition: JoinCondition) -> Membership | None:
        """Return the membership that a right side tests; NotYetSupportedError where it is ambiguous."""
        marked = self._columns.intersection(right.data.columns)
        if not marked:
            return None
        keys: list[JoinKey] = []
        others: list[JoinKey] = []
        for key in condition.keys:
            (keys if marked.intersection(columns_of(key.right.expression)) else others).append(key)
        constants = [self._constants.pop(column) for column in marked if column in self._constants]
        read_besides = () if condition.rest is None else marked.intersection(columns_of(condition.rest.expression))
        if len(marked) > 1 or len(keys) + len(constants) != 1 or read_besides or any(key.null_safe for key in keys):
            raise NotYetSupportedError(_REFUSED)
        self._found += 1
        return Membership((keys + constants)[0], JoinCondition(tuple(others), condition.rest))

    def check(self, wanted: int | None) -> None:
        """Raise NotYetSupportedError where not each mark of the query was found in a join."""
        if wanted is not None and (self._found != wanted or self._constants):
            raise NotYetSupportedError(_REFUSED)
