"""ExecutionVertex: one subtask of a job; Execution: one attempt to run it.

    ExecutionVertex ── current: Execution, prior attempts
      ├── inputs: ExecutionEdge * ──► IntermediateResultPartition of the producers
      └── partitions: IntermediateResultPartition * (one for each data set of the vertex)

A partition is the place of one subtask's output in the graph; what an attempt really produced is named by the
partition and the attempt together (ResultPartitionId), so that after a retry no consumer reads the old one by mistake.

Source: Flink's ExecutionVertex, Execution, IntermediateResultPartition.
Held by: tests/jobmaster/test_execution_graph.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from engine.clock import Clock
from engine.graph.deployment import FailureInfo, RangeSamples, StagedFile, TaskCounters
from engine.graph.job_graph import IntermediateDataSet, JobEdge, JobVertex
from engine.graph.packed_sizes import KeptSizes
from engine.graph.source_spec import SourceSplit
from engine.graph.subpartition_share import WHOLE
from engine.ids import ExecutionAttemptId, JobVertexId, ResultPartitionId
from engine.jobmaster.execution_state import ExecutionState, check_execution_transition
from engine.jobmaster.index_set import IndexSet
from engine.jobmaster.slot_pool import AllocatedSlot, FormerSlot
from engine.jobmaster.state_times import entered, times_of

_NO_COUNTERS: Final = TaskCounters()


class Execution(msgspec.Struct, eq=False):
    """One attempt. States change through ``transition`` only."""

    attempt: ExecutionAttemptId
    state: ExecutionState = ExecutionState.CREATED
    #: times at which states were entered, packed
    times: bytes = b""
    #: slot that the attempt has, and the place of it once its region has ended
    slot: AllocatedSlot | FormerSlot | None = None
    counters: TaskCounters = _NO_COUNTERS
    failure: FailureInfo | None = None
    staged_files: tuple[StagedFile, ...] = ()
    partition_rows: tuple[int, ...] = ()
    partition_bytes: tuple[int, ...] = ()
    #: bytes of each subpartition of each BLOCKING partition; () once none of them is read any more
    subpartition_bytes: tuple[KeptSizes, ...] = ()
    partition_samples: tuple[RangeSamples, ...] = ()
    #: True if it has finished, and the TaskExecutor that holds its results is gone
    is_lost: bool = False

    def transition(self, target: ExecutionState, clock: Clock, age_ms: int = 0) -> None:
        """Enter a state, at once or some time ago, or raise IllegalTransitionError."""
        check_execution_transition(self.state, target)
        self.state = target
        self.times = entered(self.times, target, clock.wall_ms() - age_ms)

    @property
    def timestamps_ms(self) -> dict[str, int]:
        """Milliseconds since the epoch at which each state was entered, by the names of states."""
        return times_of(self.times)


class IntermediateResultPartition(msgspec.Struct, eq=False):
    """The output of one subtask for one data set."""

    data_set: IntermediateDataSet
    producer: ExecutionVertex
    subpartition_count: int
    consumers: Sequence[ExecutionEdge] = ()
    #: True if the stored results of the current attempt are gone: no longer needed, or lost
    is_released: bool = False
    #: True if a reader found it damaged, or missing
    is_damaged: bool = False
    #: bounds on the first partition of a sorted result: chosen once, and kept for all later attempts
    range_bounds: tuple[bytes, ...] | None = None
    #: subtask indexes of the consumers that have finished; one set for all partitions with the same consumers
    finished_consumers: IndexSet = msgspec.field(default_factory=IndexSet)

    @property
    def id(self) -> ResultPartitionId:
        """Return the id of what the current attempt produces."""
        return ResultPartitionId(self.data_set.id, self.producer.current.attempt)

    @property
    def is_read(self) -> bool:
        """Whether all consumers have finished."""
        return len(self.finished_consumers) == len(self.consumers)

    @property
    def subpartition_bytes(self) -> Sequence[int]:
        """Bytes of each subpartition that the current attempt stored; nothing when it has not finished."""
        reported = self.producer.current.subpartition_bytes
        return reported[self.data_set.id.output_index].sizes() if reported else ()


class ExecutionEdge(msgspec.Struct, frozen=True, eq=False):
    """One subtask reads a subpartition, or several next to each other, or parts of some, of another one's output."""

    job_edge: JobEdge
    partition: IntermediateResultPartition
    consumer: ExecutionVertex
    #: index of the first subpartition
    subpartition_index: int
    subpartition_count: int = 1
    #: parts (subpartition, part) of the producer's result, where the input is read in shares; perhaps none
    parts: tuple[tuple[int, tuple[int, int]], ...] | None = None

    @property
    def filled_subpartitions(self) -> Sequence[int]:
        """Subpartitions that have rows, as far as is known; at least one."""
        wanted = range(self.subpartition_index, self.subpartition_index + self.subpartition_count)
        sizes = self.partition.subpartition_bytes if len(wanted) > 1 else ()
        if not sizes:
            return wanted
        return [index for index in wanted if sizes[index]] or wanted[:1]

    @property
    def channels(self) -> Sequence[tuple[int, tuple[int, int]]]:
        """Subpartitions to read and the parts of them."""
        if self.parts is None:
            return [(index, WHOLE) for index in self.filled_subpartitions]
        return self.parts


class SubtaskInput(Sequence[ExecutionEdge]):
    """The edges of one JobEdge into one subtask."""

    __slots__ = ("job_edge", "partitions", "read_alike")

    #: the edge of the job graph
    job_edge: JobEdge
    #: partitions that the edges lead to, in their order, as one list for all that read the same; not to be changed
    partitions: list[IntermediateResultPartition]
    #: one partition for each set of finished consumers: all of them, but for results that are read whole
    read_alike: list[IntermediateResultPartition]

    @property
    def reads(self) -> list[Sequence[tuple[int, tuple[int, int]]]]:
        """The subpartitions and parts that each edge reads; one entry: all of them read the same."""
        return [edge.channels for edge in self]

    def take_apart(self) -> None:
        """Cut the references to other edges; these are not used any more."""


class ExecutionVertex(msgspec.Struct, eq=False):
    """One subtask."""

    job_vertex: JobVertex
    subtask_index: int
    splits: tuple[SourceSplit, ...]
    current: Execution
    prior: tuple[Execution, ...] = ()
    partitions: tuple[IntermediateResultPartition, ...] = ()
    #: edges of each JobEdge of the vertex, in the order of ``job_vertex.inputs``
    inputs: tuple[SubtaskInput, ...] = ()

    @property
    def id(self) -> tuple[JobVertexId, int]:
        """Vertex and subtask index."""
        return (self.job_vertex.id, self.subtask_index)

    @property
    def name(self) -> str:
        """Name for people: ``join (1/4)``."""
        return f"{self.job_vertex.name} ({self.subtask_index + 1}/{self.job_vertex.parallelism})"

    @property
    def pipelined_inputs(self) -> list[list[IntermediateResultPartition]]:
        """PIPELINED partitions that it reads, by input; all readers of a whole result have one list in common."""
        pipelined = []
        for edges in self.inputs:
            partitions = edges.partitions
            if partitions and partitions[0].data_set.result_type.is_pipelined:
                pipelined.append(partitions)
        return pipelined

    @property
    def is_needed(self) -> bool:
        """Whether a BLOCKING result of it still has to be read."""
        return any(
            partition.data_set.result_type.is_persistent and not partition.is_released and not partition.is_read
            for partition in self.partitions
        )
