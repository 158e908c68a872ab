"""ResultPartition: what one attempt produced for one data set, as it is produced, consumed and released.

    new_partition(descriptor, ...) ─► request_buffer() ─► add(buffer, index)* ─► finish()             producer
    create_view(index, listener, channel) ─► view.poll()* ─► view.consumed() ─► view.release()        consumers
    release() | fail(error) | cancel()                                                               any thread

    HeldPartition                  life cycle, views
      ├─ ResultPartition           counters
      │    ├─ PagePartition          written in pages of rows, from a pool of buffers
      │    │    ├─ PipelinedPartition   a queue for each subpartition, read once and released by its last consumer
      │    │    └─ BlockingPartition    kept in memory or in one file, readable after finish, any number of times
      │    └─ SortedPartition        kept as sorted runs, read by ranges of keys
      └─ SidePartition             a few batches for any number of readers

Invariants
    a partition holds no buffer itself: its subpartitions do; all draw on one pool;
    the number of subpartitions never changes; a buffer that is not taken goes back to the pool;
    counters are exact: every buffer and batch taken by a subpartition counts once.

Source: Flink's ResultPartition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.exchange.partition_life import PartitionLife, PartitionState
from engine.graph.subpartition_share import PARTS, WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.exchange.buffer_pool import Buffer, LocalBufferPool
    from engine.exchange.read_ahead import DiskReaders
    from engine.exchange.ready_queue import ReadyQueue
    from engine.exchange.subpartition_view import SubpartitionView
    from engine.graph.deployment import ResultPartitionDescriptor
    from engine.ids import ResultPartitionId


class HeldPartition:
    """A partition that a process holds for readers: its life, and views of it."""

    life: PartitionLife

    @property
    def id(self) -> ResultPartitionId:
        """Identity: data set and attempt."""
        return self.life.id

    @property
    def state(self) -> PartitionState:
        """The state of the partition."""
        return self.life.state

    def fail(self, error: BaseException) -> None:
        """Drop the data; every consumer gets ProducerFailedError with this cause. No effect after finish or release."""
        if self.life.move(PartitionState.FAILED):
            self.drop(error)

    def cancel(self) -> None:
        """Release, so that a producer that waits or writes gets TaskCancelledError. Thread: any."""
        if self.life.move(PartitionState.CANCELLED):
            self.drop(None)

    def release(self) -> None:
        """Free memory and files; waiting threads are woken. Idempotent. Thread: any."""
        if self.life.move(PartitionState.RELEASED):
            self.drop(None)

    def drop(self, error: BaseException | None) -> None:
        """Drop all data, for the reason that ``life`` has; an error is the producer's. Each part is idempotent."""

    def when_consumed(self, release: Callable[[ResultPartitionId], None]) -> None:
        """Have this release the partition when all consumers have read it."""
        del release  # what is kept is not released by reading it

    def create_view(
        self,
        subpartition_index: int,
        listener: ReadyQueue,
        channel: int,
        disk: DiskReaders | None = None,
        part: tuple[int, int] = WHOLE,
    ) -> SubpartitionView:
        """Return a reader of one subpartition; ``listener`` gets ``channel`` pushed when there is something to read.

        With ``disk``, which reads files, ``poll`` never waits for one. ``part``, [begin, end) of PARTS, is what is read
        of a BLOCKING subpartition.

        Raises:
            PartitionReleasedError: too late.
            IllegalTransitionError: a PIPELINED subpartition has a reader already, or it was asked for a part of it; a
                sorted result has no subpartitions.
            IndexError: there is no such subpartition or part.
        """
        raise NotImplementedError


class ResultPartition(HeldPartition):
    """One result partition in the process of its producer."""

    #: identity, type, number of subpartitions
    descriptor: ResultPartitionDescriptor
    #: number of rows, from its writer
    rows: int
    total_bytes: int

    @property
    def subpartition_count(self) -> int:
        """Number of subpartitions, fixed."""
        return self.descriptor.subpartition_count

    @property
    def subpartition_bytes(self) -> bytes:
        """Bytes of each stored subpartition, packed; nothing where they are not stored apart."""
        return b""

    @property
    def spilled_bytes(self) -> int:
        """Bytes that the task spilled in here; what it keeps for consumers is its result, ``file_bytes``."""
        return 0

    @property
    def file_bytes(self) -> int:
        """Bytes of the file that keeps the result, 0 while it is in memory."""
        return 0

    @property
    def blocked_ns(self) -> int:
        """Nanoseconds that the producer has waited for buffers or for consumers of batches."""
        return 0

    @property
    def buffers_peak(self) -> int:
        """Most buffers that were out at a time."""
        return 0

    @property
    def is_waiting(self) -> bool:
        """Whether the producer waits for a buffer; read by any thread."""
        return False

    def full_subpartitions(self) -> list[int]:
        """Return the subpartitions with elements that their consumers have not taken yet."""
        return []

    def check_producing(self) -> None:
        """Raise what keeps the producer from writing: cancelled, released, failed or finished."""
        self.life.check_producing()

    def finish(self) -> None:
        """End production."""


class PagePartition(ResultPartition):
    """A partition that is written in pages of rows: what a RecordWriter needs."""

    #: source of its buffers; closed with the partition
    pool: LocalBufferPool
    total_buffers: int

    @property
    def stored_count(self) -> int:
        """Subpartitions that a broadcast is written to."""
        return self.subpartition_count

    @property
    def buffers_peak(self) -> int:
        """Most buffers that were out at a time."""
        return self.pool.peak_count

    @property
    def is_waiting(self) -> bool:
        """Whether the producer waits for a buffer; read by any thread."""
        return self.pool.is_waiting

    def request_buffer(self, timeout_ms: int = -1) -> Buffer | None:
        """Return a buffer of the pool, or None when none came free in time."""

    def add(self, buffer: Buffer, subpartition_index: int) -> None:
        """Add a buffer to a subpartition; it is taken in any case. Never waits.

        Raises:
            IllegalTransitionError, PartitionReleasedError, TaskCancelledError: not producing any more; the buffer went
                back to its pool.
        """

    def add_all(self, pages: list[tuple[Buffer, int]]) -> None:
        """Add buffers, each with its subpartition, and take them out of the list. Never waits.

        Raises: as ``add``; what is still in the list is the caller's.
        """
        taken = 0
        try:
            for buffer, index in pages:
                taken += 1
                self.add(buffer, index)
        finally:
            del pages[:taken]

    def broadcast(self, buffer: Buffer) -> None:
        """Add shares of a buffer to all subpartitions; it is taken in any case."""
        count = self.stored_count
        shares = [buffer, *(buffer.share() for _ in range(count - 1))]
        for index in range(count):
            try:
                self.add(shares[index], index)
            except BaseException:
                for rest in shares[index + 1 :]:
                    rest.recycle()
                raise

    def check_view(self, subpartition_index: int, part: tuple[int, int]) -> None:
        """Raise what is wrong with a request to read a part of a subpartition."""
        self.life.check_readable()
        if not 0 <= subpartition_index < self.subpartition_count:
            raise IndexError(f"partition {self.id} has no subpartition {subpartition_index}")
        if not 0 <= part[0] <= part[1] <= PARTS:
            raise IndexError(f"partition {self.id} has no part {part} of {PARTS}")
