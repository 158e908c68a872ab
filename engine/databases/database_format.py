"""DatabaseFormat: what the engine knows of tables and queries of a database.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from typing import ClassVar

from engine.databases.database_connection import POSTGRESQL
from engine.formats.source_format import FoundSource, HeldState, ReadRequest, SourceFormat
from engine.graph.source_spec import FormatSource


class DatabaseFormat(SourceFormat[FormatSource]):
    """Splits are ranges of a column; filters are decided by the database where it decides as the engine does."""

    name = "database"
    has_files = False
    takes_filters = True
    waits_for_server = True
    reader_place = ("engine.databases.database_reader", "DatabaseReader")
    options: ClassVar = {
        "uri": "postgresql:// or sqlite://, or env:NAME, an environment variable of each process",
        "driver": "the name of another ADBC driver, such as flightsql",
        "partition_on": "a column, ranges of which are read at the same time",
        "partitions": "number of those ranges; the environment's parallelism without it",
        "batch_rows": "rows that a batch has at most",
    }

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of the only place, a table's name or a query."""
        from engine.databases.database_source import database_source

        given = {"partitions": request.parallelism, **{k: v for k, v in request.options.items() if v is not None}}
        (query,) = request.paths
        return database_source(query, **given)

    def state_place(self, spec: FormatSource) -> str:
        """Return the URI of PostgreSQL."""
        return str(spec.options["uri"]) if spec.options["dialect"] == POSTGRESQL else ""

    def held_state(self, spec: FormatSource) -> HeldState | None:
        """Hold a snapshot of PostgreSQL."""
        from engine.databases.postgresql_state import held_postgresql

        return held_postgresql(str(spec.options["uri"]), has_password=bool(spec.options["has_password"]))

    def details(self, spec: FormatSource) -> list[str]:
        """Return the database without its password, the ranges, the filter, and the statement of the first range."""
        from engine.databases.database_statement import DatabaseStatement

        ranges = f", {len(spec.splits)} ranges of {spec.options['partition_on']}" if len(spec.splits) > 1 else ""
        statement = DatabaseStatement(spec)
        sent = [f"sends {' '.join(statement.text(split).split())}" for split in spec.splits[:1]]
        return [f"of {spec.options['uri']}{ranges}", *super().details(spec), *sent]
