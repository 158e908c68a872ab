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

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.iceberg_tables.iceberg_writer import IcebergWriter


class IcebergSink(SinkFormat):
    """Parquet files in a table's folder, and a commit of the table."""

    name = "iceberg"
    extension = "parquet"
    is_table = True
    modules = ("engine.iceberg_tables.iceberg_writer",)

    def target(self, spec: SinkSpec) -> OutputTarget:
        """Return the target of tables."""
        return target_named("iceberg")

    def runs(self, spec: SinkSpec, schema: pa.Schema) -> PartitionedRows:
        """Return the division of rows by the values of partitions."""
        from engine.iceberg_tables.iceberg_writer import IcebergRuns

        return IcebergRuns(schema, spec.partition_by)

    def writer(
        self, spec: SinkSpec, schema: pa.Schema, path: str | Path, former: SinkWriter | None = None
    ) -> IcebergWriter:
        """Return the writer of a data file."""
        from engine.iceberg_tables.iceberg_writer import IcebergWriter

        return IcebergWriter(spec, schema, path, former if isinstance(former, IcebergWriter) else None)
