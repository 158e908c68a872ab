"""DeltaSink: what the engine knows of Delta tables that are written.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.commit.output_target import OutputTarget
from engine.commit.targets import target_named
from engine.errors import ConfigurationError
from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.graph.source_spec import SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.delta_tables.delta_writer import DeltaWriter


class DeltaSink(SinkFormat):
    """Parquet files that the log of a table names when the job is done."""

    name = "delta"
    extension = "parquet"
    is_table = True
    modules = ("engine.delta_tables.delta_writer",)

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Refuse a sink without a plan of its table, which ``write_delta`` makes."""
        raise ConfigurationError("write('delta', ...): tables have a call of their own, write_delta(path)")

    def target(self, spec: SinkSpec) -> OutputTarget:
        """Return the tables, whose log is the switch."""
        return target_named("delta")

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> DeltaWriter:
        """Return the writer of a file."""
        from engine.delta_tables.delta_writer import DeltaWriter
        from engine.delta_tables.table_write import decoded

        known = former if isinstance(former, DeltaWriter) else None
        return DeltaWriter(schema, path, spec.target_file_bytes, decoded(spec.options), known)
