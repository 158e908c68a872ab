"""A table of PostgreSQL as it is, and whether rows fit into it.

    look(cursor, ...) ─► FoundTable or None ─► fitted(...) ─► columns with the way in which each becomes one of it

Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from engine.databases.database_connection import POSTGRESQL
from engine.databases.database_queries import quoted, text_literal
from engine.databases.written_queries import qualified, rows_of
from engine.databases.written_table import WrittenColumn, WrittenTable
from engine.databases.written_types import assigned_to
from engine.errors import PlanError, SchemaError

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcCursor


class FoundColumn(NamedTuple):
    """A column of an existing table."""

    name: str
    type: str
    is_enum: bool
    #: flag of columns that need a value in each row
    is_needed: bool
    #: flag of columns whose values the database makes
    is_made: bool


class FoundTable(NamedTuple):
    """An existing table: its columns, and those sets of them that a unique index keeps apart."""

    columns: tuple[FoundColumn, ...]
    keys: tuple[frozenset[str], ...]


def literal(text: str) -> str:
    """Return a text as a literal of PostgreSQL."""
    return text_literal(text, POSTGRESQL)


def schema_of(cursor: AdbcCursor, schema: str, table: str) -> str:
    """Return the schema of a table that is named without one: where it is found, or new tables go. Raises PlanError."""
    if schema:
        known = rows_of(cursor, f"SELECT 1 FROM pg_namespace WHERE nspname = {literal(schema)}")
        if known:
            return schema
        raise PlanError(f"write_database: there is no schema {schema!r}; make it with CREATE SCHEMA")
    found = rows_of(
        cursor,
        "SELECT coalesce((SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        f" WHERE c.oid = to_regclass({literal(quoted(table))})), current_schema()::text)",
    )[0][0]
    if found is None:
        raise PlanError(f"write_database: the search path has no schema for {table!r}; write it as schema.table")
    return str(found)


def look(cursor: AdbcCursor, schema: str, table: str) -> FoundTable | None:
    """Return the columns and keys of a table, None where there is none. Raises: PlanError for a view and the like."""
    name = f"to_regclass({literal(qualified(schema, table))})"
    kind = rows_of(cursor, f"SELECT relkind::text FROM pg_class WHERE oid = {name}")
    if not kind:
        return None
    if kind[0][0] not in ("r", "p"):
        raise PlanError(f"write_database: {schema}.{table} is no table (a view, a foreign table or another relation)")
    columns = rows_of(
        cursor,
        "SELECT attname::text, format_type(atttypid, atttypmod), typtype = 'e',"
        " attnotnull AND NOT atthasdef AND attidentity = '', attgenerated <> '' OR attidentity = 'a'"
        f" FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid WHERE attrelid = {name} AND attnum > 0"
        " AND NOT attisdropped ORDER BY attnum",
    )
    keys = rows_of(
        cursor,
        "SELECT array_to_string(ARRAY(SELECT attname::text FROM pg_attribute a WHERE a.attrelid = i.indrelid"
        " AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])), chr(1)) FROM pg_index i"
        f" WHERE i.indrelid = {name} AND indisunique AND indimmediate AND indisvalid AND indpred IS NULL"
        " AND indexprs IS NULL",
    )
    return FoundTable(
        tuple(FoundColumn(*column) for column in columns), tuple(frozenset(key[0].split("\1")) for key in keys)
    )


def fitted(written: WrittenTable, found: FoundTable) -> tuple[WrittenColumn, ...]:
    """Return the columns with the way in which each becomes one of an existing table. Raises: SchemaError."""
    there = {column.name: column for column in found.columns}
    place = f"write_database: table {written.shown}"
    fitting = []
    for column in written.columns:
        own = there.get(column.name)
        if own is None:
            raise SchemaError(f"{place} has no column '{column.name}'; it has {', '.join(there)}")
        if own.is_made:
            raise SchemaError(f"{place} makes the values of column '{column.name}' itself; leave it out")
        assigned = assigned_to(column.sql_type, own.type, is_enum=own.is_enum)
        if assigned is None:
            raise SchemaError(
                f"{place}: column '{column.name}' is {own.type}, which may not keep each {column.sql_type}; cast it in"
                " the program"
            )
        fitting.append(msgspec.structs.replace(column, assigned=assigned))
    names = {column.name for column in written.columns}
    needed = [column.name for column in found.columns if column.is_needed and column.name not in names]
    if needed:
        raise SchemaError(f"{place} needs values for {', '.join(needed)}, which have no default")
    if written.mode == "upsert" and frozenset(written.on) not in found.keys:
        raise PlanError(f"{place} has no unique index of ({', '.join(written.on)}), which mode='upsert' needs")
    return tuple(fitting)
