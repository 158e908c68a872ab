"""Expressions that are written in SQL, ``expr(text)``, as what they are over the columns of a data set.

The reader is a room above the API, which registers itself as the executors do.

Held by: tests/sql/test_spoken_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.errors import NotYetSupportedError
from engine.graph.expression import SQL_TEXT, Call, Expression, has_sql_text, replaced

#: function from (text of SQL, the data set whose columns it speaks of) to the expression that it is
ExpressionReader = Callable[[str, Any], Expression]

_readers: list[ExpressionReader] = []


def register_expression_reader(reader: ExpressionReader) -> None:
    """Register a function that reads expressions, in place of an earlier one."""
    _readers[:] = [reader]


def spoken(expressions: list[Expression], data: Any) -> list[Expression]:
    """Return expressions in which texts of SQL are what they are over a data set."""

    def read(part: Expression) -> Expression | None:
        if not (isinstance(part, Call) and part.function == SQL_TEXT):
            return None
        if not _readers:
            raise NotYetSupportedError("expr without engine.targets")
        return _readers[0](str(part.options["text"]), data)

    return [replaced(one, read) if has_sql_text(one) else one for one in expressions]
