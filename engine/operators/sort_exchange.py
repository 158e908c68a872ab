"""The two halves of a sort over subtasks: SortRuns at the end of the producers, MergeRunsDriver at the consumers.

    ... ─► SortRuns ─► sorted runs of this subtask ═══ by ranges of keys ═══► MergeRunsDriver ─► chain in order ...

SortRuns sorts in the pages of its pool and passes rows, pages and files to its result partition: nothing is copied
and nothing is written that fits. The pages it does not need go back at once; those it keeps are given up when another
operator reserves pages that are not there: its runs go to disk then, also while they are read.

MergeRunsDriver reads its range of the runs of all producers. It needs memory only for rows that come from disk: for
their blocks, and an arena in which they are decoded. However much its slot has, it takes no more than that. What
producers of other processes have in the range is brought here first (``received_runs``).

Source: range partitioning with sorted runs is DuckDB's and Spark's idea of a merge path, over tasks.
Held by: tests/exchange/test_channels_in_order.py
Held by: tests/integration/test_sort.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from engine.errors import PartitionNotFoundError
from engine.exchange.sorted_partition import KeptRuns, SortedPartition
from engine.graph.deployment import InputChannelDescriptor, KeyRange
from engine.graph.operator_descriptor import MergeRunsOperator, RangeWindowsOperator
from engine.operators.operator import Output, TaskContext
from engine.operators.received_runs import receive_runs
from engine.operators.sort_operator import Sort
from engine.operators.state_combining import state_combiner, state_results
from engine.operators.task_inputs import is_remote
from engine.sort.merged_batches import MergedBatches
from engine.sort.sorted_runs import SortedRuns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from engine.accumulators.state_combiner import StateCombiner
    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.operators.task_inputs import TaskInput

#: bytes of the pool of a merge beside the blocks of runs: the arena for rows from disk is a quarter of it
MERGE_BYTES: Final = 4 << 20


class RunsOutput(Protocol):
    """The end of a chain that ends with SortRuns."""

    def keep_runs(self, runs: KeptRuns) -> None:
        """Take the runs over."""
        ...


class SortRuns(Sort):
    """Sorts all input of this subtask into runs for the consumers of other subtasks."""

    def finish(self) -> None:
        """Pass on the runs with their memory and files."""
        runs = self._open_sorter.take_runs()
        runs.produced_by(self.context.descriptor.subtask_index)
        pool, space = self._pool, self._space
        self.context.hand_over(pool, space)
        pool.shrink()
        runs.owned_by(pool.close, space.close)
        if runs.runs_in_memory:
            self.context.services.memory_manager.on_shortage(pool, runs.spill)
        else:
            runs.spill()
        cast("RunsOutput", self.output).keep_runs(runs)


class MergeRunsDriver:
    """Merges its range of the runs of all producers."""

    def __init__(self, descriptor: OperatorDescriptor, inputs: Mapping[int, TaskInput]) -> None:
        self._descriptor = descriptor
        self._inputs = inputs
        self._merged: MergedBatches | None = None
        self._received: SortedRuns | None = None
        self.rows_in = 0
        self.bytes_in = 0

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the memory; the producers have finished."""
        self._context = context
        self._output = output
        channels = context.descriptor.gates[0].channels
        self._has_remote = any(is_remote(channel) for channel in channels)
        self._sources = [self._runs_of(channel) for channel in channels if not is_remote(channel)]
        wanted = MERGE_BYTES + sum(source.reader_bytes for source in self._sources)
        self._pool = context.page_pool(self._descriptor, wanted // context.services.memory_manager.page_size)

    def run(self) -> None:
        """Push the rows of the range in order, until the output has enough."""
        operator = self._descriptor.operator
        assert isinstance(operator, MergeRunsOperator | RangeWindowsOperator), f"{operator} merges nothing"
        if self._has_remote:
            self._received = receive_runs(self._context, operator.keys, self._inputs[0])
            self._sources.append(self._received)
        for batch in self.results():
            self._context.check_cancelled()
            self._output.process(batch)
            if self._output.is_satisfied:
                break

    @property
    def _key_range(self) -> KeyRange:
        key_range = self._context.descriptor.gates[0].key_range
        assert key_range is not None, f"{self._context.task_name} was given no range"
        return key_range

    def merged(self, combiner: StateCombiner | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the range in order."""
        key_range = self._key_range
        self._merged = MergedBatches(self._sources, self._pool, key_range.lower, key_range.upper, combiner=combiner)
        for batch in self._merged.batches():
            self.rows_in, self.bytes_in = self._merged.rows_out, self._merged.bytes_in
            yield batch

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield the results over the rows."""
        operator = self._descriptor.operator
        assert isinstance(operator, MergeRunsOperator)
        results = state_results(operator.groups, self._descriptor)
        return map(results, self.merged(state_combiner(operator.groups, self._descriptor)))

    def _runs_of(self, channel: InputChannelDescriptor) -> SortedRuns:
        partition = self._context.services.partition_manager.find(channel.partition)
        if partition is None:
            error = PartitionNotFoundError(f"result partition {channel.partition} is not registered here")
            error.partition = channel.partition
            raise error
        assert isinstance(partition, SortedPartition), f"{channel.partition} holds no sorted runs"
        return cast("SortedRuns", partition.runs)

    def close(self) -> None:
        """Let go of the runs; idempotent."""
        if self._merged is not None:
            self._merged.close()
            self._merged = None
        if self._received is not None:
            self._received.release()
            self._received = None
