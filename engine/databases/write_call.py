"""The client's side of a table that is written: arguments, types, and what the database says of the table.

Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.databases.database_connection import POSTGRESQL, connected, dialect_of, kept_apart, needs_password
from engine.databases.postgresql_table import schema_of
from engine.databases.written_table import WrittenColumn, WrittenTable, check_arguments, named_table
from engine.databases.written_types import sent_type
from engine.errors import ConfigurationError
from engine.graph.source_spec import SinkSpec


def database_sink(schema: pa.Schema, table: str, uri: str, mode: str, on: tuple[str, ...]) -> SinkSpec:
    """Return the sink of rows as a table.

    Raises: ConfigurationError (arguments, no driver), SchemaError (types, names), PlanError, ResourceError.
    """
    check_arguments(table, mode, on, schema.names)
    shown = kept_apart(uri)
    dialect, has_password = dialect_of(shown), needs_password(shown)
    columns = [WrittenColumn(field.name, sent_type(field.name, field.type, dialect).sql) for field in schema]
    of_table, name = named_table(table)
    if dialect == POSTGRESQL:
        with (
            connected(shown, has_password=has_password, in_transaction=True) as connection,
            connection.cursor() as cursor,
        ):
            of_table = schema_of(cursor, of_table, name)
    elif of_table:
        raise ConfigurationError(f"write_database: table={table!r}: SQLite has no schemas; name the table alone")
    written = WrittenTable(shown, has_password, dialect, of_table, name, mode, tuple(columns), on)
    return SinkSpec(
        "database",
        written.output,
        mode == "overwrite",
        mode=mode if mode in ("append", "upsert") else "",
        options=msgspec.json.encode(written).decode(),
    )
