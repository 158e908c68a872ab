"""GroupedRows: rows in memory whose groups are few, each batch of them group by group.

    batch = GroupedBatch.of(rows, key_count)        in any thread; keys are the first columns
    held.add(batch)
    runs = held.runs()                              where the rows of each group are
    held.column(index)                              a column that is no key, batch by batch
    rows, order, bounds = held.in_order(runs)       all rows, and their order as ``group_order`` has it

    batches      a a a b b c │ a c c c │ b b c c c       rows are moved within their batch, which the caches hold
    firsts       a b c       │ a c     │ b c             these are grouped, and all rows of each run follow them

To move them once more would be to read and write them run by run, so they are only listed. That is worth it while runs
are long (``are_long``). Of keys each run has one row. Rows of a group keep the order in which they came, groups that of
their first rows.

Held by: tests/window/test_grouped_rows.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.window.group_order import group_order, order_of_runs

#: average of rows from which runs are long
RUN_ROWS_MIN: Final = 16


class GroupedBatch(NamedTuple):
    """Rows group by group: ``keys`` of each group, and the other columns of all rows.

    ``bounds``: where each group begins, and the end of the last one.
    """

    schema: pa.Schema
    keys: list[pa.Array]
    columns: list[pa.Array]
    bounds: pa.Array

    @classmethod
    def of(cls, rows: pa.RecordBatch, key_count: int) -> GroupedBatch:
        """Put the rows of a batch group by group."""
        order, bounds = group_order(rows, key_count)
        firsts = pc.take(order, bounds.slice(0, len(bounds) - 1))
        keys = [pc.take(key, firsts) for key in rows.columns[:key_count]]
        columns = [pc.take(column, order, boundscheck=False) for column in rows.columns[key_count:]]
        return cls(rows.schema, keys, columns, bounds)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return int(self.bounds[len(self.bounds) - 1].as_py())

    @property
    def size_bytes(self) -> int:
        """Bytes that are held."""
        return sum(column.nbytes for column in (*self.keys, *self.columns))

    def rows(self) -> pa.RecordBatch:
        """Return the rows with their keys."""
        runs = pa.ListArray.from_arrays(pc.cast(self.bounds, pa.int32()), pa.nulls(self.row_count))
        groups = pc.list_parent_indices(runs)
        keys = [pc.take(key, groups) for key in self.keys]
        return pa.RecordBatch.from_arrays([*keys, *self.columns], schema=self.schema)


class Runs(NamedTuple):
    """Runs of rows of one group, in the order of these.

    ``keys``: of each group; ``order``, ``bounds``: runs as ``group_order`` has rows; ``starts``: row at which each
    begins, and the end of the last one.
    """

    keys: list[pa.Array]
    order: pa.Array
    bounds: pa.Array
    starts: pa.Array


class GroupedRows:
    """Rows of batches of one schema."""

    def __init__(self) -> None:
        self._batches: list[GroupedBatch] = []
        self._run_count = 0
        #: number of rows that are held
        self.row_count = 0

    @property
    def are_long(self) -> bool:
        """Whether runs of rows of one group are long."""
        return self._run_count * RUN_ROWS_MIN <= self.row_count

    def add(self, batch: GroupedBatch) -> None:
        """Take rows."""
        self._batches.append(batch)
        self._run_count += len(batch.bounds) - 1
        self.row_count += batch.row_count

    def taken(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows batch by batch; none are held any more, and of what is taken only the last batch."""
        batches, self._batches, self._run_count, self.row_count = self._batches[::-1], [], 0, 0
        while batches:
            yield batches.pop().rows()

    def column(self, index: int) -> pa.ChunkedArray:
        """Return a column that is no key, counted from the first of these."""
        return pa.chunked_array([batch.columns[index] for batch in self._batches])

    def runs(self) -> Runs:
        """Return the runs; there are rows."""
        starts, row = list[pa.Array](), 0
        for batch in self._batches:
            starts.append(pc.add(batch.bounds.slice(0, len(batch.bounds) - 1), row))
            row += batch.row_count
        keys = [pa.concat_arrays(parts) for parts in zip(*(batch.keys for batch in self._batches), strict=True)]
        order, bounds = group_order(pa.RecordBatch.from_arrays(keys, [str(key) for key in range(len(keys))]), len(keys))
        firsts = pc.take(order, bounds.slice(0, len(bounds) - 1))
        starts.append(pa.array([row], pa.int64()))
        return Runs([pc.take(key, firsts) for key in keys], order, bounds, pa.concat_arrays(starts))

    def in_order(self, runs: Runs) -> tuple[pa.RecordBatch, pa.Array, pa.Array]:
        """Return (rows, order, bounds); none are held any more."""
        return pa.concat_batches(list(self.taken())), *order_of_runs(runs.order, runs.bounds, runs.starts)
