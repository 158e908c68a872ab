"""BlockQueue: sorted rows between the first that a window function still needs and the last that has come.

    queue = BlockQueue(prepare, budget_bytes, space, force_spill)
    queue.add(batch, levels)          at the end, in order
    queue.block_at(row) -> RowBlock   from memory, or read again
    queue.shrink()                    spills what is beyond the budget, the last rows first
    queue.drop(row)                   forgets blocks whose rows are all before it
    queue.close()                     deletes what is left on disk; idempotent

    row   drop ──────────────────────────────────────────────► stop
          │ in memory │ in memory │ on disk │ on disk │ in memory │
                                   file 0 ...

Rows leave in the order in which they came, so the first ones stay in memory: they are wanted first. A block is written
once, as an Arrow IPC message in one block of a spill file with its checksum; FILE_BLOCKS of them share a file, which is
deleted when the last one is dropped. Readers keep their current block, so a pass over rows on disk reads
each block once for each function with its own place.

Memory: the budget, and a block or two for each reader. Values in Arrow's memory are not pages: the budget stands for
spare pages of the operator.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.window.row_block import RowBlock

if TYPE_CHECKING:
    from engine.iomanager.spill_file import SpillFile
    from engine.iomanager.spill_space import SpillSpace
    from engine.iomanager.spill_writer import SpillWriter

#: blocks in a file
FILE_BLOCKS: Final = 16
#: name of the column of levels on disk
_LEVELS: Final = "__levels"


class _File:
    """Blocks on disk, the last ones still being written."""

    def __init__(self, space: SpillSpace, number: int) -> None:
        self._space = space
        self._writer: SpillWriter | None = space.writer(f"window rows {number}", 64 << 10)
        self._file: SpillFile | None = None
        self.blocks = 0
        self.left = 0

    @property
    def is_open(self) -> bool:
        """Whether more blocks may come."""
        return self._writer is not None and self.blocks < FILE_BLOCKS

    def write(self, message: pa.Buffer) -> int:
        """Write a message as a block of its own and return its mark."""
        assert self._writer is not None, "the file is finished"
        mark = self._writer.mark_block()
        self._writer.write_bytes(memoryview(message).cast("B"))
        self.blocks += 1
        self.left += 1
        return mark

    def read(self, mark: int) -> bytes:
        """Return a message; ends writing."""
        if self._file is None:
            assert self._writer is not None, "the file is gone"
            self._file, self._writer = self._writer.finish(), None
        with self._file.reader(0, self._file.place(mark), 1) as reader:
            return next(reader)

    def drop_one(self) -> None:
        """Say that a block is not needed any more; with the last one the file goes."""
        self.left -= 1
        if self.left == 0:
            self.delete()

    def delete(self) -> None:
        """Remove the file; idempotent."""
        if self._writer is not None:
            self._writer.discard()
            self._writer = None
        if self._file is not None:
            self._file.delete()
            self._file = None


class _Entry:
    """A block: in memory, or where it is on disk."""

    __slots__ = ("block", "file", "mark", "size_bytes", "start")

    def __init__(self, start: int, block: RowBlock, size_bytes: int) -> None:
        self.start = start
        self.block: RowBlock | None = block
        self.size_bytes = size_bytes
        self.file: _File | None = None
        self.mark = 0


class BlockQueue:
    """Args: prepare: from a batch to the arrays that kernels read; budget_bytes: of batches in memory."""

    def __init__(
        self,
        prepare: Callable[[pa.RecordBatch], list[pa.Array]],
        budget_bytes: int,
        space: SpillSpace,
        *,
        force_spill: bool = False,
    ) -> None:
        self._prepare = prepare
        self._budget_bytes = 0 if force_spill else budget_bytes
        self._space = space
        self._entries: list[_Entry] = []
        self._starts: list[int] = []
        self._held_bytes = 0
        self._files_written = 0
        self._last_file: _File | None = None
        self._schema: pa.Schema | None = None
        #: row behind the last one that has come
        self.stop = 0
        #: True if no further rows will come
        self.has_ended = False

    def add(self, batch: pa.RecordBatch, levels: pa.Array) -> None:
        """Take the next rows (at least one)."""
        block = RowBlock(self.stop, batch, [*self._prepare(batch), levels])
        # columns that kernels read may be copies, and are counted as such
        entry = _Entry(self.stop, block, 2 * batch.nbytes + batch.num_rows)
        self._schema = batch.schema
        self._entries.append(entry)
        self._starts.append(self.stop)
        self._held_bytes += entry.size_bytes
        self.stop += batch.num_rows

    def block_at(self, row: int) -> RowBlock:
        """Return the block that holds a row, which has come and is not dropped."""
        entry = self._entries[bisect_right(self._starts, row) - 1]
        return entry.block or self._read(entry)

    def next_block(self, row: int) -> RowBlock | None:
        """Return the block that begins at a row; None when it has not come."""
        return self.block_at(row) if row < self.stop else None

    def shrink(self) -> None:
        """Write blocks to disk until the others are within the budget, the last ones first; one always stays."""
        index = len(self._entries) - 1
        while self._held_bytes > self._budget_bytes and index > 0:
            entry = self._entries[index]
            if entry.block is None:
                break  # those before were within the budget when this one was written
            self._spill(entry, entry.block)
            index -= 1

    def drop(self, row: int) -> None:
        """Forget blocks whose rows are all before a row."""
        count = max(0, bisect_right(self._starts, row) - 1)
        if row >= self.stop:
            count = len(self._entries)
        for entry in self._entries[:count]:
            if entry.block is not None:
                self._held_bytes -= entry.size_bytes
            if entry.file is not None:
                self._drop_block(entry.file)
        del self._entries[:count]
        del self._starts[:count]

    def close(self) -> None:
        """Delete what is on disk."""
        for file in {entry.file for entry in self._entries if entry.file is not None}:
            file.delete()
        self._entries.clear()
        self._starts.clear()
        self._last_file = None

    # ---- disk

    def _spill(self, entry: _Entry, block: RowBlock) -> None:
        if self._last_file is None or not self._last_file.is_open:
            self._last_file = _File(self._space, self._files_written)
            self._files_written += 1
        stored = block.batch.append_column(_LEVELS, block.levels_array())
        entry.mark = self._last_file.write(stored.serialize())
        entry.file = self._last_file
        entry.block = None
        self._held_bytes -= entry.size_bytes

    def _read(self, entry: _Entry) -> RowBlock:
        assert entry.file is not None, "a block is in memory or on disk"
        assert self._schema is not None, "there are rows"
        schema = self._schema.append(pa.field(_LEVELS, pa.uint8()))
        stored = pa.ipc.read_record_batch(pa.py_buffer(entry.file.read(entry.mark)), schema)
        batch = pa.RecordBatch.from_arrays(stored.columns[:-1], schema=self._schema)
        return RowBlock(entry.start, batch, [*self._prepare(batch), stored.column(stored.num_columns - 1)])

    def _drop_block(self, file: _File) -> None:
        file.drop_one()
        if file is self._last_file and file.left == 0:
            self._last_file = None
