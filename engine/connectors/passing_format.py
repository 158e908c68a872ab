"""StreamSink, DiscardSink: rows that a client takes while a job runs, and rows that nothing takes.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.graph.source_spec import SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.connectors.discard_writer import DiscardWriter
    from engine.connectors.stream_writer import StreamWriter

#: suffix of a sink's path that names the folder from which a client takes files
STREAM_FOLDER: Final = "-stream"


class StreamSink(SinkFormat):
    """Small files in a folder that both see."""

    name = "stream"
    extension = "none"
    is_passing = True
    is_of_client = True

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> StreamWriter:
        """Return the writer of an attempt."""
        from engine.connectors.stream_writer import StreamWriter

        return StreamWriter(schema, path, Path(spec.path + STREAM_FOLDER))


class DiscardSink(SinkFormat):
    """No rows at all, for jobs that are measured."""

    name = "discard"
    extension = "none"
    is_passing = True

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> DiscardWriter:
        """Return the writer of an empty file."""
        from engine.connectors.discard_writer import DiscardWriter

        return DiscardWriter(path)
