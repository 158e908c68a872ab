"""Writers that hand batches over by reference: FORWARD and BROADCAST inside one process, PIPELINED only.

    writer.emit(batch)* ─► writer.finish() ─► writer.close()

No row is touched: the consumer gets the very batch. The queue of each subpartition bounds batches by count and bytes,
so a slow consumer stops the producer; a broadcast goes at the pace of the slowest. Nothing is ever half full, so
there is nothing to flush. Batches are immutable; all receivers share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.exchange.result_partition import ResultPartition

if TYPE_CHECKING:
    import pyarrow as pa


class BatchBroadcastWriter:
    """Hands every batch to every subpartition."""

    def __init__(self, partition: ResultPartition) -> None:
        self.partition = partition
        self.rows = 0
        self.bytes = 0

    def emit(self, batch: pa.RecordBatch) -> None:
        """Hand a batch over; waits (without the GIL) for the slowest consumer.

        Raises:
            TaskCancelledError, PartitionReleasedError: the partition is gone.
        """
        self.partition.check_producing()
        if batch.num_rows == 0:
            return
        size = max(int(batch.nbytes), 1)
        for index in range(self.partition.subpartition_count):
            self.partition.add_batch(batch, index, size)
        self.rows += batch.num_rows
        self.bytes += size
        self.partition.rows += batch.num_rows

    def flush(self) -> None:
        """Do nothing: every batch was handed over."""

    def flush_if_older_than(self, _age_ms: int) -> bool:
        """Return False: nothing waits here."""
        return False

    def finish(self) -> None:
        """Finish the partition."""
        self.partition.finish()

    def close(self) -> None:
        """Do nothing: no memory is held."""


class ForwardRecordWriter(BatchBroadcastWriter):
    """Hands every batch to the one consumer."""

    def __init__(self, partition: ResultPartition) -> None:
        if partition.subpartition_count != 1:
            raise ValueError(f"FORWARD has one consumer, partition {partition.id} {partition.subpartition_count}")
        super().__init__(partition)
