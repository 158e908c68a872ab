"""DeltaSink: what the engine knows of Delta tables that are written.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.commit.output_target import OutputTarget
from engine.commit.targets import target_named
from engine.delta_tables.library import DELTALAKE_BYTES
from engine.errors import ConfigurationError
from engine.formats.sink_format import PartitionedRows, SinkFormat, SinkWriter
from engine.graph.source_spec import SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa


class DeltaSink(SinkFormat):
    """Parquet files that the log of a table names when the job is done."""

    name = "delta"
    extension = "parquet"
    is_table = True
    library_bytes = DELTALAKE_BYTES
    modules = ("engine.delta_tables.delta_writer", "engine.delta_tables.patched_file")

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Refuse a sink without a plan of its table, which ``write_delta`` makes."""
        raise ConfigurationError("write('delta', ...): tables have a call of their own, write_delta(path)")

    def target(self, spec: SinkSpec) -> OutputTarget:
        """Return the tables, whose log is the switch."""
        return target_named("delta")

    def runs(self, spec: SinkSpec, schema: pa.Schema) -> PartitionedRows | None:
        """Return the division of changes by the files that they are of; of other rows it is that of partitions."""
        from engine.delta_tables.patched_file import patch_runs
        from engine.delta_tables.table_write import decoded

        write = decoded(spec.options)
        return patch_runs(schema, write) if write.patches else None

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> SinkWriter:
        """Return the writer of a file."""
        from engine.delta_tables.delta_writer import DeltaWriter
        from engine.delta_tables.patched_file import change_rows
        from engine.delta_tables.table_write import decoded

        write = decoded(spec.options)
        if write.patches:
            return change_rows(schema, path, spec, write)
        known = former if isinstance(former, DeltaWriter) else None
        return DeltaWriter(schema, path, spec.target_file_bytes, write, known)
