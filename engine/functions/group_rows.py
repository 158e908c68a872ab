"""Groups in a stream of sorted batches: the rows of one group after another, none of them held.

    groups = GroupedRows(batches, views)     batches carry GROUP_START: 0, or what begins at this row
    while groups.next_group():
        for row in groups.rows(0): ...       on demand; what is not read is skipped by the next ``next_group``

    pairs = PairedGroups(batches, views)     two inputs sorted together: GROUP_START is NEW_KEY, or NEW_SIDE where
    while pairs.next_group():                the right rows of a key begin, and the column SIDE says which side it is
        fn(pairs.rows(LEFT), pairs.rows(RIGHT))

A group may be larger than memory: it travels batch by batch. Group boundaries are found by the task, which knows
when keys are equal; nothing here compares values. A view is the columns that rows of one side have, and their names.

In a group left rows come before right ones. Who reads right rows first makes the left ones wait: they are kept, in
memory up to KEPT_BYTES_MAX and in a file without a name beyond, and read from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from engine.functions.row import Row, rows_of, taken_rows
from engine.records.arrow_functions import pc

#: int8 column: what begins at a row
GROUP_START = "__group_start"
NEW_SIDE, NEW_KEY = 1, 2
#: int8 column: 0 left, 1 right
SIDE = "__side"
LEFT, RIGHT = 0, 1

KEPT_BYTES_MAX = 8 << 20


class View(NamedTuple):
    """The columns of a batch that make up the rows of one side."""

    names: tuple[str, ...]
    columns: tuple[int, ...]

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the view of a batch."""
        return batch.select(list(self.columns)).rename_columns(list(self.names))


class GroupedRows:
    """Cuts a stream of batches into groups of neighbouring rows."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], views: Sequence[View], start_columns: Sequence[str] = ()
    ) -> None:
        self._batches = batches
        self._views = views
        self._start_columns = start_columns
        #: of each start column its values where groups begin
        self._at_starts: list[list[Any]] = []
        self._batch: pa.RecordBatch | None = None
        #: batches taken so far
        self._loaded = 0
        self._size = 0
        self._rows: list[Sequence[Row] | None] = [None] * len(views)
        #: where groups begin in the batch, then its size; the group at hand ends at ``_starts[_next]``
        self._starts = [0]
        self._next = 0
        self._position = 0
        #: number of the group at hand, from 1
        self.number = 0
        self.has_ended = False
        #: the row read last, for error messages
        self.current: Row | None = None

    def next_group(self) -> bool:
        """Skip what is left of the group; return whether there is another one."""
        while not self.has_ended:
            self._position = self._starts[self._next]
            if self._position < self._size:
                self._next += 1
                self.number += 1
                return True
            self._load()
        return False

    def value_at_start(self, start_column: int) -> Any:
        """Return the value of a start column where the group begins; right after ``next_group``."""
        return self._at_starts[start_column][self._next - 1]

    def rows(self, view: int, number: int) -> Iterator[Row]:
        """Yield what is left of group ``number`` in a view; ends when that is no longer the group at hand."""
        while number == self.number:
            loaded, end = self._loaded, self._starts[self._next]
            rows = self._rows_of(view) if self._position < end else ()
            # Between two rows somebody else may have gone on in this stream.
            while loaded == self._loaded and number == self.number and self._position < end:
                row = self.current = rows[self._position]
                self._position += 1
                if self._position == self._size:
                    # Nobody asks for more of it: what is very wide is not kept while the last row is used.
                    rows = ()
                    self._let_go()
                yield row
                del row
            if loaded != self._loaded or number != self.number:
                continue
            if end < self._size or not self._load():
                return

    def batches(self, view: int) -> Iterator[pa.RecordBatch]:
        """Yield what is left of the group at hand as batches of a view."""
        while True:
            end = self._starts[self._next]
            if self._position < end:
                assert self._batch is not None, "no group yet"
                part = self._batch.slice(self._position, end - self._position)
                self._position = end
                yield self._views[view].select(part)
            if end < self._size or not self._load():
                return

    def _rows_of(self, view: int) -> Sequence[Row]:
        rows = self._rows[view]
        if rows is None:
            assert self._batch is not None, "no group yet"
            rows = self._rows[view] = rows_of(self._views[view].select(self._batch))
        return rows

    def _let_go(self) -> None:
        self._batch = None
        self._rows = [None] * len(self._views)

    def _load(self) -> bool:
        """Take the next batch; the group at hand goes on in it unless one begins at its first row."""
        self._let_go()
        batch = None if self.has_ended else next(self._batches, None)
        self._batch = batch
        self._loaded += 1
        self._size = 0
        self._starts = []
        if batch is not None:
            self._size = batch.num_rows
            starts = pc.indices_nonzero(batch.column(GROUP_START))
            self._starts = starts.to_pylist()
            self._at_starts = [batch.column(name).take(starts).to_pylist() for name in self._start_columns]
        self._starts.append(self._size)
        self._next = self._position = 0
        self.has_ended = batch is None
        return batch is not None


class KeptBatches:
    """Batches that wait for being read: a few in memory, more in a file."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._batches: list[pa.RecordBatch] = []
        self._size_bytes = 0
        self._file: IO[bytes] | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch."""
        self._size_bytes += batch.nbytes
        if self._size_bytes <= KEPT_BYTES_MAX:
            self._batches.append(batch)
            return
        if self._writer is None:
            if self._folder:
                Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have removed it
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by close()
            self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
        self._writer.write_batch(batch)

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in order, each once."""
        while self._batches:
            yield self._batches.pop(0)
        if self._writer is None or self._file is None:
            return
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(pa.PythonFile(self._file, "r"))

    def close(self) -> None:
        """Give memory and file back."""
        self._batches.clear()
        if self._file is not None:
            self._file.close()
            self._file = None


class PairedGroups:
    """Cuts a stream of two inputs sorted together into pairs of groups with equal keys."""

    def __init__(self, batches: Iterator[pa.RecordBatch], views: tuple[View, View], folder: str | None = None) -> None:
        self._groups = GroupedRows(batches, views, (GROUP_START, SIDE))
        self._folder = folder
        self._pair = 0
        self._side = LEFT
        self._has_right = False
        self._is_ahead = False
        self._left_number = 0
        self._kept: KeptBatches | None = None

    @property
    def current(self) -> Row | None:
        """The row read last."""
        return self._groups.current

    def next_group(self) -> bool:
        """Skip what is left of the pair; return whether there is another one."""
        self.close()
        self._pair += 1
        groups = self._groups
        while self._is_ahead or groups.next_group():
            if self._is_ahead or groups.value_at_start(0) == NEW_KEY:
                self._is_ahead = False
                self._side = groups.value_at_start(1)
                self._has_right = self._side == RIGHT
                self._left_number = groups.number
                return True
        return False

    def rows(self, side: int) -> Iterator[Row]:
        """Return the rows of one side of the pair, an iterator that reads on demand."""
        if side == RIGHT:
            return self._right_rows(self._pair)
        return self._left_rows(self._pair) if self._side == LEFT else iter(())

    def _left_rows(self, pair: int) -> Iterator[Row]:
        if pair == self._pair:
            yield from self._groups.rows(LEFT, self._left_number)
        while pair == self._pair and self._kept is not None:
            row = next(self._kept_rows, None)
            if row is None:
                return
            self._groups.current = row
            yield row
            del row

    def _right_rows(self, pair: int) -> Iterator[Row]:
        if pair != self._pair:
            return
        if self._side == LEFT:
            self._reach_right()
        if self._has_right:
            yield from self._groups.rows(RIGHT, self._groups.number)

    def _reach_right(self) -> None:
        """Put the left rows that are not read yet aside, and go to the right ones if there are some."""
        for batch in self._groups.batches(LEFT):
            if self._kept is None:
                self._kept = KeptBatches(self._folder)
                self._kept_rows = taken_rows(self._kept.read())
            self._kept.add(batch)
        self._side = RIGHT
        if self._groups.next_group():
            self._has_right = self._groups.value_at_start(0) == NEW_SIDE
            self._is_ahead = not self._has_right

    def close(self) -> None:
        """Give back what is kept; idempotent."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
