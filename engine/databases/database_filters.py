"""Filters that a database decides, because it decides them as the engine does.

    i > 5 and d <= 1.50 and (s = 'x' or day is null)    all of it is sent; s = 'x' is decided once more by the engine
    s < 'x', i + 1 = 2, f > nan                         not sent: collations, overflow, division, orders differ

Sent are comparisons of a column with a constant, IN, BETWEEN, null tests, booleans, and AND, OR and NOT of these.
Numbers are compared with numbers of which both sides hold every value: integers, decimals, double precision floats
(PostgreSQL has the engine's order of NaN, SQLite has no NaN). Dates and timestamps are compared with their own type.
Texts are sent for equality alone, and compared once more by the engine: a collation may hold more of them equal. Other
drivers are sent comparisons of integers and null tests: what their databases do with other types is not known.

Held by: tests/databases/test_database_queries.py
"""

from __future__ import annotations

import math
from typing import Any, Final

import pyarrow as pa

from engine.databases.database_connection import SQLITE, STANDARD
from engine.databases.database_queries import TEXTS, column_text, quoted, sql_literal, text_literal
from engine.expressions.binding import EXACT_INTEGER
from engine.expressions.literals import literal_scalar
from engine.graph.expression import Call, ColumnRef, Expression, Literal, conjuncts

_OPERATORS: Final = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_MIRRORED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
#: values of a list that a statement has at most
_LISTED_MAX: Final = 1000


class _Unsent(Exception):
    """The engine alone decides this part."""


def pushed(predicate: Expression | None, schema: pa.Schema, dialect: str) -> tuple[list[str], list[Expression]]:
    """Return the conditions that the database decides, and the parts that the engine still has to."""
    texts: list[str] = []
    rest: list[Expression] = []
    sent = _Sent(schema, dialect)
    for part in () if predicate is None else conjuncts(predicate):
        try:
            text, is_decided = sent.condition(part)
        except _Unsent:
            rest.append(part)
            continue
        texts.append(text)
        if not is_decided:
            rest.append(part)
    return texts, rest


class _Sent:
    """Conditions over the columns of one place."""

    def __init__(self, schema: pa.Schema, dialect: str) -> None:
        self._schema = schema
        self._dialect = dialect

    def condition(self, part: Expression) -> tuple[str, bool]:
        """Return a condition, and whether it leaves out all that the engine would. Raises: _Unsent."""
        match part:
            case Call("is_null" | "is_not_null", (ColumnRef(name),)):
                return f"q.{quoted(name)} IS {'NOT ' if part.function == 'is_not_null' else ''}NULL", True
            case Call("and" | "or" as word, arguments):
                parts = [self.condition(each) for each in arguments]
                joined = f" {word.upper()} ".join(f"({text})" for text, _ in parts)
                return joined, all(is_decided for _, is_decided in parts)
            case Call("not", (Call(function) as inner,)) if function in _OPERATORS or function == "between":
                text, is_decided = self.condition(inner)
                if is_decided:
                    return f"NOT ({text})", True
            case ColumnRef() | Call("not", (ColumnRef(),)) if self._dialect == STANDARD:
                pass
            case ColumnRef(name) if self._schema.field(name).type == pa.bool_():
                return f"q.{quoted(name)}", True
            case Call("not", (ColumnRef(name),)) if self._schema.field(name).type == pa.bool_():
                return f"NOT q.{quoted(name)}", True
            case Call("is_in", (ColumnRef(name), *constants)) if 0 < len(constants) <= _LISTED_MAX:
                compared = [self._compared("equal", name, each) for each in constants]
                return " OR ".join(text for text, _ in compared), all(is_decided for _, is_decided in compared)
            case Call("between", (ColumnRef(name), low, high)):
                above, below = self._compared("greater_equal", name, low), self._compared("less_equal", name, high)
                return f"{above[0]} AND {below[0]}", True
            case Call(function, (ColumnRef(name), Literal() as constant)) if function in _OPERATORS:
                return self._compared(function, name, constant)
            case Call(function, (Literal() as constant, ColumnRef(name))) if function in _OPERATORS:
                return self._compared(_MIRRORED.get(function, function), name, constant)
        raise _Unsent

    def _compared(self, function: str, name: str, constant: Expression) -> tuple[str, bool]:
        if not isinstance(constant, Literal):
            raise _Unsent
        data_type, scalar = self._schema.field(name).type, literal_scalar(constant)
        value = scalar.as_py() if scalar.is_valid else None
        if value is None or (self._dialect == STANDARD and not pa.types.is_integer(data_type)):
            raise _Unsent
        if data_type in TEXTS and scalar.type in TEXTS:
            if function != "equal" or "\0" in value:
                raise _Unsent
            column = column_text(name, data_type, self._dialect)
            column += " COLLATE BINARY" if self._dialect == SQLITE else ""
            return f"{column} = {text_literal(value, self._dialect)}", False
        if not _is_exact(value, scalar.type, data_type):
            raise _Unsent
        return f"q.{quoted(name)} {_OPERATORS[function]} {sql_literal(value, data_type, self._dialect)}", True


def _is_exact(value: Any, constant_type: pa.DataType, data_type: pa.DataType) -> bool:
    """Whether the engine and the database compare a column with a constant by their exact values."""
    if pa.types.is_signed_integer(data_type):
        return bool(pa.types.is_signed_integer(constant_type))
    if pa.types.is_decimal(data_type):
        return bool(pa.types.is_decimal(constant_type) or pa.types.is_signed_integer(constant_type))
    if data_type == pa.float64():
        is_float = constant_type == data_type and math.isfinite(value)
        return is_float or bool(pa.types.is_signed_integer(constant_type) and abs(value) <= EXACT_INTEGER)
    if pa.types.is_timestamp(data_type):
        return bool(pa.types.is_timestamp(constant_type)) and (data_type.tz is None) == (constant_type.tz is None)
    return data_type in (pa.date32(), pa.bool_()) and bool(constant_type == data_type)
