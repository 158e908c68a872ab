"""BlockingPartition: a result that is kept until it is released, and read any number of times after ``finish``.

    request_buffer() ─► add(buffer, index)* ─► finish() ─► create_view(...)* ─► release()

The data lies in buffers of the pool until they are needed elsewhere, then all of it in one file (``blocking_data``).
They are needed by the producer itself when its pool is empty, or by another pool that has fewer than it may. A
broadcast is stored once and every view reads that one.

Source: Flink's BoundedBlockingResultPartition and SortMergeResultPartition.
"""

from __future__ import annotations

import contextlib
import functools
from array import array
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.closing import close_all
from engine.errors import PartitionReleasedError, SpillError
from engine.exchange.blocking_data import BlockingData
from engine.exchange.partition_file import PartitionFile, partition_identity
from engine.exchange.partition_life import PartitionLife
from engine.exchange.result_partition import PagePartition
from engine.fault_points import reach
from engine.graph.packed_sizes import packed_sizes
from engine.graph.subpartition_share import WHOLE

if TYPE_CHECKING:
    from engine.exchange.buffer_pool import Buffer, LocalBufferPool
    from engine.exchange.read_ahead import DiskReaders
    from engine.exchange.ready_queue import ReadyQueue
    from engine.exchange.subpartition_view import SubpartitionView
    from engine.graph.deployment import ResultPartitionDescriptor
    from engine.ids import ResultPartitionId
    from engine.iomanager.disk_limit import DiskShare


class PartitionFileSpace(Protocol):
    """Chooses where files of BLOCKING partitions lie."""

    def partition_path(self, name: str, need_bytes: int = 0, full: Collection[Path] = ()) -> Path:
        """Return a path of that name in the folder with most free space that is not full, or raise DiskFullError."""

    def share(self, path: Path) -> DiskShare:
        """Return the share that the bytes of a file at this path are taken from."""


class BlockingPartition(PagePartition):
    """Pages of rows of all subpartitions, in memory or in one file.

    Args:
        descriptor: identity, type, number of subpartitions.
        pool: where its buffers come from; closed with the partition.
        space: where it spills to; None: nowhere.
    """

    def __init__(
        self, descriptor: ResultPartitionDescriptor, pool: LocalBufferPool, space: PartitionFileSpace | None = None
    ) -> None:
        self.descriptor = descriptor
        self.life = PartitionLife(descriptor.id)
        self.pool = pool
        self.total_buffers = 0
        self.total_bytes = 0
        self.rows = 0
        stored_count = 1 if descriptor.partitioner.kind == "BROADCAST" else descriptor.subpartition_count
        self._stored_bytes = array("Q", bytes(8 * stored_count))
        # Not a method: data that knows its partition would be garbage for the collector, with all that the task made.
        self.data = BlockingData(stored_count, functools.partial(_new_file, descriptor.id, space, stored_count))
        pool.set_owner(self._release_memory)

    @property
    def stored_count(self) -> int:
        """Subpartitions that are stored: one of a broadcast."""
        return len(self._stored_bytes)

    @property
    def subpartition_bytes(self) -> bytes:
        """Bytes of each stored subpartition, packed (``engine.graph.packed_sizes``)."""
        return packed_sizes(self._stored_bytes)

    @property
    def file_bytes(self) -> int:
        """Bytes of the file, 0 while the data is in memory."""
        return self.data.file_bytes

    @property
    def blocked_ns(self) -> int:
        """Nanoseconds that the producer has waited for buffers."""
        return self.pool.blocked_ns

    def request_buffer(self, timeout_ms: int = -1) -> Buffer | None:
        """Return a buffer of the pool, or None when none came free in time; spills to get one."""
        with self.life:
            buffer = self.pool.request(0)
            if buffer is None and self.data.spill():
                buffer = self.pool.request(0)
            if buffer is None and timeout_ms != 0:
                buffer = self.pool.request(timeout_ms)
        return buffer

    def add(self, buffer: Buffer, subpartition_index: int) -> None:
        """Store a buffer; it is taken in any case. Never waits."""
        size = buffer.size
        with self.life:
            self.data.add(buffer, subpartition_index)
        self._stored_bytes[subpartition_index] += size
        self.total_buffers += 1
        self.total_bytes += size

    def finish(self) -> None:
        """End production: the data can be read from here on."""
        with self.life:
            self.data.finish()
        reach("partition.stored")
        self.life.finish()
        if not self.pool.is_closed:
            self.pool.set_required(0)  # from now on partitions that are still produced may take its buffers

    def drop(self, error: BaseException | None) -> None:
        """Give buffers back and remove the files; readers hear of the error or of the release."""
        close_all([self.pool.close, self.data.release if error is None else functools.partial(self.data.fail, error)])

    def create_view(
        self,
        subpartition_index: int,
        listener: ReadyQueue,
        channel: int,
        disk: DiskReaders | None = None,
        part: tuple[int, int] = WHOLE,
    ) -> SubpartitionView:
        """Return a reader of a subpartition or a part of it; see ResultPartition."""
        self.check_view(subpartition_index, part)
        return self.data.open_view(min(subpartition_index, self.stored_count - 1), listener, channel, disk, part)

    def _release_memory(self, _count: int) -> None:
        """Spill because another pool needs the buffers. Its owner sees no error: that comes with our own next spill."""
        with contextlib.suppress(SpillError, PartitionReleasedError):
            self.data.spill()


def _new_file(partition: ResultPartitionId, space: PartitionFileSpace | None, stored_count: int) -> PartitionFile:
    if space is None:
        raise SpillError(f"partition {partition} has nowhere to spill to")
    other_path = functools.partial(space.partition_path, f"{partition}.shuffle.data")
    return PartitionFile(other_path(), partition_identity(partition), stored_count, other_path, space.share)
