"""SidePartition: a few batches that a task has for any number of readers, beside its rows.

    partition = SidePartition(id) ─► complete(batches) ─► create_view(...)* ─► release()

A reader may come before the batches are complete; it is told when they are. All readers get all of them, by reference
in this process. Memory is the owner's: batches are held until the partition is released.

Thread: any. Source: the side outputs of Flink.
Held by: tests/exchange/test_side_partition.py
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.partition_life import PartitionLife
from engine.exchange.result_partition import HeldPartition
from engine.exchange.subpartition_view import SubpartitionView
from engine.graph.subpartition_share import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from engine.exchange.read_ahead import DiskReaders
    from engine.exchange.ready_queue import ReadyQueue
    from engine.ids import ResultPartitionId


class SidePartition(HeldPartition):
    """Batches for any number of readers."""

    def __init__(self, identity: ResultPartitionId) -> None:
        self.life = PartitionLife(identity)
        #: the batches; None: they are not complete
        self.batches: Sequence[pa.RecordBatch] | None = None
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._views: set[SideView] = set()

    def complete(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Give the batches to all readers, those to come included."""
        self.life.finish()
        with self._lock:
            self.batches = batches
            views = list(self._views)
        for view in views:
            view.tell()

    def drop(self, error: BaseException | None) -> None:
        """Drop all batches; readers are told."""
        del error
        with self._lock:
            self.batches = None
            views, self._views = list(self._views), set()
        for view in views:
            view.tell()

    def create_view(
        self,
        subpartition_index: int,
        listener: ReadyQueue,
        channel: int,
        disk: DiskReaders | None = None,
        part: tuple[int, int] = WHOLE,
    ) -> SideView:
        """Return a reader of all batches, whatever it calls itself."""
        del subpartition_index, disk, part
        self.life.check_readable()
        view = SideView(self, listener, channel)
        with self._lock:
            self._views.add(view)
        view.tell()
        return view

    def forget(self, view: SideView) -> None:
        """Forget a reader. No effect when it is gone."""
        with self._lock:
            self._views.discard(view)


class SideView(SubpartitionView):
    """A reader of the batches; from ``create_view``."""

    def __init__(self, partition: SidePartition, listener: ReadyQueue, channel: int) -> None:
        self._partition = partition
        self._listener = listener
        self._channel = channel
        self._next = 0

    def tell(self) -> None:
        """Wake the reader. Thread: any."""
        self._listener.push_channel(self._channel)

    def poll(self) -> tuple[Any, bool]:
        """Return (batch or END_OF_PARTITION or None, whether more is known to follow)."""
        batches = self._partition.batches
        self._partition.life.check_readable()
        if batches is None:
            return None, False
        self._next += 1
        if self._next <= len(batches):
            return batches[self._next - 1], True
        return (END_OF_PARTITION, False) if self._next == len(batches) + 1 else (None, False)

    def backlog(self) -> int:
        """Return the number of batches that are not read."""
        batches = self._partition.batches
        return 0 if batches is None else max(0, len(batches) - self._next)

    def consumed(self) -> None:
        """Take note of nothing: others may read it, too."""

    def release(self) -> None:
        """Stop reading. Idempotent."""
        self._partition.forget(self)
