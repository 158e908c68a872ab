"""Writers that pass batches by reference: FORWARD and BROADCAST inside one process, PIPELINED only.

    writer.emit(batch)* ─► writer.finish() ─► writer.close()

No row is touched: the consumer gets the very batch. The queue of each subpartition bounds batches by count and bytes,
so a slow consumer stops the producer; a broadcast goes at the pace of the slowest. Nothing is ever half full, so
there is nothing to flush. Batches are immutable; all receivers share one.

After a very large batch the writer waits until every receiver asks its gate for more, so that the next batch is not
made meanwhile. The wait is bounded, and shorter after each time-out: a receiver may need a batch for long.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final

from engine.exchange.elements import LARGE_BYTES
from engine.exchange.pipelined_partition import PipelinedPartition
from engine.records.arrow_batch import batch_bytes
from engine.records.opened_batch import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

_PATIENCE_S: Final = 2.0
_LOOK_S: Final = 0.1


class BatchBroadcastWriter:
    """Passes every batch to every subpartition."""

    def __init__(self, partition: PipelinedPartition) -> None:
        self.partition = partition
        self.rows = 0
        self.bytes = 0
        self._patience_s = _PATIENCE_S

    def emit(self, batch: pa.RecordBatch) -> None:
        """Pass on a batch; waits (without the GIL) for the slowest consumer.

        Raises:
            TaskCancelledError, PartitionReleasedError: the partition is gone.
        """
        partition = self.partition
        rows = batch.num_rows
        if rows == 0:
            partition.check_producing()
            return
        batch = shown(batch)  # others may do with it what they like
        size = max(batch_bytes(batch), 1)
        if size < LARGE_BYTES:
            partition.add_batch(batch, size)
        else:
            self._hand_over_and_wait(batch, size)
        self.rows += rows
        self.bytes += size
        partition.rows += rows

    def _hand_over_and_wait(self, batch: pa.RecordBatch, size: int) -> None:
        is_dropped = threading.Event()
        self.partition.add_batch(_watched(batch, is_dropped.set), size)
        waited_s = 0.0
        self.partition.is_held = True
        try:
            while waited_s < self._patience_s and not is_dropped.wait(_LOOK_S):
                self.partition.check_producing()
                waited_s += _LOOK_S
        finally:
            self.partition.is_held = False
        if not is_dropped.is_set():
            self._patience_s /= 2

    def flush(self) -> None:
        """Do nothing: every batch was passed on."""

    def flush_if_older_than(self, _age_ms: int) -> bool:
        """Return False: nothing waits here."""
        return False

    def finish(self) -> None:
        """Finish the partition."""
        self.partition.finish()

    def close(self) -> None:
        """Do nothing: no memory is held."""


def _watched(batch: pa.RecordBatch, on_drop: Callable[[], None]) -> pa.RecordBatch:
    """Return the batch as an object of its own, and call ``on_drop`` when that is not held any more."""
    view = batch.slice(0)
    weakref.finalize(view, on_drop).atexit = False
    return view


class ForwardRecordWriter(BatchBroadcastWriter):
    """Passes every batch to the one consumer."""

    def __init__(self, partition: PipelinedPartition) -> None:
        if partition.subpartition_count != 1:
            raise ValueError(f"FORWARD has one consumer; partition {partition.id} has {partition.subpartition_count}")
        super().__init__(partition)
