"""Pairs of groups in a stream of sorted batches: the rows of one key after another, none of them held.

    pairs = PairedGroups(batches, views)     two inputs sorted together: GROUP_START is NEW_KEY, or NEW_SIDE where
    while pairs.next_group():                the right rows of a key begin, and the column SIDE says which side it is
        fn(pairs.rows(LEFT), pairs.rows(RIGHT))

What reads the groups of the stream is GroupedRows (row_reader.pyx). In a group left rows come before right ones. A
function that reads right rows first makes the left ones wait: they are kept, in memory up to KEPT_BYTES_MAX and in a
file without a name beyond, and read from there. Its bytes are asked of a ``Room``, an extent at a time. A disk that is
full, or fails, is no error of the function, whatever it does with what its rows raise.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final, Protocol

import pyarrow as pa

from engine.errors import DiskFullError, SpillError
from engine.functions.row import Row, View, taken_rows
from engine.functions.row_reader import GroupedRows

#: int8 column: the kind of group that begins at a row
GROUP_START = "__group_start"
NEW_SIDE, NEW_KEY = 1, 2
#: int8 column: 0 left, 1 right
SIDE = "__side"
LEFT, RIGHT = 0, 1

KEPT_BYTES_MAX = 8 << 20
#: bytes asked of a room at least
_EXTENT_BYTES = 1 << 20
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Room(Protocol):
    """The room that files have on a disk."""

    def reserve(self, size_bytes: int) -> None:
        """Take bytes before they are written."""
        ...

    def give_back(self, size_bytes: int) -> None:
        """Give bytes back that were taken."""
        ...


class KeptBatches:
    """Batches that wait for being read: a few in memory, more in a file."""

    def __init__(self, folder: str | None, room: Room | None) -> None:
        self._folder = folder
        self._room = room
        self._reserved_bytes = 0
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
        self._reserve(self._size_bytes - KEPT_BYTES_MAX)
        with self._at_disk():
            if self._writer is None:
                if self._folder:
                    Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)  # it may have been removed
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by close()
                self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
            self._writer.write_batch(batch)

    @contextlib.contextmanager
    def _at_disk(self) -> Iterator[None]:
        """Raise errors of the disk as the engine's. Raises: DiskFullError, SpillError."""
        try:
            yield
        except OSError as error:
            folder = self._folder or tempfile.gettempdir()
            text = (
                "rows that a function has not read yet, because it read the other side of their pair first, cannot be "
                f"kept in {folder}: {error.strerror or error}"
            )
            if error.errno in _FULL:
                raise DiskFullError(f"{text}; free some space or add a directory to io.tmp.dirs") from error
            raise SpillError(f"{text}; check the directories of io.tmp.dirs") from error

    def _reserve(self, size_bytes: int) -> None:
        """Make the room for the file at least that large."""
        if self._room is not None and size_bytes > self._reserved_bytes:
            more_bytes = max(size_bytes - self._reserved_bytes, _EXTENT_BYTES)
            self._room.reserve(more_bytes)
            self._reserved_bytes += more_bytes

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in order, each once."""
        while self._batches:
            yield self._batches.pop(0)
        if self._writer is None or self._file is None:
            return
        with self._at_disk():
            self._writer.close()
            self._file.seek(0)
            reader = pa.ipc.open_stream(pa.PythonFile(self._file, "r"))
        while True:
            with self._at_disk():
                batch = next(reader, None)
            if batch is None:
                return
            yield batch

    def close(self) -> None:
        """Give memory and file back."""
        self._batches.clear()
        if self._file is not None:
            with contextlib.suppress(OSError):  # of what was not written yet, for want of room
                self._file.close()
            self._file = None
        if self._room is not None and self._reserved_bytes:
            self._room.give_back(self._reserved_bytes)
            self._reserved_bytes = 0


class PairedGroups:
    """Cuts a stream of two inputs sorted together into pairs of groups with equal keys."""

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        views: tuple[View, View],
        folder: str | None = None,
        room: Room | None = None,
    ) -> None:
        self._groups = GroupedRows(batches, views, (GROUP_START, SIDE))
        self._folder = folder
        self._room = room
        self._pair = 0
        self._side = LEFT
        self._has_right = False
        self._is_ahead = False
        self._left_number = 0
        self._kept: KeptBatches | None = None
        self._error: BaseException | None = None

    @property
    def current(self) -> Row | None:
        """The row read last."""
        return self._groups.current

    @property
    def place(self) -> Sequence[Row | None]:
        """The place of that row."""
        return (self._groups.current,)

    @property
    def error(self) -> BaseException | None:
        """The error that ended the input early."""
        return self._error or self._groups.error

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
            try:
                row = next(self._kept_rows, None)
            except BaseException as error:
                self._error = error
                raise
            if row is None:
                return
            self._groups.set_current(row)
            yield row
            del row

    def _right_rows(self, pair: int) -> Iterator[Row]:
        if pair != self._pair:
            return
        if self._side == LEFT:
            try:
                self._reach_right()
            except BaseException as error:
                self._error = error
                raise
        if self._has_right:
            yield from self._groups.rows(RIGHT, self._groups.number)

    def _reach_right(self) -> None:
        """Put the left rows that are not read yet aside, and go to the right ones if there are some."""
        for batch in self._groups.batches(LEFT):
            if self._kept is None:
                self._kept = KeptBatches(self._folder, self._room)
                self._kept_rows = taken_rows(self._kept.read())
            self._kept.add(batch)
        self._side = RIGHT
        if self._groups.next_group():
            self._has_right = self._groups.value_at_start(0) == NEW_SIDE
            self._is_ahead = not self._has_right

    def close(self) -> None:
        """Release what is kept; idempotent."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
