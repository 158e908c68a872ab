"""Statements that make a table of rows, and put them into one.

An existing table stays what it is, with its keys, indexes, defaults and rights: modes ``append``, ``overwrite`` and
``upsert`` put rows into it. ``overwrite`` deletes the old rows instead of truncating, so that readers of PostgreSQL go
on meanwhile and see the old rows or the new ones.

Held by: tests/databases/test_written_tables.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.databases.database_queries import quoted
from engine.databases.written_table import WrittenTable
from engine.errors import DataError

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcCursor

#: statements for a transaction of PostgreSQL that takes as long as its rows do, whatever the server's defaults are
UNHURRIED: Final = ("SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0")


def rows_of(cursor: AdbcCursor, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a small result."""
    cursor.execute(statement)
    return cursor.rows()


def qualified(schema: str, table: str) -> str:
    """Return the name of a table in its schema."""
    return f"{quoted(schema)}.{quoted(table)}" if schema else quoted(table)


def create_text(written: WrittenTable, target: str) -> str:
    """Return the statement that makes a table; the columns of ``on`` are its primary key."""
    columns = [f"{quoted(column.name)} {column.sql_type}" for column in written.columns]
    if written.on:
        columns.append(f"PRIMARY KEY ({', '.join(map(quoted, written.on))})")
    return f"CREATE TABLE {target} ({', '.join(columns)})"


def union_text(written: WrittenTable, staged: Sequence[str]) -> str:
    """Return the staged rows as one place behind FROM."""
    names = ", ".join(quoted(column.name) for column in written.columns)
    parts = " UNION ALL ".join(f"SELECT {names} FROM {table}" for table in staged)
    return f"({parts}) AS s"


def insert_text(written: WrittenTable, target: str, place: str) -> str:
    """Return the statement that puts the rows of a place into a table."""
    names = [quoted(column.name) for column in written.columns]
    values = [column.assigned.replace("{}", f"s.{name}") for column, name in zip(written.columns, names, strict=True)]
    text = f"INSERT INTO {target} ({', '.join(names)}) SELECT {', '.join(values)} FROM {place}"
    if written.mode != "upsert":
        return text
    # SQLite needs a condition before ON, which it takes for one of a join.
    on = ", ".join(map(quoted, written.on))
    others = [f"{name} = excluded.{name}" for name in names if name not in set(map(quoted, written.on))]
    action = f"DO UPDATE SET {', '.join(others)}" if others else "DO NOTHING"
    return f"{text} WHERE true ON CONFLICT ({on}) {action}"


def _doubled_text(written: WrittenTable, place: str) -> str:
    """Return the query for a key that several rows have, or that is null."""
    on = ", ".join(map(quoted, written.on))
    nulls = " OR ".join(f"{quoted(name)} IS NULL" for name in written.on)
    return f"SELECT {on}, count(*) FROM {place} GROUP BY {on} HAVING count(*) > 1 OR {nulls} LIMIT 1"


def check_keys(cursor: AdbcCursor, written: WrittenTable, place: str) -> None:
    """Raise DataError where rows have one key of ``upsert`` together, or a null in it."""
    for *key, count in rows_of(cursor, _doubled_text(written, place)):
        shown = ", ".join(f"{name} = {value!r}" for name, value in zip(written.on, key, strict=True))
        raise DataError(
            f"table {written.shown}: mode='upsert' needs one row for each key of ({', '.join(written.on)}), without"
            f" nulls; {count} rows have {shown}"
        )
