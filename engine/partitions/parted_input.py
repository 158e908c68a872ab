"""PartedInput: the rows of one input, partitioned level by level.

    side = PartedInput(schema, keys, pool, space, partition_count)
    side.begin(level, page_limit)               empty partitions
    side.add(batch), side.take(batches), side.add_file(file)
    rows = side.parts.take(partition), side.write(partition, rows)
    files = side.end()                          what is in files; no page is held any more
    kept = side.loaded(file)                    the rows of a file, in pages; None: it has none
    side.close()                                always; idempotent

``router`` takes rows of pages past the decoder while there are partitions, once it was told to by ``begin_router``.

Invariants: rows of a key keep the order in which they came. Wide values lie with the space.

Held by: tests/window/test_partitioned_groups.py
Held by: tests/operators/test_partitioned_asof.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.closing import close_all
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.partitions.partition_files import PartitionFiles
from engine.partitions.partition_router import PartitionRouter
from engine.partitions.row_partitions import KeptRows, RowPartitions
from engine.records.row_codec import RowCodec


class TooLargeError(Exception):
    """Rows of a partition are more than pages hold, or wider ones."""


class PartedInput:
    """Args: schema: plain; keys: columns that rows are partitioned by; block_bytes: of the blocks of files."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[int],
        pool: PagePool,
        space: SpillSpace,
        partition_count: int,
        block_bytes: int,
    ) -> None:
        self.schema, self.pool, self.space = schema, pool, space
        self.partition_count = partition_count
        self._keys = keys
        self._codec = RowCodec(schema)
        self._codec.keep_outside(space)
        self.files = PartitionFiles(space, block_bytes)
        self.router = PartitionRouter(self._codec)
        self._parts: RowPartitions | None = None

    @property
    def parts(self) -> RowPartitions:
        """The partitions of the level."""
        assert self._parts is not None, "it has begun"
        return self._parts

    @property
    def has_begun(self) -> bool:
        """Whether there are partitions."""
        return self._parts is not None

    def begin(self, level: int, page_limit: int) -> None:
        """Make empty partitions, which hold so many pages, at least one each."""
        self._parts = self._new_parts(self.partition_count, level, page_limit)

    def _new_parts(self, count: int, level: int, page_limit: int) -> RowPartitions:
        return RowPartitions(self._codec, self._keys, self.pool, self.files, count, level, page_limit)

    def begin_router(self) -> None:
        """Make the ``router`` take rows of pages until the end."""
        self.router.begin(self.parts)

    def add(self, rows: pa.RecordBatch) -> None:
        """Partition rows, which are plain. Raises: SpillError, DiskFullError."""
        parts, position = self.parts, 0
        while (position := parts.add(rows, position)) < rows.num_rows:
            parts.spill_largest()

    def add_file(self, file: SpillFile) -> None:
        """Partition the rows of a file. Raises: CorruptBlockError, and as add."""
        with file.reader() as reader:
            self.parts.add_file(reader)

    def write(self, partition: int, rows: KeptRows) -> None:
        """Write rows that were taken to the file of their partition."""
        self.parts.put(partition, rows)
        self.parts.spill(partition)

    def end(self) -> list[SpillFile]:
        """Return the files of partitions that have one; what was not taken from memory is gone."""
        self.router.end()
        parts, self._parts = self.parts, None
        parts.finish()
        parts.close()
        return self.files.finish()

    def loaded(self, file: SpillFile) -> KeptRows | None:
        """Return the rows of a file in pages of the pool; None: it has none. Raises: TooLargeError: they do not fit."""
        if file.raw_bytes > self.pool.page_limit * self.pool.page_size:
            raise TooLargeError
        room = self._new_parts(1, 0, self.pool.page_limit)
        room.on_full(_refuse, _refuse)
        try:
            with file.reader() as reader:
                room.add_file(reader)
            return room.take(0)
        finally:
            room.close()

    def close(self) -> None:
        """Give pages and files back; idempotent."""
        self.router.end()
        parts, self._parts = self._parts, None
        close_all([*(() if parts is None else (parts.close,)), self.files.discard])


def _refuse(*_partition: int) -> None:
    raise TooLargeError
