"""ResultPartitionManager: the result partitions that one TaskExecutor holds.

    register(partition) ─► create_view(partition_id, subpartition, listener, channel) ─► release(partition_id)
                                                                        or release_partitions_produced_by(attempt)

    attempt ─► { data set ─► HeldPartition }           two levels: an attempt leaves as a whole

A request names the attempt, so a consumer of an older attempt's data is refused (PartitionNotFoundError), never served
the new one's. A consumer that asked too early can leave a callback (``notify_registered``) and asks again when told.

Thread: any; changes of the table are guarded by one lock that is held for no I/O and no callback.

Source: Flink's ResultPartitionManager.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.errors import IllegalTransitionError, PartitionNotFoundError
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.result_partition import HeldPartition
from engine.exchange.subpartition_view import SubpartitionView
from engine.graph.subpartition_share import WHOLE
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, ResultPartitionId

if TYPE_CHECKING:
    from engine.exchange.read_ahead import DiskReaders


class ResultPartitionManager:
    """Registry of the result partitions of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._partitions: dict[ExecutionAttemptId, dict[IntermediateDataSetId, HeldPartition]] = {}
        self._waiting: dict[ResultPartitionId, list[Callable[[], None]]] = {}

    def register(self, partition: HeldPartition) -> None:
        """Take a partition in and tell the consumers that wait for it.

        Raises:
            IllegalTransitionError: its id is registered already.
        """
        with self._lock:
            row = self._partitions.setdefault(partition.id.producer, {})
            if partition.id.data_set in row:
                raise IllegalTransitionError(f"partition {partition.id} is registered already")
            row[partition.id.data_set] = partition
            waiting = self._waiting.pop(partition.id, [])
        partition.when_consumed(self.release)
        for callback in waiting:
            callback()

    def create_view(
        self,
        partition_id: ResultPartitionId,
        subpartition_index: int,
        listener: ReadyQueue,
        channel: int,
        disk: DiskReaders | None = None,
        part: tuple[int, int] = WHOLE,
    ) -> SubpartitionView:
        """Return a reader of a subpartition or a part of it; with disk readers it never waits for a file itself.

        Raises:
            PartitionNotFoundError: not registered (not yet, of another attempt, or released).
        """
        partition = self.find(partition_id)
        if partition is None:
            raise PartitionNotFoundError(f"result partition {partition_id} is not registered here")
        return partition.create_view(subpartition_index, listener, channel, disk, part)

    def find(self, partition_id: ResultPartitionId) -> HeldPartition | None:
        """Return the partition of that id, or None."""
        # Without the lock, which all channels of all gates would wait for: two looks into dictionaries.
        row = self._partitions.get(partition_id.producer)
        return None if row is None else row.get(partition_id.data_set)

    def notify_registered(self, partition_id: ResultPartitionId, callback: Callable[[], None]) -> None:
        """Call back when the partition is registered, at once if it is. ``forget`` takes the callback back."""
        with self._lock:
            is_here = partition_id.data_set in self._partitions.get(partition_id.producer, {})
            if not is_here:
                self._waiting.setdefault(partition_id, []).append(callback)
        if is_here:
            callback()

    def forget(self, partition_id: ResultPartitionId, callback: Callable[[], None]) -> None:
        """Drop a callback of ``notify_registered``. No effect when it is gone."""
        with self._lock:
            waiting = self._waiting.get(partition_id, [])
            if callback in waiting:
                waiting.remove(callback)
            if not waiting:
                self._waiting.pop(partition_id, None)

    def release(self, partition_id: ResultPartitionId) -> None:
        """Release a partition and forget it. No effect for unknown ids."""
        with self._lock:
            row = self._partitions.get(partition_id.producer, {})
            partition = row.pop(partition_id.data_set, None)
            if not row:
                self._partitions.pop(partition_id.producer, None)
        if partition is not None:
            partition.release()

    def release_partitions_produced_by(self, attempt: ExecutionAttemptId) -> None:
        """Release and forget all partitions of an attempt."""
        with self._lock:
            row = self._partitions.pop(attempt, {})
        close_all([partition.release for partition in row.values()])

    def close(self) -> None:
        """Release everything."""
        close_all([functools.partial(self.release_partitions_produced_by, attempt) for attempt in self.attempts])

    @property
    def attempts(self) -> tuple[ExecutionAttemptId, ...]:
        """Attempts with partitions here."""
        with self._lock:
            return tuple(self._partitions)

    @property
    def partition_ids(self) -> tuple[ResultPartitionId, ...]:
        """Partitions held here."""
        with self._lock:
            return tuple(partition.id for row in self._partitions.values() for partition in row.values())
