"""SourceReader: the task's side of a source.

    open_source(spec, splits) -> SourceReader      iterate: pa.RecordBatch, bounded as in bounded_batches.py
        .bad_rows .bytes_read                      so far
        .close()                                   idempotent; also in the middle

A reader reads the splits it was given, one after the other; the columns of its batches are the spec's ``columns``.
Used by one task thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from engine.connectors.arrow_reader import ArrowReader
from engine.connectors.csv_reader import CsvReader
from engine.connectors.parquet_reader import ParquetReader
from engine.connectors.text_reader import TextReader
from engine.errors import PlanError
from engine.graph.source_spec import ArrowSource, CsvSource, ParquetSource, SourceSpec, SourceSplit, TextSource


class SourceReader(Protocol):
    """Reads the splits of one subtask."""

    @property
    def bad_rows(self) -> int:
        """Rows that were skipped because they are malformed."""
        ...

    @property
    def bytes_read(self) -> int:
        """Bytes of the splits read so far."""
        ...

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as batches."""
        ...

    def close(self) -> None:
        """Close files; idempotent."""
        ...


def open_source(spec: SourceSpec, splits: Sequence[SourceSplit]) -> SourceReader:
    """Return the reader of some splits of a source."""
    match spec:
        case CsvSource():
            return CsvReader(spec, splits)
        case ParquetSource():
            return ParquetReader(spec, splits)
        case ArrowSource():
            return ArrowReader(spec, splits)
        case TextSource():
            return TextReader(spec, splits)
    raise PlanError(f"no reader for {type(spec).__name__}")
