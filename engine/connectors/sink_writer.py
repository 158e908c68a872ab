"""The writer of one file of a sink.

    open_sink_writer(spec, schema, path, former) -> SinkWriter     creates the file
    writer.write(batch) ...                            until it ``is_full``
    finished(writer) -> (row_count, size_bytes, statistics_json)
    writer.abort()                                     instead of that: removes the file; idempotent

The path is a staged file of one attempt; what becomes of it is not decided here. Used by one task thread.

Held by: tests/connectors/test_sinks.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.errors import PlanError
from engine.formats.registry import sink_format_of
from engine.formats.sink_format import SinkWriter
from engine.graph.source_spec import SinkSpec


def open_sink_writer(spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> SinkWriter:
    """Return the writer of a sink's format; the file must not exist.

    former: of the sink's file before it, which has the same schema: what is known of its columns goes on.
    """
    entry = sink_format_of(spec)
    writer = entry.writer(spec, schema, path, former)
    if not spec.text_types_ipc:
        return writer
    from engine.connectors.checked_texts import CheckedTexts

    return CheckedTexts(writer, entry.call, pa.ipc.read_schema(pa.py_buffer(spec.text_types_ipc)))


def finished(writer: SinkWriter) -> tuple[int, int, str]:
    """Complete a file; return its rows, bytes and statistics. Raises: PlanError: its format breaks the protocol."""
    found: object = writer.finish()
    match found:
        case (int() as row_count, int() as size_bytes, str() as statistics_json):
            return row_count, size_bytes, statistics_json
    raise PlanError(
        f"{type(writer).__name__}.finish() returned {found!r}: the writer of a file returns its rows, its bytes, and"
        " statistics as JSON or ''"
    )
