"""IcebergSink: what the engine knows of tables of Iceberg that are written.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.commit.output_target import OutputTarget
from engine.commit.targets import target_named
from engine.formats.sink_format import PartitionedRows, SinkFormat, SinkWriter
from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables.library import PYICEBERG_BYTES
from engine.iceberg_tables.write_options import options_of

if TYPE_CHECKING:
    import pyarrow as pa


class IcebergSink(SinkFormat):
    """Parquet files in a table's folder, and a commit of the table."""

    name = "iceberg"
    extension = "parquet"
    is_table = True
    library_bytes = PYICEBERG_BYTES
    modules = ("engine.iceberg_tables.iceberg_writer", "engine.iceberg_tables.patched_file")

    def target(self, spec: SinkSpec) -> OutputTarget:
        """Return the target of tables."""
        return target_named("iceberg")

    def runs(self, spec: SinkSpec, schema: pa.Schema) -> PartitionedRows:
        """Return the division of rows by the values of partitions."""
        from engine.iceberg_tables.iceberg_writer import IcebergRuns
        from engine.iceberg_tables.patched_file import patch_runs

        if _patches(spec):
            return patch_runs(schema, spec)
        return IcebergRuns(schema, spec.partition_by)

    def writer(
        self, spec: SinkSpec, schema: pa.Schema, path: str | Path, former: SinkWriter | None = None
    ) -> SinkWriter:
        """Return the writer of a data file."""
        from engine.iceberg_tables.iceberg_writer import IcebergWriter
        from engine.iceberg_tables.patched_file import change_rows

        if _patches(spec):
            return change_rows(schema, str(path), spec)
        return IcebergWriter(spec, schema, path, former if isinstance(former, IcebergWriter) else None)


def _patches(spec: SinkSpec) -> bool:
    """Return whether rows are those alone that change, and new ones."""
    rewrite = options_of(spec).rewrite
    return rewrite is not None and bool(rewrite.patched_files)
