"""AttachedColumn: rows wait in the task while a function makes a column for them from some of their values.

    rows.keep(batch) -> the columns that the function is given         rows.attached(result) -> batches with the column

Only what the function is given goes to the worker. It returns one value for each row, in order, in batches of other
sizes than those that it was given.

Held by: tests/integration/test_udfs.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa


class AttachedColumn:
    """The rows on their way. ``schema``: that of the rows with their new column, which is the last one."""

    def __init__(self, arguments: Sequence[str], schema: pa.Schema) -> None:
        self._arguments = list(arguments)
        self._schema = schema
        self._waiting: deque[pa.RecordBatch] = deque()
        #: rows of the first one that have gone
        self._start = 0

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Have rows wait; return what the function is given of them."""
        self._waiting.append(batch)
        return batch.select(self._arguments)

    def attached(self, result: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows whose values have come, with these."""
        column, done = result.column(0), 0
        while done < len(column):
            batch, start = self._waiting[0], self._start
            count = min(batch.num_rows - start, len(column) - done)
            self._start += count
            if self._start == batch.num_rows:
                self._waiting.popleft()
                self._start = 0
            columns = [each.slice(start, count) for each in batch.columns]
            yield pa.RecordBatch.from_arrays([*columns, column.slice(done, count)], schema=self._schema)
            done += count
