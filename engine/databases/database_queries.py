"""SQL that a source of a database sends: wanted columns, a range, and those filters that mean the same there.

    SELECT q."id", q."name" FROM (
    query of the user
    ) AS q WHERE (q."id" >= 100 AND q."id" < 200) AND (q."name" = 'x')

Constants are literals, so that a text of SQL is all that is sent; which filters are sent ``database_filters`` decides.

SQLite's driver takes the types of columns from the first rows of a result: a row of the right types, which the reader
drops, is put in front. Texts are cast, because a column of texts may hold numbers, which the driver would round.

Held by: tests/databases/test_database_queries.py
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from engine.databases.database_connection import POSTGRESQL, SQLITE
from engine.databases.table_names import named_in_from
from engine.graph.source_spec import SourceSplit

#: paths of splits: all rows; the first range, with nulls and whatever lies below; ranges between; the last; a part by
#: the hash of a text
ALL, FIRST, MIDDLE, LAST, PART = "all", "first", "middle", "last", "part"
#: types of texts
TEXTS: Final = frozenset({pa.string(), pa.large_string()})


def quoted(name: str) -> str:
    """Return a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def from_text(query: str) -> str:
    """Return the text behind FROM: a table, with or without its schema, or a query."""
    text = query.strip().rstrip(";").rstrip()
    names = named_in_from(text)
    if names is not None:
        return ".".join(map(quoted, names))
    return f"(\n{text}\n)"


def text_literal(value: str, dialect: str) -> str:
    """Return a text as a literal."""
    doubled = value.replace("'", "''")
    if dialect == POSTGRESQL and "\\" in value:
        return "E'" + doubled.replace("\\", "\\\\") + "'"
    return f"'{doubled}'"


def select_text(place: str, schema: pa.Schema, names: Sequence[str], where: Sequence[str], dialect: str) -> str:
    """Return the statement for some columns; for none of them a row of a constant stands for each row."""
    columns = [column_text(name, schema.field(name).type, dialect) for name in names]
    aliased = [f"{column} AS {quoted(name)}" for column, name in zip(columns, names, strict=True)]
    text = f"SELECT {', '.join(aliased) or '1 AS n'} FROM {place} AS q"
    text += f" WHERE {' AND '.join(f'({one})' for one in where)}" if where else ""
    if dialect != SQLITE:
        return text
    first = [f"{_sample(schema.field(name).type)} AS {quoted(name)}" for name in names]
    return f"SELECT {', '.join(first) or '1 AS n'} UNION ALL {text}"


def column_text(name: str, data_type: pa.DataType, dialect: str) -> str:
    """Return a column as it is asked for; an integer of SQLite that no double is becomes a text, which is an error."""
    column = f"q.{quoted(name)}"
    if dialect == SQLITE and pa.types.is_floating(data_type):
        is_rounded = f"typeof({column}) = 'integer' AND {column} NOT BETWEEN -{2**53} AND {2**53}"
        return f"CASE WHEN {is_rounded} THEN CAST({column} AS TEXT) ELSE {column} END"
    return f"CAST({column} AS TEXT)" if dialect == SQLITE and data_type in TEXTS else column


def _sample(data_type: pa.DataType) -> str:
    """Return a constant of SQLite of a type."""
    if data_type in TEXTS:
        return "''"
    return "0.5" if pa.types.is_floating(data_type) else "x''" if pa.types.is_binary(data_type) else "0"


def range_text(column: str, bounds: Sequence[str], split: SourceSplit) -> str:
    """Return the condition for the rows of a split, "" for none.

    bounds: literals between ranges, of which ``split.start`` is the number. Of a part it is the part's, and
    ``split.end`` how many parts there are.
    """
    name = f"q.{quoted(column)}"
    if split.path == ALL:
        return ""
    if split.path == PART:
        # Nulls are in part 0.
        return f"abs(coalesce(hashtextextended(CAST({name} AS text), 0), 0) % {split.end}) = {split.start}"
    below = "" if split.path == LAST else f"{name} < {bounds[split.start]}"
    above = "" if split.path == FIRST else f"{name} >= {bounds[split.start - 1]}"
    return f"{below} OR {name} IS NULL" if split.path == FIRST else " AND ".join(filter(None, (above, below)))


def sql_literal(value: Any, data_type: pa.DataType, dialect: str) -> str:
    """Return a value as a literal of a column's type."""
    if isinstance(value, bool):
        return str(value).upper()
    if pa.types.is_floating(data_type):
        return f"CAST({text_literal(repr(float(value)), dialect)} AS double precision)"
    if pa.types.is_date(data_type):
        return f"DATE '{value.isoformat()}'"
    if pa.types.is_timestamp(data_type):
        if data_type.tz is None:
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        return f"TIMESTAMPTZ '{value.astimezone(datetime.UTC).isoformat(' ')}'"
    return format(value, "f") if isinstance(value, Decimal) else str(value)
