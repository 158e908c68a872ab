"""DatabaseSink: what the engine knows of tables of databases as outputs.

Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.commit.output_target import OutputTarget
from engine.commit.targets import target_named
from engine.databases.database_connection import SQLITE
from engine.databases.written_table import written_of
from engine.errors import ConfigurationError
from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.graph.source_spec import SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa


class DatabaseSink(SinkFormat):
    """Rows of a table, which attempts write beside it."""

    name = "database"
    extension = "arrow"

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Refuse a sink that a path names; ``write_call`` makes those of tables."""
        raise ConfigurationError("write('database', ...): tables have a call of their own, write_database(table, uri)")

    def target(self, spec: SinkSpec) -> OutputTarget:
        """Return the entry of the dialect."""
        return target_named(written_of(spec.options).dialect)

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: Path, former: SinkWriter | None = None) -> SinkWriter:
        """Return the writer of an attempt: of a table in PostgreSQL, of a file beside a database of SQLite."""
        from engine.databases.sent_rows import SentRows

        written = written_of(spec.options)
        if written.dialect == SQLITE:
            from engine.connectors.arrow_writer import ArrowWriter

            return SentRows(written, schema, lambda sent: ArrowWriter(sent, path))
        from engine.databases.postgresql_writer import PostgresqlWriter

        return SentRows(written, schema, lambda sent: PostgresqlWriter(written, sent, path))
