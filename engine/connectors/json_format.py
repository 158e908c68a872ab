"""JsonFormat, JsonSink: what the engine knows of JSON lines.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

from engine.files.file_stamps import file_stamps
from engine.formats.sink_format import SinkFormat, SinkWriter, with_written_codec
from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import JsonSource, SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.connectors.json_writer import JsonWriter


class JsonFormat(SourceFormat[JsonSource]):
    """Splits are cut by size alone."""

    name = "json"
    reader_place = ("engine.connectors.json_reader", "JsonReader")
    endings = (".json", ".jsonl", ".ndjson")
    options: ClassVar = {
        "compression": "gzip, zstd, bz2, xz, lz4 or none, where the ending of a file does not say it",
        "on_bad_row": "what becomes of a malformed line: fail, or skip",
    }
    takes_schema = True

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of objects."""
        from engine.connectors.json_source import json_source

        return json_source(request.paths, request.schema, request.parallelism, **request.options)

    def stamps(self, spec: JsonSource) -> Hashable | None:
        """Return the versions of its files."""
        return file_stamps(spec.paths)

    def exact_splits(self, spec: JsonSource, subtask_count: int) -> JsonSource:
        """Return a source with splits of its files as large as they are now."""
        from engine.connectors.json_source import with_splits

        return with_splits(spec, subtask_count)


class JsonSink(SinkFormat):
    """Objects, one for each row."""

    name = "json"
    is_compressed_whole = True

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink of columns that have a form in JSON."""
        from engine.connectors.json_writer import check_json_sink

        check_json_sink(schema)
        return with_written_codec(spec)

    def found_schema(self, spec: SinkSpec, file: str) -> pa.Schema:
        """Return the columns of a file, as a sample has them; of those without any value the type null."""
        from engine.connectors.json_source import json_source

        return json_source(file, keeps_nulls=True)[2]

    def fits(self, known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
        """Return whether values of a type are read beside existing ones; False: each text says so, None: no."""
        from engine.connectors.json_fits import fits

        return fits(known, own, schema_mode)

    def check_columns(self, spec: SinkSpec, there: pa.Schema, schema: pa.Schema, what: str) -> str:
        """Return nothing: a missing member is null."""
        return ""

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> JsonWriter:
        """Return the writer of a file."""
        from engine.connectors.json_writer import JsonWriter

        return JsonWriter(schema, path, spec.compression)
