"""RecordsFormat: what the engine knows of record data sets, whose parts are Parquet files.

Held by: tests/formats/test_registry.py
"""

# ruff: noqa: PLC0415 - the JobManager loads this module, and no Arrow

from __future__ import annotations

from engine.errors import PlanError
from engine.formats.source_format import FoundSource, ReadRequest
from engine.parquet.parquet_format import ParquetFormat


class RecordsFormat(ParquetFormat):
    """A folder with a manifest; sources of it are Parquet sources."""

    name = "records"
    has_files = False
    takes_union = False

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of the parts, with what the manifest says."""
        from engine.connectors.records_source import records_source

        if len(request.paths) != 1:
            raise PlanError(f"read_records: a record data set is one folder; these are {len(request.paths)}")
        return records_source(request.paths[0])
