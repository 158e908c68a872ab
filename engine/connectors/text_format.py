"""TextFormat, TextSink: what the engine knows of lines of text.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

from engine.files.file_stamps import file_stamps
from engine.formats.sink_format import SinkFormat, SinkWriter, with_written_codec
from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import SinkSpec, TextSource

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.connectors.text_writer import TextWriter


class TextFormat(SourceFormat[TextSource]):
    """Splits are cut by size alone."""

    name = "text"
    reader_place = ("engine.connectors.text_reader", "TextReader")
    options: ClassVar = {
        "compression": "gzip, zstd, bz2, xz, lz4 or none, where the ending of a file does not say it",
        "skip_rows": "first lines of each file that are passed over",
        "encoding": "the encoding by Python's name, such as 'cp1252'; UTF-8 without it",
    }

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of lines."""
        from engine.connectors.text_source import text_source

        return text_source(request.paths, request.parallelism, **request.options)

    def stamps(self, spec: TextSource) -> Hashable | None:
        """Return the versions of its files."""
        return file_stamps(spec.paths)

    def exact_splits(self, spec: TextSource, subtask_count: int) -> TextSource:
        """Return a source with splits of its files as large as they are now."""
        from engine.connectors.text_source import with_splits

        return with_splits(spec, subtask_count)


class TextSink(SinkFormat):
    """Lines, one for each row."""

    name = "text"
    extension = "txt"
    is_compressed_whole = True

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink of one column of strings."""
        from engine.connectors.text_writer import check_text_sink

        check_text_sink(file_schema)
        return with_written_codec(spec)

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> TextWriter:
        """Return the writer of a file."""
        from engine.connectors.text_writer import TextWriter

        return TextWriter(schema, path, spec.compression)
