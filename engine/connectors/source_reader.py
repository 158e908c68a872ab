"""SourceReader: the task's side of a source.

    open_source(spec, splits) -> SourceReader      iterate: pa.RecordBatch, at most BATCH_ROWS_MAX rows each
        .bad_rows .bytes_read                      so far
        .close()                                   idempotent; also in the middle

A reader reads the splits it was given, one after the other; the columns of its batches are the spec's ``columns``.
Used by one task thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from engine.errors import PlanError
from engine.graph.source_spec import ArrowSource, CsvSource, ParquetSource, SourceSpec, SourceSplit

BATCH_ROWS_MAX = 8192
BATCH_BYTES_MAX = 1 << 20


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


def bounded_batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch, each within the limits of rows and (about) bytes, never less than one row."""
    rows = batch.num_rows
    if rows == 0:
        return
    row_bytes = max(1, batch.nbytes // rows)
    step = max(1, min(BATCH_ROWS_MAX, BATCH_BYTES_MAX // row_bytes))
    if rows <= step:
        yield batch
        return
    for start in range(0, rows, step):
        yield batch.slice(start, step)


def open_source(spec: SourceSpec, splits: Sequence[SourceSplit]) -> SourceReader:
    """Return the reader of some splits of a source."""
    from engine.connectors.arrow_reader import ArrowReader  # noqa: PLC0415 - the formats import this module
    from engine.connectors.csv_reader import CsvReader  # noqa: PLC0415
    from engine.connectors.parquet_reader import ParquetReader  # noqa: PLC0415

    match spec:
        case CsvSource():
            return CsvReader(spec, splits)
        case ParquetSource():
            return ParquetReader(spec, splits)
        case ArrowSource():
            return ArrowReader(spec, splits)
    raise PlanError(f"no reader for {type(spec).__name__}")
