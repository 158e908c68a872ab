"""WaitingRows: a function is given the columns that it uses; its rows wait in the task, whole.

    rows = WaitingRows(columns, is_filter)         columns: those that the worker has asked for, () all of them
    rows.given(batch) -> batch for the worker      the batch waits
    rows.results(batch) -> batches                 of a filter: the rows for which its function was true; where failures
                                                   are collected, with the rows for which it failed; else as it came
    rows.row_at(position) -> Row | None            whole, of the current batch: for the error of a function that failed
    rows.done()                                    the worker is done with the current batch

What a row costs on its way to a worker and back is the bytes of its columns, copied twice each way. A filter's rows do
not come back at all, but one bit of each. Very wide batches of other functions do not wait: their rows are shown with
the columns that the function uses.

Held by: tests/functions/test_waiting_rows.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa

from engine.functions.failed_inputs import with_inputs
from engine.functions.row import Row, RowsAt
from engine.records.kept_rows import kept_rows
from engine.records.wide_rows import WIDE_BYTES


class WaitingRows:
    """The batches that are at the worker, in order. Thread: the task's."""

    def __init__(
        self, columns: Sequence[str] = (), is_filter: bool = False, collecting: pa.Schema | None = None
    ) -> None:
        self._columns = list(columns)
        self._is_filter = is_filter
        #: schema of results with collected failures; None: these are not collected
        self._collecting = collecting
        self._batches: deque[pa.RecordBatch | None] = deque()

    def given(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep a batch that is needed again; return the part of it that the worker gets."""
        is_needed = self._is_filter or self._collecting or (self._columns and batch.nbytes < WIDE_BYTES)
        self._batches.append(batch if is_needed else None)
        return batch.select(self._columns) if self._columns else batch

    def results(self, result: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a result of the current batch stands for; a filter's result is a column of booleans."""
        batch = self._batches[0] if self._batches else None
        if self._is_filter:
            self._batches[0] = None
            assert batch is not None, "one result for each batch"
            yield kept_rows(batch, result.column(0))
        elif self._collecting is not None:
            assert batch is not None, "it waits for all its results"
            yield from with_inputs(result, batch, self._collecting)
        else:
            yield result

    def row_at(self, position: int) -> Row | None:
        """Return a row of the current batch; None where it does not wait, or there is no such row."""
        batch = self._batches[0] if self._batches else None
        return None if batch is None or position < 0 else RowsAt(batch, (position,))[0]

    def done(self) -> None:
        """Go on to the next batch."""
        self._batches.popleft()
