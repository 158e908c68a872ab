"""A table that a job writes, as the plan has it: where it lies, its columns, and what becomes of rows that are there.

    WrittenTable      in ``SinkSpec.options`` as JSON; no secret is in it
    "postgresql://me@host/db#public.orders"     the output's name, which is the same in every process
    "drey_0d5c…"                                the prefix of the tables in which attempts of a job write

Held by: tests/databases/test_written_tables.py
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from engine.databases.table_names import table_names
from engine.errors import ConfigurationError, SchemaError
from engine.ids import JobId

MODES: Final = ("error", "append", "overwrite", "upsert")
#: bytes that a name has at most: PostgreSQL cuts what is longer
_NAME_BYTES_MAX: Final = 63
#: the table in which jobs are noted, beside the tables that they write
JOBS_TABLE: Final = "drey_jobs"
#: characters of ``staging_prefix``
STAGING_LENGTH: Final = len("drey_") + 16


class WrittenColumn(msgspec.Struct, frozen=True):
    """A column of the rows: its type in SQL, and the expression that makes a value of the target's column of it."""

    name: str
    sql_type: str
    #: text with {} for the column
    assigned: str = "{}"


class WrittenTable(msgspec.Struct, frozen=True):
    """A table with the columns that are written, and the mode."""

    uri: str
    has_password: bool
    dialect: str
    #: schema of PostgreSQL, "" in SQLite
    schema: str
    table: str
    mode: str
    columns: tuple[WrittenColumn, ...]
    #: columns whose values tell which rows are the same
    on: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """The name of the output."""
        return output_name(self.uri, self.schema, self.table)

    @property
    def shown(self) -> str:
        """The table in errors."""
        return f"{self.schema}.{self.table}" if self.schema else self.table


def written_of(options: str) -> WrittenTable:
    """Return the table of a sink's or a decision's options."""
    return msgspec.json.decode(options, type=WrittenTable)


class OutputPlace(NamedTuple):
    """The parts of an output's name."""

    uri: str
    schema: str
    table: str


def output_name(uri: str, schema: str, table: str) -> str:
    """Return the name of a table as an output."""
    # Dots of a name are no dots between names; "quote" leaves them.
    return f"{uri}#{'.'.join(quote(part, safe='').replace('.', '%2E') for part in (schema, table) if part)}"


def place_of(output: str) -> OutputPlace:
    """Return the place of an output by its name."""
    uri, _, name = output.rpartition("#")
    schema, _, table = name.rpartition(".")
    return OutputPlace(uri, unquote(schema), unquote(table))


def staging_prefix(output: str, job_id: JobId) -> str:
    """Return the prefix of the tables that a job's attempts write for an output."""
    return f"drey_{hashlib.blake2b(f'{job_id} {output}'.encode(), digest_size=8).hexdigest()}"


def staging_table(prefix: str, attempt: str) -> str:
    """Return the name of the table of an attempt."""
    return f"{prefix}_{hashlib.blake2b(attempt.encode(), digest_size=12).hexdigest()}"


def named_table(table: str) -> tuple[str, str]:
    """Return schema ("": the default one) and name of a table as a user names it. Raises: ConfigurationError."""
    parts = table_names(table)
    if parts is None or len(parts) > 2:
        raise ConfigurationError(
            f"write_database: table={table!r}: name a table, or schema.table; a name with a dot is in quotes:"
            """ 'schema."a.b"'"""
        )
    return ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def check_arguments(table: str, mode: str, on: tuple[str, ...], columns: list[str]) -> None:
    """Raise ConfigurationError or SchemaError for arguments of ``write_database`` that do not fit the rows."""
    if mode not in MODES:
        raise ConfigurationError(f"write_database: mode={mode!r}: choose one of {', '.join(MODES)}")
    if bool(on) != (mode == "upsert"):
        raise ConfigurationError(
            "write_database: mode='upsert' takes on=, the columns of a key"
            if mode == "upsert"
            else f"write_database: on= is of mode='upsert', and mode={mode!r} replaces or adds whole tables of rows"
        )
    for name in on:
        if name not in columns or on.count(name) > 1:
            raise SchemaError(f"write_database: on={list(on)}: name columns once each, of {', '.join(columns)}")
    if not columns:
        raise SchemaError("write_database: the rows have no columns")
    for name in (*named_table(table), *columns):
        if "\0" in name or len(name.encode()) > _NAME_BYTES_MAX:
            raise SchemaError(f"write_database: the name {name!r} has more than {_NAME_BYTES_MAX} bytes, or a NUL")
    if "" in columns:
        raise SchemaError("write_database: a column has no name; give it one by alias()")
