"""SQL that a source of a database sends: wanted columns, a range, and those filters that mean the same there.

    SELECT q."id", q."name" FROM (
    query of the user
    ) AS q WHERE (q."id" >= 100 AND q."id" < 200) AND (q."name" = 'x')

Filters are given to the database where it decides as the engine does: comparisons of integers and double precision
floats with such numbers (PostgreSQL has the engine's order of NaN, SQLite has no NaN), texts by equality, null tests.
Texts are compared once more by the engine, since a collation may hold more of them equal. All others stay with the
engine. Constants are literals, so that a text of SQL is all that is sent.

SQLite's driver takes the types of columns from the first rows of a result: a row of the right types, which the reader
drops, is put in front. Texts are cast, because a column of texts may hold numbers, which the driver would round.

Held by: tests/connectors/test_database_queries.py
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.connectors.database_connection import POSTGRESQL, SQLITE
from engine.expressions.literals import literal_scalar
from engine.graph.expression import Call, ColumnRef, Expression, Literal, conjuncts
from engine.graph.source_spec import SourceSplit

#: paths of splits: all rows; the first range, with nulls and whatever lies below; ranges between; the last
ALL, FIRST, MIDDLE, LAST = "all", "first", "middle", "last"
_OPERATORS: Final = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_MIRRORED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_TABLE: Final = re.compile(r'[^\s"();]+')
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_TEXTS: Final = frozenset({pa.string(), pa.large_string()})


def quoted(name: str) -> str:
    """Return a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def from_text(query: str) -> str:
    """Return the text behind FROM: a table, with or without its schema, or a query."""
    text = query.strip().rstrip(";").rstrip()
    if _TABLE.fullmatch(text):
        return ".".join(map(quoted, text.split(".")))
    return f"(\n{text}\n)"


def text_literal(value: str, dialect: str) -> str:
    """Return a text as a literal."""
    doubled = value.replace("'", "''")
    if dialect == POSTGRESQL and "\\" in value:
        return "E'" + doubled.replace("\\", "\\\\") + "'"
    return f"'{doubled}'"


def select_text(place: str, schema: pa.Schema, names: Sequence[str], where: Sequence[str], dialect: str) -> str:
    """Return the statement for some columns; for none of them a row of a constant stands for each row."""
    columns = [_column(name, schema.field(name).type, dialect) for name in names]
    aliased = [f"{column} AS {quoted(name)}" for column, name in zip(columns, names, strict=True)]
    text = f"SELECT {', '.join(aliased) or '1 AS n'} FROM {place} AS q"
    text += f" WHERE {' AND '.join(f'({one})' for one in where)}" if where else ""
    if dialect != SQLITE:
        return text
    first = [f"{_sample(schema.field(name).type)} AS {quoted(name)}" for name in names]
    return f"SELECT {', '.join(first) or '1 AS n'} UNION ALL {text}"


def _column(name: str, data_type: pa.DataType, dialect: str) -> str:
    column = f"q.{quoted(name)}"
    return f"CAST({column} AS TEXT)" if dialect == SQLITE and data_type in _TEXTS else column


def _sample(data_type: pa.DataType) -> str:
    """Return a constant of SQLite of a type."""
    if data_type in _TEXTS:
        return "''"
    return "0.5" if pa.types.is_floating(data_type) else "x''" if pa.types.is_binary(data_type) else "0"


def range_text(column: str, data_type: pa.DataType, split: SourceSplit) -> str:
    """Return the condition for the rows of a split, "" for none."""
    name = f"q.{quoted(column)}"
    below = f"{name} < {_bound(split.end, data_type)}"
    above = f"{name} >= {_bound(split.start, data_type)}"
    return {ALL: "", FIRST: f"{below} OR {name} IS NULL", MIDDLE: f"{above} AND {below}", LAST: above}[split.path]


def _bound(value: int, data_type: pa.DataType) -> str:
    """Return a place of an order as a literal: an integer, days or microseconds since 1970."""
    if pa.types.is_integer(data_type):
        return str(value)
    if pa.types.is_date(data_type):
        return f"DATE '{(_EPOCH + datetime.timedelta(days=value)).date()}'"
    moment = (_EPOCH + datetime.timedelta(microseconds=value)).isoformat(" ")
    return f"TIMESTAMPTZ '{moment}+00'" if data_type.tz else f"TIMESTAMP '{moment}'"


def pushed(predicate: Expression | None, schema: pa.Schema, dialect: str) -> tuple[list[str], list[Expression]]:
    """Return the conditions that the database decides, and the parts that the engine still has to."""
    texts: list[str] = []
    rest: list[Expression] = []
    for part in () if predicate is None else conjuncts(predicate):
        text, is_decided = _pushed(part, schema, dialect)
        if text:
            texts.append(text)
        if not text or not is_decided:
            rest.append(part)
    return texts, rest


def _pushed(part: Expression, schema: pa.Schema, dialect: str) -> tuple[str, bool]:
    """Return the condition of a part, "" for none, and whether it leaves out all that the engine would."""
    match part:
        case Call("is_null", (ColumnRef(name),)):
            return f"q.{quoted(name)} IS NULL", True
        case Call("is_not_null", (ColumnRef(name),)):
            return f"q.{quoted(name)} IS NOT NULL", True
        case Call(function, (ColumnRef(name), Literal() as constant)) if function in _OPERATORS:
            pass
        case Call(function, (Literal() as constant, ColumnRef(name))) if function in _OPERATORS:
            function = _MIRRORED.get(function, function)
        case _:
            return "", False
    data_type, scalar = schema.field(name).type, literal_scalar(constant)
    value = scalar.as_py() if scalar.is_valid else None
    if data_type in _TEXTS and scalar.type in _TEXTS and isinstance(value, str):
        if function != "equal" or "\0" in value:
            return "", False
        column = f"{_column(name, data_type, dialect)}{' COLLATE BINARY' if dialect == SQLITE else ''}"
        return f"{column} = {text_literal(value, dialect)}", False
    number = _number(value, scalar.type, data_type, dialect)
    return (f"q.{quoted(name)} {_OPERATORS[function]} {number}", True) if number else ("", False)


def _number(value: object, constant_type: pa.DataType, data_type: pa.DataType, dialect: str) -> str:
    """Return a number as a literal that is compared with a column as the engine does it, "" where there is none."""
    if pa.types.is_signed_integer(constant_type) and pa.types.is_signed_integer(data_type):
        return "" if value is None else str(value)
    if constant_type == data_type == pa.float64() and isinstance(value, float) and math.isfinite(value):
        return f"CAST({text_literal(repr(value), dialect)} AS double precision)"
    return ""
