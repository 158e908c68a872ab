"""Deployment: what a TaskExecutor needs to run one attempt, and what it reports, as plain data.

    TaskDeploymentDescriptor
    ├── chain, subtask index, parallelism, assigned splits, pages of each operator
    ├── InputGateDescriptor * inputs ── ProducerPlace * producers (partition, where), the same for many subtasks
    │                                └─ channels: InputChannelDescriptor *, made when they are asked for
    └── ResultPartitionDescriptor * outputs (id, type, subpartitions, partitioner)

    TaskReport ── state, failure, counters, staged files of sinks

Source: Flink's TaskDeploymentDescriptor, InputGateDeploymentDescriptor, ResultPartitionDeploymentDescriptor.
Held by: tests/operators/test_operator_meters.py
Held by: tests/jobmaster/test_job_journal.py
Held by: tests/rpc/test_codec.py
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from engine.graph.exact import Exact
from engine.graph.job_graph import JobArtifact
from engine.graph.operator_descriptor import OperatorDescriptor
from engine.graph.packed_sizes import packed_sizes
from engine.graph.plan_schema import PlanSchema
from engine.graph.runtime_filter import RuntimeFilter
from engine.graph.ship_strategy import PartitionerSpec, ResultPartitionType
from engine.graph.source_spec import SourceSplit
from engine.graph.subpartition_share import WHOLE
from engine.ids import AllocationId, ExecutionAttemptId, JobId, ResultPartitionId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class PartitionLocation(StrEnum):
    """The location of a result partition, seen from the consumer."""

    LOCAL = "LOCAL"
    REMOTE = "REMOTE"


class ProducerPlace(Exact, frozen=True, gc=False):
    """The result of one producer, and where it is. ``address`` is the data plane address when REMOTE, else ""."""

    partition: ResultPartitionId
    location: PartitionLocation
    address: str = ""


class InputChannelDescriptor(msgspec.Struct, frozen=True, gc=False):
    """One producer of a gate. ``address`` is the data plane address when REMOTE, else ""."""

    partition: ResultPartitionId
    location: PartitionLocation
    subpartition_index: int
    address: str = ""
    #: part of the subpartition, [begin, end) of PARTS
    part: tuple[int, int] = WHOLE


class KeyRange(Exact, frozen=True):
    """The rows with lower <= key < upper, keys as ``engine.sort.key_bytes`` writes them; None: no bound."""

    lower: bytes | None = None
    upper: bytes | None = None


class RangeSamples(msgspec.Struct, frozen=True):
    """Keys of a sorted result partition, in order, and the bytes of rows that each stands for."""

    keys: tuple[bytes, ...] = ()
    weights: tuple[int, ...] = ()


class InputGateDescriptor(Exact, frozen=True):
    """One data set that a subtask consumes."""

    input_index: int
    schema: PlanSchema
    result_type: ResultPartitionType
    #: producers that are read; subtasks of one process have the same ones, if they read all of them
    producers: tuple[ProducerPlace, ...]
    #: (subpartition, part) * that are read of each producer; a single entry: of every one
    reads: tuple[tuple[tuple[int, tuple[int, int]], ...], ...]
    #: range of rows of a sorted result that this subtask merges
    key_range: KeyRange | None = None
    #: True if the channels are read one after the other
    in_order: bool = False
    #: True if every subtask of the consumer gets all rows
    is_broadcast: bool = False

    @property
    def channels(self) -> tuple[InputChannelDescriptor, ...]:
        """The channels, producer by producer."""
        reads = self.reads * len(self.producers) if len(self.reads) == 1 else self.reads
        return tuple(
            InputChannelDescriptor(place.partition, place.location, subpartition, place.address, part)
            for place, own in zip(self.producers, reads, strict=True)
            for subpartition, part in own
        )


class ResultPartitionDescriptor(Exact, frozen=True):
    """One data set that a subtask produces. ``subpartition_count`` is fixed here."""

    id: ResultPartitionId
    result_type: ResultPartitionType
    partitioner: PartitionerSpec
    subpartition_count: int
    consumer_parallelism: int
    schema: PlanSchema
    #: filters for its source that its consumers make
    filters: tuple[RuntimeFilter, ...] = ()
    #: filters of the consumers that run in other processes; the others offer theirs in this one
    filter_places: tuple[ProducerPlace, ...] = ()


class Staging(msgspec.Struct, frozen=True):
    """The place where attempts of one sink write, and the output that it belongs to. One a sink and job."""

    path: str
    #: name of the output, the same in every process
    output: str = ""
    #: name of the OutputTarget
    target: str = "folder"


class SinkStaging(Exact, frozen=True):
    """The place for the attempt files of a sink, and the name of its OutputTarget."""

    sink_index: int
    staging_path: str
    target: str = "folder"


class PublishedOutput(msgspec.Struct, frozen=True):
    """One output that was published, and what its target tells of it: the version of a table, for example."""

    sink_index: int
    output: str
    facts: dict[str, int | str] = {}


class TaskDeploymentDescriptor(Exact, frozen=True):
    """The description of one attempt of one subtask, complete."""

    job_id: JobId
    job_name: str
    attempt: ExecutionAttemptId
    allocation_id: AllocationId
    vertex_name: str
    subtask_index: int
    parallelism: int
    max_parallelism: int
    chain: tuple[OperatorDescriptor, ...]
    splits: tuple[SourceSplit, ...]
    gates: tuple[InputGateDescriptor, ...]
    partitions: tuple[ResultPartitionDescriptor, ...]
    sinks: tuple[SinkStaging, ...]
    #: pages of each operator of the chain
    pages: tuple[int, ...]
    configuration: dict[str, str]
    #: modules that the job's Python functions import
    artifacts: tuple[JobArtifact, ...] = ()
    #: source with its chained operators, whose rows the join at the head of the chain probes
    feed: tuple[OperatorDescriptor, ...] = ()
    #: source with its chained operators, from whose rows the join at the head of the chain builds its table
    build_feed: tuple[OperatorDescriptor, ...] = ()
    #: True if it may read splits of other subtasks in its process, and they its own (``shared_splits``)
    shares_splits: bool = False
    #: names of the states in which places that change are read (``held_states``)
    held_states: dict[str, str] = msgspec.field(default_factory=dict)


class StagedFile(msgspec.Struct, frozen=True):
    """One file that an attempt finished in its sink's staging folder; without a name: there were no rows for one."""

    sink_index: int
    subtask_index: int
    #: file name inside the staging folder
    name: str
    row_count: int
    size_bytes: int
    #: statistics of columns as JSON, for records, else ""
    statistics_json: str = ""
    #: folder in the target: "year=2024/kind=a"
    folder: str = ""


class OperatorCounters(msgspec.Struct, frozen=True):
    """The counters of one operator of a task; operators chained together have one each. Times are its own."""

    name: str
    bytes_in: int = 0
    spilled_bytes: int = 0
    #: node of the optimized plan, which several operators may share; -1: unknown
    node_id: int = -1
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    #: time at work: without waits for input, the operators behind it in the chain, or sending rows to other tasks
    time_us: int = 0
    #: processor time of the Python worker that runs its function, known at the end
    function_us: int = 0
    #: bytes of its pools, and the peak of those in use
    managed_bytes: int = 0
    managed_bytes_peak: int = 0
    #: number of row groups that a scan skipped by its filter, beside those that are no splits of the plan
    pruned_groups: int = 0
    #: number of rows that a scan dropped since a join has no partner for them, or a top-n better ones
    filtered_rows: int = 0
    #: bytes that it spilled before they were compressed: as large as they were in pages
    spilled_raw_bytes: int = 0
    #: time that opening its function took, before the first row: ``setup=`` or ``open()``
    opening_us: int = 0


class TaskCounters(msgspec.Struct, frozen=True):
    """The counters of a task so far. Bytes are those of Arrow batches or row pages that crossed its edge."""

    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    #: bytes that its operators spilled, see ``operators``; results stored for others are in ``stored_bytes``
    spilled_bytes: int = 0
    bad_rows: int = 0
    #: counters of rich functions by name, known at the end of the task
    functions: dict[str, int] = {}
    managed_bytes_peak: int = 0
    #: peak of network buffers in its result partitions
    network_buffers_peak: int = 0
    #: time spent waiting for room for its output, and for input, so far
    back_pressured_ms: int = 0
    idle_ms: int = 0
    #: peak of Arrow's memory in the process while the task ran, and of the memory of its Python workers together
    arrow_bytes_peak: int = 0
    worker_bytes_peak: int = 0
    #: counters in order of the chain
    operators: tuple[OperatorCounters, ...] = ()
    #: bytes of results on disk
    stored_bytes: int = 0
    #: time to encode batches for other tasks and send them, without waiting for room
    output_us: int = 0
    #: notes for the author of the program, by topic: each topic is reported once
    notes: dict[str, str] = {}
    #: requests, bytes read and bytes written, by scheme and bucket of the object store
    stores: dict[str, tuple[int, int, int]] = {}
    #: time on a processor of the thread that runs the task, and time it was ready to run and had none; 0: unknown
    cpu_us: int = 0
    runnable_us: int = 0


def store_totals(counts: Iterable[Mapping[str, tuple[int, int, int]]]) -> dict[str, tuple[int, int, int]]:
    """Return the sums of (requests, bytes read, bytes written) by store."""
    totals: dict[str, tuple[int, int, int]] = {}
    for each in counts:
        for store, (requests, read, written) in each.items():
            before = totals.get(store, (0, 0, 0))
            totals[store] = before[0] + requests, before[1] + read, before[2] + written
    return totals


_ADDED = tuple(name for name in OperatorCounters.__struct_fields__ if name not in ("name", "node_id"))


def operator_totals(subtasks: Iterable[tuple[OperatorCounters, ...]]) -> tuple[OperatorCounters, ...]:
    """Return the sums over subtasks of one vertex, which have the same operators; of peaks the largest."""
    listed = [operators for operators in subtasks if operators]
    return tuple(
        msgspec.structs.replace(
            same[0],
            **{
                name: max(values) if name.endswith("_peak") else sum(values)
                for name in _ADDED
                for values in ([getattr(each, name) for each in same],)
            },
        )
        for same in zip(*listed, strict=False)
    )


class FailureInfo(msgspec.Struct, frozen=True):
    """A failure as data: root cause first, then where."""

    #: class name of the root cause: "ValueError", "DataError"
    type_name: str
    message: str
    #: class of the engine that the client raises: "DataError", "MemoryBudgetError", or "JobExecutionError"
    error_class: str = "JobExecutionError"
    retryable: bool = False
    #: user's function, file and line, or ""
    function: str = ""
    #: the current row, shortened, or ""
    row: str = ""
    task: str = ""
    task_manager: str = ""
    #: whole traceback
    details: str = ""
    #: result partition that could not be read: lost, damaged or out of reach
    partition: ResultPartitionId | None = None


def failure_text(failure: FailureInfo) -> str:
    """Return a failure as text: what it is in the first line, then the user's function, the row, the traceback."""
    lines = [f"{failure.type_name}: {failure.message}"]
    if failure.function:
        lines.append(f"  in function {failure.function}")
    if failure.row:
        lines.append(f"  row: {failure.row}")
    return "\n".join([*lines, failure.details]).rstrip()


class TaskReport(msgspec.Struct, frozen=True):
    """State change of an attempt: ``state`` is a name of engine.jobmaster.execution_state.ExecutionState."""

    attempt: ExecutionAttemptId
    state: str
    counters: TaskCounters = TaskCounters()
    failure: FailureInfo | None = None
    staged_files: tuple[StagedFile, ...] = ()
    #: rows and bytes per produced partition, in order of the descriptors
    partition_rows: tuple[int, ...] = ()
    partition_bytes: tuple[int, ...] = ()
    #: bytes of each subpartition of each BLOCKING partition, packed; () for others
    subpartition_bytes: tuple[bytes, ...] = msgspec.field(name="packed_subpartition_bytes", default=())
    #: sampled keys of each sorted partition; none for others
    partition_samples: tuple[RangeSamples, ...] = ()
    #: bytes of subpartitions as numbers, in a journal of an earlier version; () once it is read
    subpartition_numbers: tuple[tuple[int, ...], ...] = msgspec.field(name="subpartition_bytes", default=())
    #: milliseconds for which it was kept before it was sent
    age_ms: int = 0

    def __post_init__(self) -> None:
        if self.subpartition_numbers:
            packed = tuple(packed_sizes(each) for each in self.subpartition_numbers)
            msgspec.structs.force_setattr(self, "subpartition_bytes", packed)
            msgspec.structs.force_setattr(self, "subpartition_numbers", ())


class SubtaskResult(msgspec.Struct, frozen=True):
    """Counters of a finished subtask, for the JobResult."""

    index: int
    counters: TaskCounters
    attempts: int = 1


class VertexResult(msgspec.Struct, frozen=True):
    """Counters of a vertex's subtasks, for the JobResult."""

    name: str
    subtasks: tuple[SubtaskResult, ...]
