"""A table of SQLite as it is, and whether rows fit into it: columns convert values of another affinity.

Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.databases.database_connection import SQLITE
from engine.databases.database_queries import text_literal
from engine.databases.written_queries import rows_of
from engine.databases.written_table import WrittenTable
from engine.databases.written_types import is_kept_by
from engine.errors import PlanError, SchemaError

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcCursor


def has_table(cursor: AdbcCursor, table: str) -> bool:
    """Whether there is a table or a view of a name."""
    name = text_literal(table, SQLITE)
    found = rows_of(cursor, f"SELECT type FROM sqlite_master WHERE name = {name} COLLATE NOCASE AND type <> 'index'")
    if found and found[0][0] != "table":
        raise PlanError(f"write_database: {table} is a {found[0][0]}, no table")
    return bool(found)


def check_fit(cursor: AdbcCursor, written: WrittenTable) -> None:
    """Raise SchemaError or PlanError where rows do not fit into a table that is there."""
    place = f"write_database: table {written.table}"
    # hidden: 0 for columns that are stored and written
    listed = rows_of(
        cursor,
        'SELECT name, type, "notnull" AND dflt_value IS NULL AND pk = 0, hidden'
        f" FROM pragma_table_xinfo({text_literal(written.table, SQLITE)})",
    )
    there = {name: declared for name, declared, _, hidden in listed if hidden == 0}
    for column in written.columns:
        if column.name not in there:
            raise SchemaError(f"{place} has no column '{column.name}' that is stored; it has {', '.join(there)}")
        if not is_kept_by(column.sql_type, there[column.name]):
            raise SchemaError(
                f"{place}: column '{column.name}' is {there[column.name]}, which converts {column.sql_type}; cast it in"
                " the program"
            )
    names = {column.name for column in written.columns}
    needed = [name for name, _, is_needed, hidden in listed if is_needed and hidden == 0 and name not in names]
    if needed:
        raise SchemaError(f"{place} needs values for {', '.join(needed)}, which have no default")
    if written.mode == "upsert" and frozenset(written.on) not in _keys(cursor, written.table):
        raise PlanError(f"{place} has no unique index of ({', '.join(written.on)}), which mode='upsert' needs")


def _keys(cursor: AdbcCursor, table: str) -> list[frozenset[str]]:
    """Return the sets of columns that a primary key or a unique index keeps apart."""
    name = text_literal(table, SQLITE)
    primary = rows_of(cursor, f"SELECT name FROM pragma_table_info({name}) WHERE pk > 0")
    keys = [frozenset(column for (column,) in primary)]
    for (index,) in rows_of(cursor, f'SELECT name FROM pragma_index_list({name}) WHERE "unique" AND NOT partial'):
        columns = rows_of(cursor, f"SELECT name FROM pragma_index_info({text_literal(index, SQLITE)})")
        keys.append(frozenset(column for (column,) in columns))
    return keys
