"""RecordWriterBuilder: the writer that fits a result partition and its partitioner.

    RecordWriterBuilder(partition, schema).with_timeout(100).with_subtask(3).build() ─► Writer

    result type   partitioner    writer
    PIPELINED     FORWARD        ForwardRecordWriter       batches by reference
    PIPELINED     BROADCAST      BatchBroadcastWriter      batches by reference
    BLOCKING      BROADCAST      RecordWriter              columns, or row pages of few rows, stored once
    BLOCKING      FORWARD        RecordWriter              the same
    BLOCKING      SORTED_RUNS    SortedRunsWriter          the sorted runs of a subtask
    any           any other      RecordWriter              row pages, a selector decides

FORWARD never has several subpartitions.

Source: Flink's RecordWriterBuilder.

Held by: tests/exchange/test_record_writer.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from engine.exchange.blocking_partition import BlockingPartition
from engine.exchange.pipelined_partition import PipelinedPartition
from engine.exchange.record_writer import RecordWriter
from engine.exchange.reference_writer import BatchBroadcastWriter, ForwardRecordWriter
from engine.exchange.selector_choice import selector_for
from engine.exchange.sorted_partition import SortedPartition
from engine.exchange.sorted_runs_writer import SortedRunsWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.partition_builder import NewPartition
    from engine.exchange.result_partition import PagePartition
    from engine.memory.value_stores import ValueOwner

DEFAULT_TIMEOUT_MS: Final = 100
#: partitioners that leave batches whole
_WHOLE: Final = ("FORWARD", "BROADCAST")


class Writer(Protocol):
    """The writer of a task's output."""

    @property
    def rows(self) -> int:
        """Rows emitted."""
        ...

    @property
    def bytes(self) -> int:
        """Bytes sent, once for any number of receivers."""
        ...

    def emit(self, batch: pa.RecordBatch) -> None:
        """Write one batch; waits while consumers are behind."""
        ...

    def flush(self) -> None:
        """Send half-full buffers."""
        ...

    def flush_if_older_than(self, age_ms: int) -> bool:
        """Send half-full buffers that have waited so long."""
        ...

    def finish(self) -> None:
        """Flush, and finish the partition."""
        ...

    def close(self) -> None:
        """Release unsent buffers. Idempotent."""
        ...


class RecordWriterBuilder:
    """Collects what a writer needs.

    Args:
        partition: producing.
        schema: of all batches.
    """

    def __init__(self, partition: NewPartition, schema: pa.Schema) -> None:
        self._partition = partition
        self._schema = schema
        self._timeout_ms = DEFAULT_TIMEOUT_MS
        self._subtask_index = 0
        self._value_owner: ValueOwner | None = None

    def with_timeout(self, timeout_ms: int) -> RecordWriterBuilder:
        """Set the buffer time-out: 0 flushes after every batch, -1 never."""
        self._timeout_ms = timeout_ms
        return self

    def with_subtask(self, subtask_index: int) -> RecordWriterBuilder:
        """Set the producer's position, so that producers begin at different channels."""
        self._subtask_index = subtask_index
        return self

    def with_value_owner(self, owner: ValueOwner) -> RecordWriterBuilder:
        """Set where wide values of rows in pages lie."""
        self._value_owner = owner
        return self

    def build(self) -> Writer:
        """Return the writer."""
        partition = self._partition
        match partition:
            case SortedPartition():
                return SortedRunsWriter(partition)
            case BlockingPartition():
                return self._page_writer(partition, -1)
            case PipelinedPartition():
                match partition.descriptor.partitioner.kind:
                    case "FORWARD":
                        return ForwardRecordWriter(partition)
                    case "BROADCAST":
                        return BatchBroadcastWriter(partition)
                    case _:
                        return self._page_writer(partition, self._timeout_ms)

    def _page_writer(self, partition: PagePartition, timeout_ms: int) -> RecordWriter:
        selector = selector_for(
            partition.descriptor.partitioner, self._schema, partition.subpartition_count, self._subtask_index
        )
        writer = RecordWriter(partition, self._schema, selector, timeout_ms)
        if isinstance(partition, BlockingPartition) and partition.descriptor.partitioner.kind in _WHOLE:
            writer.keep_columns()
        if self._value_owner is not None:
            writer.keep_outside(self._value_owner)
        return writer
