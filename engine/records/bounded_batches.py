"""Batches within limits: not so large that they break the memory promise, not so small that they cost more.

    for piece in bounded_batches(batch): ...                    a large batch, divided
    small = SmallBatches(); small.add(batch)*; small.rest()     small ones, put together

A batch costs each operator that it meets as much as a thousand rows, and two threads that exchange batches more;
arrays of a few rows are larger than their values. Limits: SmallBatches holds a batch back until enough have come.

Held by: tests/operators/test_larger_batches.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from engine.records.arrow_batch import batch_bytes
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.joined_batches import joined_batches

#: rows and bytes from which a batch is large enough for any operator
ROWS_MIN: Final = 16384
BYTES_MIN: Final = 512 << 10
#: number of waiting batches that are combined into one, which goes on waiting
HELD_MAX: Final = 64


def bounded_batches(
    batch: pa.RecordBatch,
    rows_max: int = BATCH_ROWS_MAX,
    size_bytes: int | None = None,
    bytes_max: int = BATCH_BYTES_MAX,
) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch, each within the limits of rows and (about) bytes, never less than one row.

    Args: size_bytes: of the batch, where they are known; bytes_max: of a slice.
    """
    rows = batch.num_rows
    if rows == 0:
        return
    row_bytes = max(1, (batch_bytes(batch) if size_bytes is None else size_bytes) // rows)
    step = max(1, min(rows_max, bytes_max // row_bytes))
    if rows <= step:
        yield batch
        return
    for start in range(0, rows, step):
        yield batch.slice(start, step)


class SmallBatches:
    """Puts small batches together; the rows keep their order.

    Args: rows_min: enough for the first one, later ones are larger, up to rows_enough; bytes_min: a batch of so many is
    large enough. What is put together has less than twice as many.
    """

    def __init__(self, rows_min: int | None = None, bytes_min: int = BYTES_MIN, rows_enough: int = ROWS_MIN) -> None:
        self._rows_min = rows_enough if rows_min is None else rows_min
        self._rows_enough = rows_enough
        self._bytes_min = bytes_min
        self._held: list[pa.RecordBatch] = []
        self._rows = 0
        self._size_bytes = 0

    def add(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Take a batch; return those that are large enough, which are the caller's alone."""
        rows, size_bytes = batch.num_rows, batch_bytes(batch)
        held = self._held
        if held and not batch.schema.equals(held[0].schema):  # one as codes of a dictionary, one plain
            return [*self.rest(), *self.add(batch)]
        if rows >= self._rows_min or size_bytes >= self._bytes_min:
            ready = [*self.rest(), batch] if held else [batch]
        else:
            held.append(batch)
            self._rows += rows
            self._size_bytes += size_bytes
            if self._rows < self._rows_min and self._size_bytes < self._bytes_min:
                if len(held) == HELD_MAX:
                    self._held = [joined_batches(held)]
                return []
            ready = self.rest()
        if self._rows_min < self._rows_enough:
            self._rows_min = min(2 * max(self._rows_min, ready[-1].num_rows), self._rows_enough)
        return ready

    def shrink(self) -> None:
        """Reduce the rows of the next batch: the last one took long."""
        self._rows_min = max(1, self._rows_min // 4)

    def rest(self) -> list[pa.RecordBatch]:
        """Return the held rows as one batch, and hold none afterwards."""
        held, self._held, self._rows, self._size_bytes = self._held, [], 0, 0
        return held if len(held) < 2 else [joined_batches(held)]
