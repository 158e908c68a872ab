"""DatabaseFormat: what the engine knows of tables and queries of a database.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from typing import ClassVar

from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import FormatSource


class DatabaseFormat(SourceFormat[FormatSource]):
    """Splits are ranges of a column; filters are decided by the database where it decides as the engine does."""

    name = "database"
    has_files = False
    takes_filters = True
    reader_place = ("engine.databases.database_reader", "DatabaseReader")
    options: ClassVar = {
        "uri": "postgresql:// or sqlite://, or env:NAME, an environment variable of each process",
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

    def details(self, spec: FormatSource) -> list[str]:
        """Return the database without its password, the ranges, the filter, and the statement of the first range."""
        from engine.databases.database_statement import DatabaseStatement

        ranges = f", {len(spec.splits)} ranges of {spec.options['partition_on']}" if len(spec.splits) > 1 else ""
        statement = DatabaseStatement(spec)
        sent = [f"sends {' '.join(statement.text(split).split())}" for split in spec.splits[:1]]
        return [f"of {spec.options['uri']}{ranges}", *super().details(spec), *sent]
