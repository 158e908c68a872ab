"""Columns of a row group as streams of batches, of which each may be read, in part, or passed over.

    stream.read(mask) -> batch      the next rows, or those for which a mask of as many is true; None: there are no more
    stream.read_beside(mask, beside) -> batch       the same, with columns of another stream of which as many are kept
    stream.skip()                   the next rows are not wanted

    DecodedColumns      decoded here: what is not wanted is not decoded (group_reader)
    ArrowColumns        decoded by pyarrow: all of it, then cut and filtered
    JoinedStreams       columns of either kind, as one stream

Invariant: every batch but the last one has the rows that the stream was made for, so streams of one row group go in
step.

Held by: tests/parquet/test_group_reader.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from engine.parquet.column_passes import regular_batches
from engine.parquet.group_reader import GroupReader
from engine.records.kept_rows import kept_rows
from engine.records.row_mask import Mask
from engine.records.side_by_side import SideBySide


class Beside(NamedTuple):
    """Rows of other columns that are put beside those of a stream, which are as many."""

    #: names the columns of the result, and their order
    sides: SideBySide
    batch: pa.RecordBatch
    #: the rows of the batch that are meant; None: all
    mask: pa.BooleanArray | Mask | None


class ColumnStream(Protocol):
    """Some columns of a row group, from its first row to its last."""

    def read(self, mask: pa.BooleanArray | Mask | None = None) -> pa.RecordBatch | None:
        """Return the next rows that are kept; None: all were read."""
        ...

    def read_beside(self, mask: pa.BooleanArray | Mask | None, beside: Beside) -> pa.RecordBatch | None:
        """Return the next rows that are kept, and beside them those of other columns; None: all were read."""
        batch = self.read(mask)
        if batch is None:
            return None
        left = beside.batch if beside.mask is None else kept_rows(beside.batch, beside.mask)
        return beside.sides.of([left, batch])

    def skip(self) -> None:
        """Pass over the next rows."""
        ...


class DecodedColumns(ColumnStream):
    """Columns that are decoded here.

    Args:
        reader: of the columns; nothing was read.
        row_count: of the row group.
        rows: of a batch.
    """

    def __init__(self, reader: GroupReader, row_count: int, rows: int) -> None:
        self._reader = reader
        self._row_count = row_count
        self._rows = rows

    def read(self, mask: pa.BooleanArray | Mask | None = None) -> pa.RecordBatch | None:
        """Return the next rows that are kept; None: all were read."""
        rows = min(self._rows, self._row_count - self._reader.rows_read)
        return self._reader.read(rows, mask) if rows else None

    def read_beside(self, mask: pa.BooleanArray | Mask | None, beside: Beside) -> pa.RecordBatch | None:
        """Return the next rows that are kept, and beside them those of other columns: one batch, made at once."""
        rows = min(self._rows, self._row_count - self._reader.rows_read)
        return self._reader.read_beside(rows, mask, *beside) if rows else None

    def skip(self) -> None:
        """Pass over the next rows."""
        self._reader.skip(min(self._rows, self._row_count - self._reader.rows_read))


class ArrowColumns(ColumnStream):
    """Columns that pyarrow decodes."""

    def __init__(self, batches: Iterable[pa.RecordBatch], rows: int) -> None:
        self._batches = regular_batches(batches, rows)

    def read(self, mask: pa.BooleanArray | Mask | None = None) -> pa.RecordBatch | None:
        """Return the next rows that are kept; None: all were read."""
        batch = next(self._batches, None)
        return batch if batch is None or mask is None else kept_rows(batch, mask)

    def skip(self) -> None:
        """Pass over the next rows."""
        next(self._batches, None)


class JoinedStreams(ColumnStream):
    """Streams of the same rows as one, in the order of some names."""

    def __init__(self, streams: Sequence[ColumnStream], names: Sequence[str]) -> None:
        self._streams = streams
        self._columns = SideBySide(names)

    def read(self, mask: pa.BooleanArray | Mask | None = None) -> pa.RecordBatch | None:
        """Return the next rows that are kept; None: all were read."""
        parts = [stream.read(mask) for stream in self._streams]
        batches = [part for part in parts if part is not None]
        if not batches:
            return None
        if len(batches) < len(parts):
            raise pa.ArrowInvalid("its columns do not have the same number of rows")
        return self._columns.of(batches)

    def skip(self) -> None:
        """Pass over the next rows."""
        for stream in self._streams:
            stream.skip()


class ConvertedColumns(ColumnStream):
    """Columns of a stream as what a function makes of each batch."""

    def __init__(self, stream: ColumnStream, convert: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._stream = stream
        self._convert = convert

    def read(self, mask: pa.BooleanArray | Mask | None = None) -> pa.RecordBatch | None:
        """Return the next rows that are kept; None: all were read."""
        batch = self._stream.read(mask)
        return None if batch is None else self._convert(batch)

    def skip(self) -> None:
        """Pass over the next rows."""
        self._stream.skip()
