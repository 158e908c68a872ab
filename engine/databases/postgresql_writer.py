"""PostgresqlWriter: the rows of an attempt in a table of its own, in one transaction.

    batches ─► held until there are enough for a COPY ─► table drey_<job>_<attempt> ─► commit, when all rows are there

Until then no other connection sees the table, and what a killed process leaves goes with its connection. An attempt
without rows makes no table.

Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.databases.database_connection import open_connection, told
from engine.databases.database_queries import quoted
from engine.databases.written_queries import UNHURRIED, qualified
from engine.databases.written_table import WrittenTable, staging_table
from engine.memory.budget import Kind, Role, process_budget

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcConnection

#: bytes of a COPY, which is a few messages to the server and back
_COPY_BYTES_MAX: Final = 8 << 20
_COPY_BYTES_MIN: Final = 64 << 10


class PostgresqlWriter:
    """Writes one table. ``path``: the prefix of the job's tables, and the attempt's name."""

    is_full = False

    def __init__(self, written: WrittenTable, schema: pa.Schema, path: str) -> None:
        self._written = written
        self._schema = schema
        prefix, _, name = path.rpartition("/")
        self._table = staging_table(prefix, name)
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._row_count = 0
        self._size_bytes = 0
        self._connection: AdbcConnection | None = None
        self._reserved = process_budget.reserve(Kind.ARROW, role=Role.WRITER)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._row_count += batch.num_rows
        if self._held_bytes >= min(_COPY_BYTES_MAX, max(_COPY_BYTES_MIN, self._reserved.part_bytes)):
            self._copy()

    def _copy(self) -> None:
        held, self._held = self._held, []
        self._size_bytes += self._held_bytes
        self._held_bytes = 0
        written = self._written
        connection = self._connection = self._connection or self._opened()
        with told(written.uri), connection.cursor() as cursor:
            cursor.ingest(self._table, pa.RecordBatchReader.from_batches(self._schema, held), schema=written.schema)

    def _opened(self) -> AdbcConnection:
        """Return a connection whose transaction has made the table."""
        written = self._written
        connection = open_connection(written.uri, has_password=written.has_password, in_transaction=True)
        columns = ", ".join(f"{quoted(column.name)} {column.sql_type}" for column in written.columns)
        made = f"CREATE TABLE {qualified(written.schema, self._table)} ({columns})"
        try:
            with told(written.uri), connection.cursor() as cursor:
                for statement in (*UNHURRIED, made):
                    cursor.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def finish(self) -> tuple[int, int, str]:
        """Make the table one that others see; return (rows, bytes, "")."""
        if self._held:
            self._copy()
        if self._connection is not None:
            with told(self._written.uri):
                self._connection.commit()
        self.abort()
        return self._row_count, self._size_bytes, ""

    def abort(self) -> None:
        """Close the connection, and with it a transaction that is not committed."""
        self._reserved.close()
        self._held = []
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
