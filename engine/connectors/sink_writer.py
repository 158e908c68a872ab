"""SinkWriter: the task's side of a sink.

    open_sink_writer(spec, schema, path, former) -> SinkWriter     creates the file
        .write(batch) ...                              until it ``is_full``
        .finish() -> (row_count, size_bytes, statistics_json)
        .abort()                                           instead of finish: removes the file; idempotent

The path is a staged file of one attempt; what becomes of it is not decided here. Used by one task thread.

Held by: tests/connectors/test_sinks.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import pyarrow as pa

from engine.errors import NotYetSupportedError
from engine.graph.source_spec import SinkSpec

#: behind the path of a sink of format stream: the folder of the files that a client takes while the job runs
STREAM_FOLDER: Final = "-stream"


@runtime_checkable
class PacedWriter(Protocol):
    """A writer that may have to wait before it takes more."""

    def wait_for_room(self, is_ended: Callable[[], bool]) -> None:
        """Wait, until the task is to end."""
        ...


class SinkWriter(Protocol):
    """Writes one staged file."""

    @property
    def is_full(self) -> bool:
        """Whether what follows belongs into another file; it may be appended all the same."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch of the schema."""
        ...

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, statistics as JSON or "")."""
        ...

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        ...


@cache
def is_paced(writer_type: type) -> bool:
    """Return whether writers of a type are paced; asked of an instance it takes as long as opening a file."""
    return issubclass(writer_type, PacedWriter)


def open_sink_writer(spec: SinkSpec, schema: pa.Schema, path: Path, former: SinkWriter | None = None) -> SinkWriter:
    """Return the writer of a sink's format; the file must not exist.

    former: of the sink's file before it, which has the same schema: what is known of its columns goes on.
    """
    writer = _open(spec, schema, path, former)
    if not spec.text_types_ipc:
        return writer
    from engine.connectors.checked_texts import CheckedTexts  # noqa: PLC0415 - start-up time

    return CheckedTexts(writer, f"write_{spec.format}", pa.ipc.read_schema(pa.py_buffer(spec.text_types_ipc)))


def _open(spec: SinkSpec, schema: pa.Schema, path: Path, former: SinkWriter | None) -> SinkWriter:
    # Loaded when there is a sink of the format: most jobs have one.
    if spec.format == "csv":
        from engine.csv.writer import CsvWriter  # noqa: PLC0415

        return CsvWriter(schema, path, spec.header, spec.delimiter, spec.compression)
    if spec.format == "parquet":
        from engine.parquet.writer import ParquetWriter  # noqa: PLC0415

        codec, wanted = spec.compression or "snappy", spec.target_file_bytes
        known = former if isinstance(former, ParquetWriter) else None
        return ParquetWriter(schema, path, codec, spec.compression_level, wanted_bytes=wanted, former=known)
    if spec.format == "records":
        from engine.connectors.records_writer import RecordsWriter  # noqa: PLC0415

        return RecordsWriter(schema, path)
    if spec.format == "text":
        from engine.connectors.text_writer import TextWriter  # noqa: PLC0415

        return TextWriter(schema, path, spec.compression)
    if spec.format == "arrow":
        from engine.connectors.arrow_writer import ArrowWriter  # noqa: PLC0415

        return ArrowWriter(schema, path)
    if spec.format in ("ipc", "ipc_stream"):
        from engine.connectors.arrow_writer import ArrowWriter  # noqa: PLC0415

        return ArrowWriter(schema, path, spec.compression, is_stream=spec.format == "ipc_stream")
    if spec.format == "json":
        from engine.connectors.json_writer import JsonWriter  # noqa: PLC0415

        return JsonWriter(schema, path, spec.compression)
    if spec.format == "orc":
        from engine.connectors.orc_writer import OrcWriter  # noqa: PLC0415

        return OrcWriter(schema, path, spec.compression)
    if spec.format == "stream":
        from engine.connectors.stream_writer import StreamWriter  # noqa: PLC0415

        return StreamWriter(schema, path, Path(spec.path + STREAM_FOLDER))
    if spec.format == "discard":
        from engine.connectors.discard_writer import DiscardWriter  # noqa: PLC0415

        return DiscardWriter(path)
    raise NotYetSupportedError(f"writing {spec.format}")
