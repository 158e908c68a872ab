"""ResultPartition: what one attempt produced for one data set, as it is produced, consumed and released.

    ResultPartition(descriptor, pool, ...) ─► request_buffer() ─► add(buffer, index)* ─► finish()     producer
    create_view(index, listener, channel) ─► view.poll()* ─► view.consumed() ─► view.release()        consumers
    release() | fail(error) | cancel()                                                               any thread

    PRODUCING ──finish──► FINISHED ──┐
        │ └─────fail────► FAILED ────┤
        └────────────────────────────┴──release──► RELEASED

PIPELINED keeps one queue per subpartition (``pipelined_subpartition``), is read once and released by its last consumer:
``pending references`` counts consumed subpartitions down. BLOCKING keeps ``blocking_data``, is readable after finish,
any number of times, and released explicitly. A BLOCKING broadcast is stored once and read by all.

Invariants
    the partition holds no buffer itself: subpartitions do; all draw on the one pool;
    the number of subpartitions never changes; a buffer that is not taken goes back to the pool;
    counters are exact: every buffer and batch taken by a subpartition counts once.

Source: Flink's ResultPartition, ReleaseOnConsumptionResultPartition.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Collection
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.errors import IllegalTransitionError, PartitionReleasedError, SpillError, TaskCancelledError
from engine.exchange.blocking_data import BlockingData
from engine.exchange.buffer_pool import Buffer, LocalBufferPool, NetworkBufferPool
from engine.exchange.partition_file import PartitionFile, partition_identity
from engine.exchange.pipelined_subpartition import PipelinedSubpartition
from engine.exchange.ready_queue import ReadyQueue
from engine.fault_points import reach
from engine.graph.deployment import ResultPartitionDescriptor
from engine.graph.ship_strategy import SORTED_RUNS, ResultPartitionType
from engine.graph.subpartition_share import PARTS, WHOLE
from engine.ids import ResultPartitionId

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.read_ahead import DiskReaders

#: buffers of a PIPELINED partition beyond two per subpartition; with a few, producer and consumer wake each other for
#: every batch
FLOATING_BUFFERS: Final = 64
#: least buffers of a BLOCKING partition beyond those it needs
BLOCKING_BUFFERS_MIN: Final = 8


class PartitionState(Enum):
    """States of a result partition."""

    PRODUCING = auto()
    FINISHED = auto()
    FAILED = auto()
    RELEASED = auto()


TRANSITIONS: Final[dict[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.PRODUCING: frozenset({PartitionState.FINISHED, PartitionState.FAILED, PartitionState.RELEASED}),
    PartitionState.FINISHED: frozenset({PartitionState.RELEASED}),
    PartitionState.FAILED: frozenset({PartitionState.RELEASED}),
    PartitionState.RELEASED: frozenset(),
}


class SubpartitionView(Protocol):
    """A reader of one subpartition."""

    def poll(self) -> tuple[Any, bool]:
        """Return (element or None, whether more is known to follow)."""
        ...

    def poll_pages(self, pages: list[Buffer], count_max: int, bytes_max: int, /) -> int:
        """Add pages of rows that are next to a list, until it has so many or they so many bytes; return their bytes.

        Where pages come one by one, none is added.
        """
        ...

    def backlog(self) -> int:
        """Return how many elements with data are ready."""
        ...

    def consumed(self) -> None:
        """Say that END_OF_PARTITION was read."""
        ...

    def release(self) -> None:
        """Stop reading."""
        ...


class PartitionFileSpace(Protocol):
    """Chooses where files of BLOCKING partitions lie."""

    def partition_path(self, name: str, need_bytes: int = 0, full: Collection[Path] = ()) -> Path:
        """Return a path of that name in the folder with most free space that is not full, or raise DiskFullError."""
        ...


class ResultPartition:
    """One result partition in the process of its producer.

    Args:
        descriptor: identity, type, number of subpartitions.
        pool: where its buffers come from; closed with the partition.
        space: where a BLOCKING partition spills to.

    Raises:
        PlanError: a type that is only a name.
    """

    def __init__(
        self,
        descriptor: ResultPartitionDescriptor,
        pool: LocalBufferPool,
        space: PartitionFileSpace | None = None,
    ) -> None:
        descriptor.result_type.check_supported()
        if descriptor.subpartition_count < 1:
            raise IllegalTransitionError(f"partition {descriptor.id} has no subpartition")
        self.descriptor = descriptor
        self.pool = pool
        self.is_pipelined = descriptor.result_type is ResultPartitionType.PIPELINED
        #: a broadcast that is kept is stored once, every view reads subpartition 0
        self.is_stored_once = not self.is_pipelined and descriptor.partitioner.kind == "BROADCAST"
        self.total_buffers = 0
        self.total_bytes = 0
        self.rows = 0
        #: most buffers that the pool had out at a time
        self.buffers_peak = 0
        #: set by the manager: releases the partition when every subpartition was consumed
        self.on_all_consumed: Callable[[ResultPartitionId], None] | None = None
        self._space = space
        self._lock = threading.Lock()
        self._state = PartitionState.PRODUCING  # guarded by: self._lock
        self._is_cancelled = False
        self._pending_references = descriptor.subpartition_count  # guarded by: self._lock
        self._queues: list[PipelinedSubpartition] = []
        self._data: BlockingData | None = None
        self._stored_bytes: list[int] = []
        if self.is_pipelined:
            self._queues = [PipelinedSubpartition(index) for index in range(descriptor.subpartition_count)]
        else:
            self._stored_bytes = [0] * (1 if self.is_stored_once else descriptor.subpartition_count)
            self._data = BlockingData(len(self._stored_bytes), self._new_file)
            pool.set_owner(self._release_memory)

    # ----------------------------------------------------------------------------------------------------- properties

    @property
    def id(self) -> ResultPartitionId:
        """Identity: data set and attempt."""
        return self.descriptor.id

    @property
    def subpartition_count(self) -> int:
        """Number of subpartitions, fixed."""
        return self.descriptor.subpartition_count

    @property
    def subpartitions(self) -> tuple[PipelinedSubpartition, ...]:
        """Queues of a PIPELINED partition; empty for BLOCKING."""
        return tuple(self._queues)

    @property
    def data(self) -> BlockingData | None:
        """Data of a BLOCKING partition."""
        return self._data

    @property
    def state(self) -> PartitionState:
        """Where the partition is in its life."""
        return self._state

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._is_cancelled

    @property
    def pending_references(self) -> int:
        """Subpartitions not consumed yet."""
        return self._pending_references

    @property
    def blocked_ns(self) -> int:
        """Nanoseconds that the producer has waited for buffers or for consumers of batches."""
        return self.pool.blocked_ns + sum(queue.blocked_ns for queue in self._queues)

    @property
    def subpartition_bytes(self) -> tuple[int, ...]:
        """Bytes of each stored subpartition of a BLOCKING partition; () for PIPELINED."""
        return tuple(self._stored_bytes)

    @property
    def spilled_bytes(self) -> int:
        """Bytes that the task spilled in here: none, for what is kept for others is its result."""
        return 0

    @property
    def file_bytes(self) -> int:
        """Bytes of the file of a BLOCKING partition, 0 while it is in memory."""
        return 0 if self._data is None else self._data.file_bytes

    # ------------------------------------------------------------------------------------------------ producer's side

    def check_producing(self) -> None:
        """Raise what would keep the producer from adding: cancelled, released or finished."""
        self._check_cancelled()
        if self._state is PartitionState.RELEASED:
            raise PartitionReleasedError(f"partition {self.id} was released and cannot be written")
        if self._state is not PartitionState.PRODUCING:
            raise IllegalTransitionError(f"partition {self.id} is {self._state.name} and cannot be written")

    def request_buffer(self, timeout_ms: int = -1) -> Buffer | None:
        """Return a buffer of the pool, or None when none came free in time; a BLOCKING partition spills to get one."""
        try:
            buffer = self.pool.request(0)
            if buffer is None and self._data is not None and self._data.spill():
                buffer = self.pool.request(0)
            if buffer is None and timeout_ms != 0:
                buffer = self.pool.request(timeout_ms)
            self.buffers_peak = max(self.buffers_peak, self.pool.in_use)
            return buffer
        except TaskCancelledError:
            self.check_producing()  # released by its consumers' end rather than cancelled: says so
            raise

    def add(self, buffer: Buffer, subpartition_index: int) -> None:
        """Hand a buffer to a subpartition; it is taken in any case. Never waits.

        Raises:
            IllegalTransitionError, PartitionReleasedError, TaskCancelledError: not producing any more; the buffer went
                back to its pool.
        """
        size = buffer.size
        try:
            self.check_producing()
        except BaseException:
            buffer.recycle()
            raise
        try:
            if self._data is not None:
                self._data.add(buffer, subpartition_index)
                self._stored_bytes[subpartition_index] += size
            else:
                self._queues[subpartition_index].add_buffer(buffer)
        except PartitionReleasedError:
            self._check_cancelled()  # under the producer, which is the reason
            raise
        self._count(size)

    def add_batch(self, batch: pa.RecordBatch, subpartition_index: int, size_bytes: int) -> None:
        """Hand a batch by reference to a subpartition (PIPELINED); waits while its queue is full."""
        self.check_producing()
        if not self.is_pipelined:
            raise IllegalTransitionError(f"partition {self.id} is BLOCKING: it stores row pages, not batches")
        try:
            self._queues[subpartition_index].add_batch(batch, size_bytes)
        except PartitionReleasedError:
            self._check_cancelled()
            raise
        self._count(size_bytes)

    def broadcast(self, buffer: Buffer) -> None:
        """Hand shares of a buffer to all subpartitions; it is taken in any case."""
        targets = 1 if self.is_stored_once else self.subpartition_count
        shares = [buffer, *(buffer.share() for _ in range(targets - 1))]
        for index in range(targets):
            try:
                self.add(shares[index], index)
            except BaseException:
                for rest in shares[index + 1 :]:
                    rest.recycle()
                raise

    def finish(self) -> None:
        """End production: END_OF_PARTITION goes to every subpartition; BLOCKING can be read from here on."""
        self.check_producing()
        try:
            if self._data is not None:
                self._data.finish()
                reach("partition.stored")
            self._move(PartitionState.FINISHED)
            for queue in self._queues:  # the last consumer may release the partition from here on
                queue.finish()
        except PartitionReleasedError:
            self._check_cancelled()
            raise
        if not self.pool.is_closed:
            self.pool.set_required(0)  # what is kept may be squeezed out by those who still produce

    def fail(self, error: BaseException) -> None:
        """Drop the data; every consumer gets ProducerFailedError with this cause. No effect after finish or release."""
        with self._lock:
            if self._state is not PartitionState.PRODUCING:
                return
            self._state = PartitionState.FAILED
        for queue in self._queues:
            queue.fail(error)
        if self._data is not None:
            self._data.fail(error)
        self.pool.close()

    def cancel(self) -> None:
        """Release, so that a producer that waits or writes gets TaskCancelledError. Thread: any."""
        self._is_cancelled = True
        self.release()

    def release(self) -> None:
        """Free memory and files; whoever waits is woken. Idempotent. Thread: any."""
        with self._lock:
            if self._state is PartitionState.RELEASED:
                return
            self._state = PartitionState.RELEASED
        self.pool.close()
        for queue in self._queues:
            queue.release()
        if self._data is not None:
            self._data.release()

    # ------------------------------------------------------------------------------------------------ consumer's side

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
            IllegalTransitionError: a PIPELINED subpartition has a reader already, or it was asked for a part of it.
            IndexError: there is no such subpartition or part.
        """
        if self._state is PartitionState.RELEASED:
            raise PartitionReleasedError(f"partition {self.id} was released and cannot be read")
        if not 0 <= subpartition_index < self.subpartition_count:
            raise IndexError(f"partition {self.id} has no subpartition {subpartition_index}")
        if not 0 <= part[0] <= part[1] <= PARTS:
            raise IndexError(f"partition {self.id} has no part {part} of {PARTS}")
        if self._data is not None:
            index = 0 if self.is_stored_once else subpartition_index
            return self._data.open_view(index, listener, channel, disk, part)
        if part != WHOLE:
            raise IllegalTransitionError(f"partition {self.id} is PIPELINED: its subpartitions are read whole")
        queue = self._queues[subpartition_index]
        queue.attach(listener, channel)
        return PipelinedView(self, queue)

    def on_consumed_subpartition(self) -> None:
        """Count one consumed subpartition; the last one of a PIPELINED partition releases it. No effect when released.

        Raises:
            IllegalTransitionError: there were as many calls as subpartitions before.
        """
        with self._lock:
            if self._pending_references == 0:
                raise IllegalTransitionError("All references released.")
            if self._state is PartitionState.RELEASED:
                return
            self._pending_references -= 1
            if self._pending_references > 0:
                return
        if self.on_all_consumed is not None:
            self.on_all_consumed(self.id)
        else:
            self.release()

    # -------------------------------------------------------------------------------------------------------- private

    def _count(self, size_bytes: int) -> None:
        self.total_buffers += 1
        self.total_bytes += size_bytes

    def _move(self, state: PartitionState) -> None:
        with self._lock:
            if self._state is PartitionState.RELEASED:
                raise PartitionReleasedError(f"partition {self.id} was released and cannot become {state.name}")
            if state not in TRANSITIONS[self._state]:
                raise IllegalTransitionError(f"partition {self.id} cannot go from {self._state.name} to {state.name}")
            self._state = state

    def _check_cancelled(self) -> None:
        if self._is_cancelled:
            raise TaskCancelledError(f"partition {self.id} was cancelled")

    def _new_file(self) -> PartitionFile:
        if self._space is None:
            raise SpillError(f"partition {self.id} has nowhere to spill to")
        subpartition_count = 1 if self.is_stored_once else self.subpartition_count
        other_path = functools.partial(self._space.partition_path, f"{self.id}.shuffle.data")
        return PartitionFile(other_path(), partition_identity(self.id), subpartition_count, other_path)

    def _release_memory(self, _count: int) -> None:
        """Spill for another pool's sake. An error is not that pool's owner's: it meets our own next spill."""
        assert self._data is not None
        with contextlib.suppress(SpillError, PartitionReleasedError):
            self._data.spill()


class PipelinedView:
    """The one reader of a PIPELINED subpartition."""

    def __init__(self, partition: ResultPartition, queue: PipelinedSubpartition) -> None:
        self._partition = partition
        self._queue = queue
        self.poll = queue.poll
        self.poll_pages = queue.poll_pages
        self._is_consumed = False

    def backlog(self) -> int:
        """Return how many elements with data are queued."""
        return self._queue.data_count

    def consumed(self) -> None:
        """Count the subpartition as consumed."""
        self._is_consumed = True
        self._partition.on_consumed_subpartition()

    def release(self) -> None:
        """Stop reading; an unread rest is dropped, which lets a waiting producer go on to its error."""
        if not self._is_consumed:
            self._queue.release()


def pool_bounds(descriptor: ResultPartitionDescriptor, network_pool: NetworkBufferPool) -> tuple[int, int]:
    """Return (required, maximum) buffers of a partition's pool.

    Each subpartition needs an open buffer, and one may be on its way. Where a slow
    consumer makes the producer wait, there may be two per subpartition and some floating ones in flight; BLOCKING may
    hold a quarter of all buffers before it goes to its file.
    """
    if descriptor.partitioner.kind == SORTED_RUNS:
        return 1, 1  # sorted runs lie in managed memory and in files
    open_buffers = 1 if descriptor.partitioner.kind == "BROADCAST" else descriptor.subpartition_count
    required = open_buffers + 1
    if descriptor.result_type.has_back_pressure:
        return required, max(required, 2 * open_buffers + FLOATING_BUFFERS)
    return required, required + max(BLOCKING_BUFFERS_MIN, network_pool.segment_count // 4)
