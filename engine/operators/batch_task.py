"""BatchTask: the whole of one attempt, from its descriptor to its last counter.

    partitions registered ─► writers, chain, driver opened (tail first) ─► driver.run() ─► chain finished (head first)
        ─► partitions finished ─► everything closed, in reverse, also after a failure

On failure or cancel the partitions are failed, so that consumers learn why. ``cancel`` may come from any thread at
any time: it closes gates and partitions, which wakes every wait, and ends Python workers.

Source: Flink's BatchTask and AbstractInvokable.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from engine.closing import close_all
from engine.config.loader import configuration_from_texts
from engine.config.options import BUFFER_TIMEOUT
from engine.exchange.partition_builder import new_partition
from engine.exchange.pipelined_partition import PipelinedPartition
from engine.exchange.record_writer_builder import RecordWriterBuilder, Writer
from engine.exchange.result_partition import ResultPartition
from engine.exchange.sorted_partition import KeptRuns, SortedPartition
from engine.exchange.sorted_runs_writer import SortedRunsWriter
from engine.expressions.schema_bridge import to_arrow_schema
from engine.gateways.insight import TaskActivity
from engine.graph.chained_sources import JOIN_INPUTS
from engine.graph.deployment import (
    InputGateDescriptor,
    OperatorCounters,
    RangeSamples,
    StagedFile,
    TaskCounters,
    TaskDeploymentDescriptor,
)
from engine.graph.task_wait import TaskWait
from engine.insight.processor_time import ProcessorTime
from engine.operators.chain_link import ChainEnd
from engine.operators.chained_source import ChainedSource
from engine.operators.drivers import Driver
from engine.operators.meter import Meter
from engine.operators.operator import ChainedOperator, Output, SourceCounts, TaskContext
from engine.operators.operator_meters import ChainMeters, with_edges
from engine.operators.registry import is_led, make_driver, make_operator, reads_below
from engine.operators.task_inputs import TaskInput, with_rows_below
from engine.operators.task_services import TaskServices
from engine.operators.task_waits import wait_of
from engine.storage.store_counters import counted

_BAD_ROWS: Final = attrgetter("bad_rows")
_IDLE_NS: Final = attrgetter("idle_ns")
_ROWS_OUT: Final = attrgetter("rows_out")
_SIZE_BYTES: Final = attrgetter("size_bytes")


class TaskOutput(ChainEnd):
    """The end of a chain: every batch goes to the writer of each data set of the vertex."""

    def __init__(self) -> None:
        self.writers: list[Writer] = []
        #: the data sets, in the same order
        self.partitions: list[ResultPartition] = []
        #: number of rows that left the task as sorted runs; batches are counted before this one
        self.kept_rows = 0
        self.kept_bytes = 0

    #: True if its writers encode rows of batches, or pass them on as they are
    takes_pages = False
    takes_opened = True
    router = None
    compact_columns: frozenset[str] = frozenset()
    #: other tasks decide for themselves whether they need more
    is_satisfied = False

    def ahead(self) -> None:
        """Return None: what is written is in order."""

    def say_whole_groups(self) -> None:
        """Let consumers know it."""
        for partition in self.partitions:
            partition.life.has_whole_groups = True

    def keep_runs(self, runs: KeptRuns) -> None:
        """Pass sorted runs to the one data set that takes them."""
        (writer,) = self.writers
        assert isinstance(writer, SortedRunsWriter), "runs go to a sorted partition"
        writer.keep(runs)
        self.kept_rows += writer.rows
        self.kept_bytes += writer.bytes


class BatchTask:
    """One attempt of one subtask.

    Args:
        descriptor: what to run.
        services: of the TaskExecutor.
    """

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        services: TaskServices,
    ) -> None:
        self._descriptor = descriptor
        self._services = services
        self._context = TaskContext(descriptor, services, configuration_from_texts(descriptor.configuration))
        self._lock = threading.Lock()
        self._partitions: list[ResultPartition] = []  # guarded by: self._lock
        self._inputs: dict[int, TaskInput] = {}  # guarded by: self._lock
        self._output = TaskOutput()
        #: meter before the output
        self._output_meter: Meter | None = None
        self._operators: list[ChainedOperator] = []
        self._driver: Driver | None = None
        #: sources that the driver reads itself: of the rows that a join probes with, and of those that it builds from
        self._feed: ChainedSource | None = None
        self._build_feed: ChainedSource | None = None
        self._meters = ChainMeters(descriptor.chain, is_led(descriptor.chain[0]))
        self._processor = ProcessorTime()

    def run(self) -> None:
        """Run the attempt to its end; raises what made it fail, or TaskCancelledError."""
        with counted(self._context.store_traffic), self._processor.of_this_thread():
            self._run()

    def _run(self) -> None:
        try:
            self._open()
            assert self._driver is not None
            self._meters.driving.run(self._driver.run)
            for index, operator in enumerate(self._operators):
                self._meters.finish(index, operator.finish)
            for writer in self._output.writers:
                writer.finish()
            self._context.check_cancelled()
        except BaseException as error:
            # Before the partitions fail: that fails consumers, and their failure has this attempt cancelled as well.
            is_consequence = self._context.is_cancelled
            for partition in self._partitions:
                partition.fail(error)
            if is_consequence:
                self._context.check_cancelled()
            raise
        finally:
            self._close()

    def cancel(self) -> None:
        """Stop the attempt; from any thread, idempotent."""
        with self._lock:
            self._context.cancel()
            for task_input in self._inputs.values():
                task_input.cancel()
            for partition in self._partitions:
                partition.cancel()
        for operator in list(self._operators):
            operator.cancel()

    def counters(self) -> TaskCounters:
        """Return the counters of the attempt so far; from any thread."""
        self._context.count_resources()
        driver = self._driver
        sources = [counts() for counts in tuple(self._context.sources.values())]
        rows_out, bytes_out = self._given()
        idle_ns = sum(map(_IDLE_NS, tuple(self._inputs.values())))
        blocked_ns = buffers_peak = file_bytes = 0
        spilled_bytes = self._context.spilled_bytes
        for partition in tuple(self._partitions):
            blocked_ns += partition.blocked_ns
            buffers_peak += partition.buffers_peak
            file_bytes += partition.file_bytes
            spilled_bytes += partition.spilled_bytes
        worked_us, runnable_us = self._processor.times_us()
        for processor in tuple(self._context.helpers):
            worked_us += processor.times_us()[0]
        taken = (0, 0) if driver is None else (driver.rows_in, driver.bytes_in)
        return TaskCounters(
            rows_in=taken[0],
            rows_out=rows_out,
            bytes_in=taken[1],
            bytes_out=bytes_out,
            spilled_bytes=spilled_bytes,
            bad_rows=sum(map(_BAD_ROWS, sources)),
            functions=self._context.function_counters,
            notes={name: text for source in sources for name, text in source.notes.items()},
            stores=self._context.store_traffic.by_store(),
            managed_bytes_peak=self._context.pages_peak * self._services.memory_manager.page_size,
            network_buffers_peak=buffers_peak,
            arrow_bytes_peak=self._context.arrow_peak.bytes,
            worker_bytes_peak=self._context.worker_bytes_peak,
            stored_bytes=file_bytes,
            operators=self._operator_counters(idle_ns, taken, (rows_out, bytes_out), sources),
            back_pressured_ms=blocked_ns // 1_000_000,
            idle_ms=(idle_ns + self._context.filter_wait_ns) // 1_000_000,
            output_us=max(0, self._meters.output_ns - blocked_ns) // 1000,
            cpu_us=worked_us,
            runnable_us=runnable_us,
        )

    def _given(self) -> tuple[int, int]:
        """Return the rows and bytes that left the task."""
        output, meter = self._output, self._output_meter
        rows, size_bytes = (0, 0) if meter is None else (meter.rows, meter.bytes)
        return (
            output.kept_rows + rows + sum(map(_ROWS_OUT, tuple(self._operators))),
            output.kept_bytes + size_bytes + sum(map(_SIZE_BYTES, tuple(self._context.staged_files))),
        )

    def _operator_counters(
        self, idle_ns: int, taken: tuple[int, int], given: tuple[int, int], sources: Sequence[SourceCounts]
    ) -> tuple[OperatorCounters, ...]:
        """Return the counters of the feeds, if there are any, then those of the chain."""
        driver, feed, build_feed, accounts = self._driver, self._feed, self._build_feed, self._context.accounts
        filter_wait_ns = self._context.filter_wait_ns
        if driver is None:
            return ()
        fed_ns = filter_wait_ns if feed is None else feed.meters.driving.total_ns
        fed_ns += 0 if build_feed is None else build_feed.meters.driving.total_ns
        operators = with_edges(self._meters.counters(accounts, idle_ns + fed_ns), taken, given)
        if build_feed is not None:
            operators = (*build_feed.meters.counters(accounts), *operators)
        if feed is not None:
            operators = (*feed.meters.counters(accounts, filter_wait_ns), *operators)
        for source in sources:
            if source.pruned_groups or source.filtered_rows:
                operators = tuple([_with_left_out(each, source) for each in operators])
        return operators

    def activity(self) -> TaskActivity:
        """Return the current activity of the attempt; from any thread."""
        with self._lock:
            partitions, inputs = tuple(self._partitions), tuple(self._inputs.values())
        if any(partition.is_waiting for partition in partitions):
            return TaskActivity.BACK_PRESSURED
        if any(task_input.is_waiting for task_input in inputs):
            return TaskActivity.IDLE
        return TaskActivity.BUSY

    def wait(self) -> TaskWait | None:
        """Return the current wait of the attempt, None while it works; from any thread."""
        with self._lock:
            partitions, inputs = tuple(self._partitions), tuple(self._inputs.values())
        operators = tuple(self._operators)
        return wait_of(self._descriptor, inputs, partitions, operators, self._context.waits_for)

    def staged_files(self) -> tuple[StagedFile, ...]:
        """Return the files that sinks of this attempt have finished."""
        return tuple(self._context.staged_files)

    def partition_rows(self) -> tuple[int, ...]:
        """Return rows written to each result partition, in order of the descriptor."""
        return tuple(partition.rows for partition in self._partitions)

    def partition_bytes(self) -> tuple[int, ...]:
        """Return bytes written to each result partition, in order of the descriptor."""
        return tuple(partition.total_bytes for partition in self._partitions)

    def subpartition_bytes(self) -> tuple[bytes, ...]:
        """Return bytes of each subpartition of each result partition, () for PIPELINED ones."""
        return tuple(partition.subpartition_bytes for partition in self._partitions)

    def partition_samples(self) -> tuple[RangeSamples, ...]:
        """Return keys of each sorted partition, nothing for others."""
        return tuple(
            partition.samples() if isinstance(partition, SortedPartition) else RangeSamples()
            for partition in self._partitions
        )

    def _open(self) -> None:
        timeout_ms = self._context.configuration.get(BUFFER_TIMEOUT)
        folders = self._services.partition_folders.of_job(self._descriptor.job_id.value)
        for descriptor in self._descriptor.partitions:
            partition = new_partition(descriptor, self._services.network_pool, folders)
            with self._lock:
                self._partitions.append(partition)
            self._services.partition_manager.register(partition)
            self._context.check_cancelled()
            builder = RecordWriterBuilder(partition, to_arrow_schema(descriptor.schema))
            builder.with_subtask(self._descriptor.subtask_index)
            if self._context.shares_values:
                builder.with_value_owner(self._context.value_owner())
            writer = builder.with_timeout(timeout_ms).build()
            self._output.writers.append(writer)
            self._output.partitions.append(partition)
            if isinstance(partition, PipelinedPartition):
                self._services.output_flusher.register(writer, timeout_ms)
        self._open_inputs()
        self._open_chain()

    def _open_inputs(self) -> None:
        by_input: dict[int, list[InputGateDescriptor]] = defaultdict(list)
        for gate in self._descriptor.gates:
            by_input[gate.input_index].append(with_rows_below(gate) if reads_below(self._descriptor.chain[0]) else gate)
        with self._lock:
            self._inputs = {index: TaskInput(gates, self._services) for index, gates in by_input.items()}
        self._context.check_cancelled()

    def _open_chain(self) -> None:
        """Make driver and operators, opened from the tail so that each finds its output ready."""
        head, *rest = self._descriptor.chain
        chained = rest if is_led(head) else [head, *rest]
        operators = [make_operator(descriptor) for descriptor in chained]
        self._output_meter = self._meters.before(self._output)
        output: Output = self._output_meter
        for operator in reversed(operators):
            operator.open(self._context, output)
            self._operators.insert(0, operator)
            self._context.check_cancelled()
            output = self._meters.before(operator)
        if self._descriptor.feed:
            filters = [task_input for index, task_input in self._inputs.items() if index >= JOIN_INPUTS]
            # a join makes of opened batches such, and its table keeps none of them
            self._feed = ChainedSource(self._descriptor.feed, filters=filters, takes_opened=output.takes_opened)
            self._feed.open(self._context)
        if self._descriptor.build_feed:
            self._build_feed = ChainedSource(self._descriptor.build_feed, is_whole=True)
            self._build_feed.open(self._context)
        self._driver = make_driver(head, self._inputs, self._operators, self._feed, self._build_feed)
        self._driver.open(self._context, output)

    def _close(self) -> None:
        """Close everything; every step runs, the first error is raised."""
        steps: list[Callable[[], None]] = []
        if self._driver is not None:
            steps.append(self._driver.close)
        steps.extend(feed.close for feed in (self._feed, self._build_feed) if feed is not None)
        steps.extend(operator.close for operator in self._operators)
        for writer in self._output.writers:
            self._services.output_flusher.unregister(writer)
            steps.append(writer.close)
        steps.extend(task_input.close for task_input in self._inputs.values())
        steps.append(self._context.close)
        close_all(steps)


def _with_left_out(operator: OperatorCounters, source: SourceCounts) -> OperatorCounters:
    if operator.node_id != source.node_id:
        return operator
    return msgspec.structs.replace(operator, pruned_groups=source.pruned_groups, filtered_rows=source.filtered_rows)
