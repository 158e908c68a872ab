"""PipelinedPartition: a result that is consumed while it is produced, once, and never stored.

    request_buffer() ─► add(buffer, index)*    pages of rows; the producer waits for its next buffer
                        add_all(pages)*        several of them, whose consumers are woken afterwards
                        add_batch(batch, ...)* batches by reference; the producer waits for room in a queue
    finish() ─► each consumer reads its queue to the end ─► on_consumed_subpartition()* ─► released with the last one

    producer ─► ┌ queue 0 ┐ ─► consumer 0          pending references: subpartitions not consumed yet
                └ queue 1 ┘ ─► consumer 1

Source: Flink's PipelinedResultPartition, ReleaseOnConsumptionResultPartition.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.errors import IllegalTransitionError
from engine.exchange.partition_life import PartitionLife
from engine.exchange.pipelined_subpartition import PipelinedSubpartition, add_pages, pass_batch
from engine.exchange.result_partition import PagePartition
from engine.graph.subpartition_share import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from engine.exchange.buffer_pool import Buffer, LocalBufferPool
    from engine.exchange.read_ahead import DiskReaders
    from engine.exchange.ready_queue import ReadyQueue
    from engine.exchange.subpartition_view import SubpartitionView
    from engine.graph.deployment import ResultPartitionDescriptor
    from engine.ids import ResultPartitionId


class PipelinedPartition(PagePartition):
    """One queue per subpartition, each for one consumer.

    Args:
        descriptor: identity, type, number of subpartitions.
        pool: where its buffers come from; closed with the partition.
    """

    def __init__(self, descriptor: ResultPartitionDescriptor, pool: LocalBufferPool) -> None:
        self.descriptor = descriptor
        self.life = PartitionLife(descriptor.id)
        self.pool = pool
        self.total_buffers = 0
        self.total_bytes = 0
        self.rows = 0
        #: one for each subpartition
        self.queues = tuple(PipelinedSubpartition(index) for index in range(descriptor.subpartition_count))
        self._lock = threading.Lock()
        #: True while the producer waits until all consumers have let go of a large batch; read by any thread
        self.is_held = False
        self._takes_batches = False
        self._pending_references = descriptor.subpartition_count  # guarded by: self._lock
        self._when_consumed: Callable[[ResultPartitionId], None] | None = None

    @property
    def blocked_ns(self) -> int:
        """Nanoseconds that the producer has waited for buffers or for consumers of batches."""
        waited_ns = sum(queue.blocked_ns for queue in self.queues) if self._takes_batches else 0
        return self.pool.blocked_ns + waited_ns

    @property
    def is_waiting(self) -> bool:
        """Whether the producer waits for a buffer, or for consumers of batches; read by any thread."""
        return self.pool.is_waiting or self.is_held or any(queue.is_awaited for queue in self.queues)

    def full_subpartitions(self) -> list[int]:
        """Return the subpartitions with elements that their consumers have not taken yet, or are at work on."""
        if self.is_held:
            return list(range(len(self.queues)))
        awaited = [queue.index for queue in self.queues if queue.is_awaited]
        return awaited or [queue.index for queue in self.queues if queue.data_count]

    # ------------------------------------------------------------------------------------------------ producer's side

    def request_buffer(self, timeout_ms: int = -1) -> Buffer | None:
        """Return a buffer of the pool, or None when none came free in time."""
        with self.life:
            return self.pool.request(timeout_ms)

    def add(self, buffer: Buffer, subpartition_index: int) -> None:
        """Add a buffer to a subpartition; it is taken in any case. Never waits."""
        size = buffer.size
        with self.life:
            self.queues[subpartition_index].add_buffer(buffer)
        self.total_buffers += 1
        self.total_bytes += size

    def add_all(self, pages: list[tuple[Buffer, int]]) -> None:
        """Add buffers, each with its subpartition, and take them out of the list. Never waits."""
        sizes = [buffer.size for buffer, _ in pages]
        try:
            with self.life:
                add_pages(self.queues, pages)
        finally:
            taken = len(sizes) - len(pages)
            self.total_buffers += taken
            self.total_bytes += sum(sizes[:taken])

    def add_batch(self, batch: pa.RecordBatch, size_bytes: int) -> None:
        """Add a batch by reference to all subpartitions; waits while the queue of one is full."""
        self._takes_batches = True
        with self.life:
            pass_batch(self.queues, batch, size_bytes)
        self.total_buffers += len(self.queues)
        self.total_bytes += size_bytes * len(self.queues)

    def finish(self) -> None:
        """End production: END_OF_PARTITION goes to every subpartition."""
        self.life.finish()
        with self.life:
            for queue in self.queues:  # the last consumer may release the partition from here on
                queue.finish()
        if not self.pool.is_closed:
            self.pool.set_required(0)  # from now on partitions that are still produced may take its buffers

    def drop(self, error: BaseException | None) -> None:
        """Drop what is queued and close the pool; readers hear of the error or of the release."""
        ends = [queue.release if error is None else functools.partial(queue.fail, error) for queue in self.queues]
        close_all([self.pool.close, *ends])

    # ------------------------------------------------------------------------------------------------ consumer's side

    def create_view(
        self,
        subpartition_index: int,
        listener: ReadyQueue,
        channel: int,
        _disk: DiskReaders | None = None,
        part: tuple[int, int] = WHOLE,
    ) -> SubpartitionView:
        """Return the one reader of a subpartition; see ResultPartition."""
        self.check_view(subpartition_index, part)
        if part != WHOLE:
            raise IllegalTransitionError(f"partition {self.id} is PIPELINED: its subpartitions are read whole")
        queue = self.queues[subpartition_index]
        queue.attach(listener, channel)
        return PipelinedView(self, queue)

    def when_consumed(self, release: Callable[[ResultPartitionId], None]) -> None:
        """Have this release the partition when all consumers have read it."""
        self._when_consumed = release

    def on_consumed_subpartition(self) -> None:
        """Count one consumed subpartition; the last one releases the partition. No effect when released.

        Raises:
            IllegalTransitionError: there were as many calls as subpartitions before.
        """
        with self._lock:
            if self._pending_references == 0:
                raise IllegalTransitionError("All references released.")
            if self.life.is_gone:
                return
            self._pending_references -= 1
            if self._pending_references > 0:
                return
        if self._when_consumed is not None:
            self._when_consumed(self.id)
        else:
            self.release()


class PipelinedView:
    """The one reader of a PIPELINED subpartition."""

    __slots__ = ("_is_consumed", "_partition", "_queue", "poll", "poll_pages")

    def __init__(self, partition: PipelinedPartition, queue: PipelinedSubpartition) -> None:
        self._partition = partition
        self._queue = queue
        self.poll = queue.poll
        self.poll_pages = queue.poll_pages
        self._is_consumed = False

    def backlog(self) -> int:
        """Return the number of queued elements with data."""
        return self._queue.data_count

    def consumed(self) -> None:
        """Count the subpartition as consumed."""
        self._is_consumed = True
        self._partition.on_consumed_subpartition()

    def release(self) -> None:
        """Stop reading; an unread rest is dropped, which lets a waiting producer go on to its error."""
        if not self._is_consumed:
            self._queue.release()
