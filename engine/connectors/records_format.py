"""RecordsFormat, RecordsSink: what the engine knows of record data sets, whose parts are Parquet files.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from engine.commit.decision import DecidedOutput, DecidedText
from engine.errors import PlanError
from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.formats.source_format import FoundSource, ReadRequest
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.parquet.parquet_format import ParquetFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.connectors.records_writer import RecordsWriter


class RecordsFormat(ParquetFormat):
    """A folder with a manifest; sources of it are Parquet sources."""

    name = "records"
    has_files = False
    endings: ClassVar[tuple[str, ...]] = ()
    takes_union = False

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of the parts, with what the manifest says."""
        from engine.connectors.records_source import records_source

        if len(request.paths) != 1:
            raise PlanError(f"read_records: a record data set is one folder; these are {len(request.paths)}")
        return records_source(request.paths[0])


class RecordsSink(SinkFormat):
    """Parquet files with checksums, and a manifest behind them."""

    name = "records"
    extension = "parquet"

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink of columns that Parquet has, whose types the manifest keeps."""
        from engine.parquet.source import plain_file_schema, stored_schema

        stored_schema(schema, self.call)
        return msgspec.structs.replace(spec, schema_ipc=plain_file_schema(schema).serialize().to_pybytes())

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: Path, former: SinkWriter | None = None) -> RecordsWriter:
        """Return the writer of a part."""
        from engine.connectors.records_writer import RecordsWriter

        return RecordsWriter(schema, path)

    def handed_on(self, former: str, latter: str) -> tuple[str, str]:
        """Return the statistics of two parts, the latter with what both tell of columns."""
        from engine.connectors.records_parts import hand_on

        return hand_on(former, latter)

    def completed(self, output: DecidedOutput, spec: SinkSpec, staged: Sequence[StagedFile]) -> DecidedOutput:
        """Return an output with the manifest that follows from what writers reported."""
        from engine.connectors.records_manifest import MANIFEST_NAME
        from engine.connectors.records_parts import WrittenPart, records_manifest

        statistics = {file.name: file.statistics_json for file in staged}
        parts = [
            WrittenPart(file.part, file.row_count, file.size_bytes, statistics[file.name]) for file in output.files
        ]
        manifest = DecidedText(MANIFEST_NAME, records_manifest(spec.schema_ipc, parts).decode())
        return msgspec.structs.replace(output, texts=(manifest,))
