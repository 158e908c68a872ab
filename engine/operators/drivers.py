"""The heads of chains: where a task's rows come from.

    SourceDriver    splits -> batches
    InputDriver     one logical input (several gates when it is a union) -> batches, or row pages where the first
                    operator works on them

``run`` pushes everything through ``output`` and returns when the input has ended; the BatchTask then finishes the
chain. Counters are plain ints, written by the task's thread only and read by others for progress.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import pyarrow as pa

from engine.closing import close_all
from engine.exchange.elements import OversizedRow, RowPage
from engine.formats.registry import open_source
from engine.formats.source_reader import (
    CompactReader,
    OpeningReader,
    RunsReader,
    SourceReader,
    is_compact,
    is_filtering,
    is_in_runs,
    is_joining,
    is_noting,
    is_opening,
    is_sharing,
    reads_states,
)
from engine.graph.operator_descriptor import SourceOperator
from engine.operators.awaited_filters import filters_of_consumers
from engine.operators.joined_splits import joined_splits
from engine.operators.operator import Output, RowsOutput, SourceCounts, TaskContext
from engine.operators.scan_threads import ApartReader, ScanThreads
from engine.operators.source_pacing import paced, share_of
from engine.operators.stored_filters import read_stored_filters
from engine.records.adaptive_key_filter import mask_of
from engine.records.opened_batch import opened
from engine.records.top_keys import TopTest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.graph.runtime_filter import RuntimeFilter
    from engine.graph.source_spec import SourceSplit
    from engine.operators.runtime_filters import RuntimeFilters
    from engine.operators.split_queues import SplitQueue
    from engine.operators.task_inputs import TaskInput
    from engine.partitions.partition_router import PartitionRouter
    from engine.records.adaptive_key_filter import AdaptiveKeyFilter
    from engine.records.row_router import RowRouter


class Driver(Protocol):
    """The head of a chain."""

    @property
    def rows_in(self) -> int:
        """Rows taken from other tasks so far."""
        ...

    @property
    def bytes_in(self) -> int:
        """Bytes taken from other tasks so far."""
        ...

    def open(self, context: TaskContext, output: Output) -> None:
        """Prepare."""
        ...

    def run(self) -> None:
        """Push all rows to the output."""
        ...

    def close(self) -> None:
        """Give back what is held; idempotent."""
        ...


class BatchInput(Protocol):
    """The input as batches: from other tasks (TaskInput), or from a source that this task reads (ChainedSource)."""

    @property
    def rows_in(self) -> int:
        """Rows taken so far."""
        ...

    @property
    def bytes_in(self) -> int:
        """Bytes taken so far."""
        ...

    @property
    def is_drained(self) -> bool:
        """Whether all of it must be read, even if the rest is not needed."""
        ...

    def batches(self, router: RowRouter | None = None, /) -> Iterator[pa.RecordBatch]:
        """Yield everything; a ``router`` takes rows of pages as they are."""
        ...


class SourceDriver:
    """Reads the splits of a subtask.

    ``is_whole``: all of the source, for which no other task makes filters. ``filters``: inputs with stored ones.
    """

    def __init__(
        self, descriptor: OperatorDescriptor, *, is_whole: bool = False, filters: Sequence[TaskInput] = ()
    ) -> None:
        self._descriptor = descriptor
        self._is_whole = is_whole
        self._filter_inputs = filters
        #: filters that others have made for it: stored ones, and those of joins that run
        self._stored: RuntimeFilters | None = None
        self._awaited: RuntimeFilters | None = None
        #: splits that other subtasks may read
        self._queue: SplitQueue | None = None
        #: readers, one a thread, and what reads with several
        self._readers: list[SourceReader] = []
        self._scan: ScanThreads | None = None
        #: a source takes nothing from other tasks
        self.rows_in = 0
        self.bytes_in = 0

    def open(self, context: TaskContext, output: Output) -> None:
        """Open the reader over the assigned splits."""
        operator = self._descriptor.operator
        assert isinstance(operator, SourceOperator)
        self._context = context
        self._output = output
        splits = operator.spec.splits if self._is_whole else context.descriptor.splits
        threads = max(1, min(operator.threads, len(splits)))
        self._readers = [open_source(operator.spec, splits, context.spill_space) for _ in range(threads)]
        self._reader = self._readers[0]
        if context.descriptor.held_states and reads_states(self._reader):
            self._reader.read_states(context.descriptor.held_states)
        attempt = context.descriptor.attempt
        if context.descriptor.shares_splits and not self._is_whole and is_sharing(self._reader):
            key = (context.descriptor.job_id, attempt.vertex, attempt.attempt_number)
            self._queue = context.services.split_queues.enter(key, self._taken(splits, 1))
            self._reader.take_from(self._queue.take)
        if output.compact_columns and is_compact(self._reader):
            for reader in cast("list[CompactReader]", self._readers):
                reader.keep_compact(output.compact_columns)
        if output.takes_opened and is_opening(self._reader):
            for opening in cast("list[OpeningReader]", self._readers):
                opening.keep_opened()
        self._reader_filters = is_filtering(self._reader)
        if threads > 1:
            readers = cast("list[ApartReader]", self._readers)
            ahead = output.ahead if self._reader_filters else lambda: None
            taken = self._taken(splits, threads)
            self._scan = ScanThreads(readers, taken, context, keeps_runs=operator.in_runs, ahead=ahead)
        elif self._queue is None and is_joining(self._reader):
            left = iter(self._taken(splits, 1))
            self._reader.take_from(partial(next, left, None))
        self._run_reader: RunsReader | ScanThreads | None = None
        if operator.in_runs and not self._is_whole and is_in_runs(self._reader):
            self._reader.is_in_runs = True
            self._run_reader = self._scan or self._reader
        #: filters of each reader
        self._tests: list[list[AdaptiveKeyFilter]] = [[] for _ in self._readers]
        self._top: TopTest | None = None
        if operator.top is not None and is_filtering(self._reader):
            self._top = TopTest(operator.top.key, operator.top.count, is_only_key=operator.top.is_only_key)
            self._reader.keep_first(self._top)
        context.sources[self._descriptor.node_id] = self.counts

    def _taken(self, splits: Sequence[SourceSplit], threads: int) -> Sequence[SourceSplit]:
        """Return the splits as they are taken, by this subtask's threads: joined, where none needs to be by itself."""
        operator = self._descriptor.operator
        assert isinstance(operator, SourceOperator)
        may_join = is_joining(self._reader) and not operator.in_runs and operator.top is None
        return joined_splits(splits, threads) if may_join else splits

    def filter_by(self, filters: RuntimeFilters, wanted: Sequence[RuntimeFilter]) -> None:
        """Leave out rows that a join has no partner for; to be called before the first one is read."""
        for reader, tests in zip(self._readers, self._tests, strict=True):
            tests.extend(filters.tests(wanted))
            if is_filtering(reader):
                reader.filter_by(tests)

    def _await_filters(self) -> None:
        """Read stored filters, and wait for those of the joins that rows are sent to, where these make some."""
        if self._is_whole:
            return
        if self._filter_inputs:
            operator = self._descriptor.operator
            assert isinstance(operator, SourceOperator)
            self._stored = read_stored_filters(self._filter_inputs)
            if self._stored is not None:
                self.filter_by(self._stored, operator.filters)
        self._awaited, wanted = filters_of_consumers(self._context)
        if self._awaited is not None:
            self.filter_by(self._awaited, wanted)

    def run(self) -> None:
        """Read until the splits end or nothing more is needed."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Read as ``run`` does, one step after each batch."""
        self._await_filters()
        takes_opened = self._output.takes_opened
        #: filters of joins, where the reader does not leave out rows itself
        tests = [] if self._reader_filters else self._tests[0]
        for batch in self._batches():
            self._context.check_cancelled()
            self._context.arrow_peak.look()
            left = _left_of(batch, tests) if tests else batch
            if self._run_reader is not None:
                self._context.run = self._run_reader.run
            if left.num_rows:
                self._output.process(opened(left) if takes_opened else left)
            del batch, left  # a wide one is not kept while the next is read
            yield
            if self._output.is_satisfied:
                self._leave_splits()
                break

    def counts(self) -> SourceCounts:
        """Return the counts of what was read so far; from any thread."""
        is_noted = not self._is_whole  # small sources have no bad rows and no notes
        return SourceCounts(
            node_id=self._descriptor.node_id,
            bad_rows=sum(reader.bad_rows for reader in self._readers) if is_noted else 0,
            notes=dict(self._reader.notes) if is_noted and is_noting(self._reader) else {},
            pruned_groups=sum(reader.pruned_groups for reader in self._readers),
            filtered_rows=(0 if self._top is None else self._top.rows_dropped)
            + sum(test.rows_dropped for tests in self._tests for test in tests),
        )

    def _batches(self) -> Iterable[pa.RecordBatch]:
        """Return the reader's batches, held back where the source has a rate limit."""
        operator = self._descriptor.operator
        assert isinstance(operator, SourceOperator)
        if operator.rate_limit is None:
            return self._reader if self._scan is None else self._scan
        own = self._context.descriptor.splits
        parallelism = self._context.descriptor.parallelism
        share = 1 / parallelism if operator.is_replicated else share_of(operator.spec.splits, own)
        return paced(self._reader, operator.rate_limit * share, self._context.check_cancelled)

    def _leave_splits(self) -> None:
        if self._queue is not None:
            self._queue.leave()

    def close(self) -> None:
        """Close the open file."""
        self._leave_splits()
        for filters in (self._stored, self._awaited):
            if filters is not None:
                filters.close()
        if self._scan is not None:
            self._scan.close()
        else:
            close_all([reader.close for reader in self._readers])
        if self._readers:  # no circle through the task: what it leaves goes at once
            counts = self.counts()
            self._context.sources[counts.node_id] = lambda: counts


def _left_of(batch: pa.RecordBatch, tests: Sequence[AdaptiveKeyFilter]) -> pa.RecordBatch:
    """Return the rows that filters of joins leave."""
    from engine.records.kept_rows import kept_rows

    mask = mask_of(tests, batch)
    return batch if mask is None else kept_rows(batch, mask)


class InputDriver:
    """Passes on one logical input."""

    def __init__(self, task_input: TaskInput) -> None:
        self._input = task_input
        self._taken_rows = 0
        self._router: PartitionRouter | None = None

    @property
    def rows_in(self) -> int:
        """Rows taken so far."""
        return self._input.rows_in + self._taken_rows + (self._router.row_count if self._router else 0)

    @property
    def bytes_in(self) -> int:
        """Bytes taken so far."""
        return self._input.bytes_in + (self._router.size_bytes if self._router else 0)

    def open(self, context: TaskContext, output: Output) -> None:
        """Remember the output; gates are opened by the task."""
        self._output = output

    def run(self) -> None:
        """Push batches, or pages where the output works on rows."""
        output = self._output
        if output.takes_pages:
            self._push_rows(cast("RowsOutput", output))
            return
        self._router, takes_opened, has_begun = output.router, output.takes_opened, False
        for batch in self._input.batches(self._router):
            if not has_begun and self._input.has_whole_groups:
                output.say_whole_groups()
            has_begun = True
            # A satisfied limit does not stop the input: its producers run on, so it is drained.
            if not output.is_satisfied:
                output.process(opened(batch) if takes_opened else batch)

    def _push_rows(self, output: RowsOutput) -> None:
        for element in self._input.elements():
            if isinstance(element, RowPage):
                try:
                    output.process_page(element.segment, element.size)
                finally:
                    element.recycle()
            elif isinstance(element, OversizedRow):
                output.process_rows(element.take())
            else:
                output.process(element)
            self._taken_rows = output.rows_in

    def close(self) -> None:
        """Do nothing: the task closes its inputs."""
