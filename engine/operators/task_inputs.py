"""TaskInput: one logical input of a task, the gates behind it, and what came through.

A union has several data sets behind one input: their channels are merged into one gate, so that it takes whatever is
ready and no producer waits for another.

Held by: tests/operators/test_drivers.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.exchange.elements import OversizedRow, RowPage
from engine.exchange.input_gate import InputGate, NothingYet
from engine.exchange.page_reader import gate_batches
from engine.exchange.page_runs import PageRuns
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.deployment import InputChannelDescriptor, InputGateDescriptor, PartitionLocation
from engine.operators.task_services import TaskServices
from engine.records.arrow_batch import batch_bytes
from engine.records.row_router import RowRouter

#: pages that are taken together
PAGES_BYTES: Final = 512 << 10


def is_remote(channel: InputChannelDescriptor) -> bool:
    """Return whether a producer lives in another process."""
    return channel.location is PartitionLocation.REMOTE


def with_rows_below(gate: InputGateDescriptor) -> InputGateDescriptor:
    """Return a gate that brings what lies below the range of sorted runs, too."""
    assert gate.key_range is not None, "sorted runs are read in ranges"
    return msgspec.structs.replace(gate, key_range=msgspec.structs.replace(gate.key_range, lower=None))


class TaskInput:
    """One logical input."""

    #: other tasks wait until all of it was taken
    is_drained = True

    def __init__(self, gates: Sequence[InputGateDescriptor], services: TaskServices) -> None:
        first = gates[0]
        channels = [channel for gate in gates for channel in gate.channels]
        is_sorted = first.key_range is not None
        if is_sorted:  # sorted runs: those of this process are read where they lie
            channels = [channel for channel in channels if is_remote(channel)] or channels
        self.schema: pa.Schema = to_arrow_schema(first.schema)
        #: True if every subtask of the task gets all rows
        self.is_broadcast = all(gate.is_broadcast for gate in gates)
        reads = None
        if services.data_plane is not None:
            reads = services.data_plane.reads(services.network_pool, len(channels), first.key_range)
        self._partitions = services.partition_manager
        self._gate = InputGate(
            channels, services.partition_manager, services.clock, reads, in_order=is_sorted or first.in_order
        )
        #: number of rows that came as batches; readers of pages count theirs
        self.rows_in = 0
        self.bytes_in = 0

    def batches(self, router: RowRouter | None = None) -> Iterator[pa.RecordBatch]:
        """Yield everything as batches: those by reference as they are, row pages decoded.

        A ``router`` takes rows of pages as they are, and counts them.
        """
        for batch in gate_batches(self._gate, self.schema, router=router):
            self.rows_in += batch.num_rows
            self.bytes_in += batch_bytes(batch)
            yield batch

    def elements(self) -> Iterator[pa.RecordBatch | RowPage | OversizedRow]:
        """Yield everything as it comes; the reader of a RowPage recycles it, and counts its rows."""
        while (element := self._gate.next()) is not None:
            self.bytes_in += batch_bytes(element) if isinstance(element, pa.RecordBatch) else element.size
            yield element

    def elements_together(self) -> Iterator[pa.RecordBatch | list[RowPage] | OversizedRow]:
        """Yield everything as it comes, pages that are ready in one list; its reader recycles and counts as above."""
        runs = PageRuns(self._gate, PAGES_BYTES)
        while (element := runs.poll(-1)) is not None:
            assert not isinstance(element, NothingYet), "it was waited for"
            if isinstance(element, list):
                self.bytes_in += sum(page.size for page in element)
            else:
                self.bytes_in += batch_bytes(element) if isinstance(element, pa.RecordBatch) else element.size
            yield element

    @property
    def is_waiting(self) -> bool:
        """Whether the task waits for this input at this moment; from any thread."""
        return self._gate.is_waiting

    @property
    def unread(self) -> list[InputChannelDescriptor]:
        """The channels that are not read to their end; from any thread."""
        return [channel.descriptor for channel in self._gate.channels if not channel.is_consumed]

    @property
    def channels(self) -> list[InputChannelDescriptor]:
        """The channels to read, with their producers."""
        return [channel.descriptor for channel in self._gate.channels]

    @property
    def has_whole_groups(self) -> bool:
        """Whether its rows are whole groups (``Output.say_whole_groups``); known when the first one has come."""
        channels = self.channels
        partition = self._partitions.find(channels[0].partition) if len(channels) == 1 else None
        return partition is not None and partition.life.has_whole_groups

    @property
    def channel_index(self) -> int:
        """The producer that the last element came from."""
        return self._gate.channel_index

    @property
    def idle_ns(self) -> int:
        """Time that the task has waited for this input; from any thread."""
        return self._gate.idle_ns

    def cancel(self) -> None:
        """Wake the thread that waits for this input; from another thread."""
        self._gate.cancel()

    def close(self) -> None:
        """Release the gate; idempotent."""
        self._gate.close()
