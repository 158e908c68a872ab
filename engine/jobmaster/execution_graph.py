"""ExecutionGraph: the JobGraph at run time, with one vertex for each subtask.

    JobVertex            ──► ExecutionJobVertex ──► ExecutionVertex * parallelism ──► Execution (attempts)
    IntermediateDataSet  ──► IntermediateResult ──► IntermediateResultPartition * producers
    JobEdge              ──► ExecutionEdge * (pairs of the distribution pattern), made when it is asked for

``build_execution_graph`` assigns splits and connects subtasks; afterwards only attempts come and go, and run-time
decisions change what has not begun (``graph_revision``). State reports go through ``update``, which finds the attempt
and ignores those that are not current.

Source: Flink's ExecutionGraph, ExecutionJobVertex and IntermediateResult.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter
from typing import Final

import msgspec

from engine.clock import Clock
from engine.graph.deployment import TaskReport
from engine.graph.job_graph import IntermediateDataSet, JobGraph, JobVertex
from engine.graph.packed_sizes import kept_sizes
from engine.graph.source_spec import SourceSplit
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, ResourceId, ResultPartitionId
from engine.jobmaster.edge_pattern import subpartition_count
from engine.jobmaster.execution_edges import connect
from engine.jobmaster.execution_state import STATES_AFTER_REPORT, ExecutionState
from engine.jobmaster.execution_vertex import Execution, ExecutionVertex, IntermediateResultPartition
from engine.jobmaster.index_set import IndexSet
from engine.jobmaster.split_assignment import assign_splits
from engine.jobmaster.state_times import entered

_SUBTASKS: Final = attrgetter("subtasks")


class IntermediateResult(msgspec.Struct, eq=False):
    """A data set with the partitions of all producers."""

    data_set: IntermediateDataSet
    partitions: list[IntermediateResultPartition]
    #: subtask indexes of the producers that have finished
    finished_producers: IndexSet = msgspec.field(default_factory=IndexSet)

    @property
    def is_finished(self) -> bool:
        """Whether every producer has finished."""
        return len(self.finished_producers) == len(self.partitions)


class ExecutionJobVertex(msgspec.Struct, eq=False):
    """A vertex with all of its subtasks."""

    job_vertex: JobVertex
    subtasks: list[ExecutionVertex] = msgspec.field(default_factory=list)


class ExecutionGraph:
    """All subtasks of a job; made by ``build_execution_graph``."""

    def __init__(
        self,
        job_graph: JobGraph,
        vertices: list[ExecutionJobVertex],
        results: dict[IntermediateDataSetId, IntermediateResult],
    ) -> None:
        self.job_graph = job_graph
        self.vertices = vertices
        self.results = results
        self._subtask_count = 0
        self._finished_count = 0
        #: number of changes of what produces which result: attempts that began anew, and changes of the plan
        self.version = 0
        #: number of changes of which results are finished
        self.results_version = 0
        self.count_subtasks()

    def __iter__(self) -> Iterator[ExecutionVertex]:
        return chain.from_iterable(map(_SUBTASKS, self.vertices))

    def count_subtasks(self) -> None:
        """Take note of how many subtasks there are, after they were made or replaced."""
        self._subtask_count = sum([len(vertex.subtasks) for vertex in self.vertices])
        self.version += 1

    def vertex_of(self, attempt: ExecutionAttemptId) -> ExecutionVertex | None:
        """Return the subtask whose current attempt that is, or None."""
        if not 0 <= attempt.vertex.index < len(self.vertices):
            return None
        subtasks = self.vertices[attempt.vertex.index].subtasks
        if not 0 <= attempt.subtask_index < len(subtasks):
            return None
        vertex = subtasks[attempt.subtask_index]
        return vertex if vertex.current.attempt == attempt else None

    def restart(self, vertex: ExecutionVertex, time_ms: int = -1) -> Execution:
        """Begin a new attempt of a subtask, the last one having ended; its partitions are to be produced anew.

        ``time_ms``: when, since 1970; -1: not known.
        """
        assert vertex.current.state.is_terminal, f"{vertex.name} is {vertex.current.state}"
        self.version += 1
        last = vertex.current
        if last.state is ExecutionState.FINISHED:
            self._finished_count -= 1
        vertex.prior += (last,)
        attempt = last.attempt
        vertex.current = Execution(
            ExecutionAttemptId.create(attempt.vertex, attempt.subtask_index, attempt.attempt_number + 1),
            times=entered(b"", ExecutionState.CREATED, time_ms) if time_ms >= 0 else b"",
        )
        self.withdraw_output(vertex)
        for partition in vertex.partitions:
            partition.is_released = partition.is_damaged = False
        for edges in vertex.inputs:
            for partition in edges.read_alike:
                partition.finished_consumers.discard(vertex.subtask_index)
        return vertex.current

    def note_damage(self, partition_id: ResultPartitionId | None) -> None:
        """Take note that a reader could not read a partition, if it is one of a current attempt."""
        vertex = self.vertex_of(partition_id.producer) if partition_id is not None else None
        for partition in vertex.partitions if vertex is not None else ():
            if partition.id == partition_id:
                partition.is_damaged = True

    def lose_task_executor(self, resource_id: ResourceId, clock: Clock) -> list[ExecutionVertex]:
        """Record the loss of a TaskExecutor; return the subtasks that it hurts.

        Attempts that ran there are FAILED. Those that had finished are lost; they hurt when a BLOCKING result of
        theirs still has to be read.
        """
        hurt = []
        for vertex in self:
            execution = vertex.current
            if execution.slot is None or execution.slot.resource_id != resource_id:
                continue
            if execution.state is ExecutionState.FINISHED:
                execution.is_lost = True
                if vertex.is_needed:
                    hurt.append(vertex)
            elif not execution.state.is_terminal:
                execution.transition(ExecutionState.FAILED, clock)
                hurt.append(vertex)
        return hurt

    def withdraw_output(self, vertex: ExecutionVertex) -> None:
        """Stop new reads of what a subtask has written: it will be written again."""
        for partition in vertex.partitions:
            self.results[partition.data_set.id].finished_producers.discard(vertex.subtask_index)
        self.results_version += 1

    @property
    def is_finished(self) -> bool:
        """Whether every subtask has finished."""
        return self._finished_count == self._subtask_count

    @property
    def is_quiet(self) -> bool:
        """Whether nothing runs any more: every current attempt has ended or was never begun."""
        return all(vertex.current.state.is_terminal for vertex in self)

    @property
    def active_count(self) -> int:
        """Number of attempts that a TaskExecutor runs now."""
        return sum(vertex.current.state.is_deployed for vertex in self)

    def update(self, report: TaskReport, clock: Clock) -> ExecutionVertex | None:
        """Apply a report to the current attempt it names; return its subtask when that changed the state.

        Reports of other attempts, late ones (the attempt has ended, or is further) and repeated ones return None.
        """
        vertex = self.vertex_of(report.attempt)
        if vertex is None or vertex.current.state.is_terminal:
            return None
        execution = vertex.current
        states = STATES_AFTER_REPORT[execution.state, report.state]
        if not states:
            return None
        for state in states:
            execution.transition(state, clock, report.age_ms)
        target = execution.state
        if target.is_terminal or not report.age_ms:  # while a report waited, progress may have been told
            execution.counters = report.counters
        execution.failure = report.failure
        execution.staged_files = report.staged_files
        execution.partition_rows = report.partition_rows
        execution.partition_bytes = report.partition_bytes
        execution.subpartition_bytes = tuple(map(kept_sizes, report.subpartition_bytes))
        execution.partition_samples = report.partition_samples
        if target is ExecutionState.FINISHED:
            self._note_finished(vertex)
        return vertex

    def take_apart(self) -> None:
        """Cut the references between objects; the graph is not used any more."""
        for vertex in self:
            for partition in vertex.partitions:
                partition.consumers = ()
            for edges in vertex.inputs:
                edges.take_apart()
            vertex.partitions = ()
            vertex.inputs = ()

    def _note_finished(self, vertex: ExecutionVertex) -> None:
        self._finished_count += 1
        for partition in vertex.partitions:
            result = self.results[partition.data_set.id]
            result.finished_producers.add(vertex.subtask_index)
            self.results_version += result.is_finished
        for edges in vertex.inputs:
            for partition in edges.read_alike:
                partition.finished_consumers.add(vertex.subtask_index)


def build_execution_graph(job_graph: JobGraph) -> ExecutionGraph:
    """Return the ExecutionGraph of a JobGraph, every attempt CREATED; a malformed graph raises PlanError."""
    job_graph.validate()
    vertices: list[ExecutionJobVertex] = []
    results: dict[IntermediateDataSetId, IntermediateResult] = {}
    for job_vertex in job_graph.vertices:
        execution_job_vertex = create_vertex(job_vertex, job_graph)
        for output_index, data_set in enumerate(job_vertex.outputs):
            data_set.result_type.check_supported()
            partitions = [vertex.partitions[output_index] for vertex in execution_job_vertex.subtasks]
            results[data_set.id] = IntermediateResult(data_set, partitions)
        connect_inputs(execution_job_vertex, results)
        vertices.append(execution_job_vertex)
    return ExecutionGraph(job_graph, vertices, results)


def create_vertex(job_vertex: JobVertex, job_graph: JobGraph) -> ExecutionJobVertex:
    """Return a vertex with its subtasks and their partitions, not connected yet."""
    source = job_vertex.source
    splits: tuple[tuple[SourceSplit, ...], ...] = ((),) * job_vertex.parallelism
    if source is not None and source.is_replicated:
        splits = (source.spec.splits,) * job_vertex.parallelism
    elif source is not None:
        splits = assign_splits(source.spec.splits, job_vertex.parallelism)
    created = ExecutionJobVertex(job_vertex)
    unread = IndexSet()  # until there are edges
    outputs = [
        (data_set, data_set.partitioner.pattern, job_graph.vertex(data_set.consumer).parallelism)
        for data_set in job_vertex.outputs
    ]
    for subtask_index in range(job_vertex.parallelism):
        execution = Execution(ExecutionAttemptId.create(job_vertex.id, subtask_index, 0))
        vertex = ExecutionVertex(job_vertex, subtask_index, splits[subtask_index], execution)
        partitions = []
        for data_set, pattern, consumers in outputs:
            count = data_set.subpartition_count or subpartition_count(
                pattern, job_vertex.parallelism, consumers, subtask_index
            )
            partitions.append(IntermediateResultPartition(data_set, vertex, count, finished_consumers=unread))
        vertex.partitions = tuple(partitions)
        created.subtasks.append(vertex)
    return created


def connect_inputs(
    execution_job_vertex: ExecutionJobVertex, results: dict[IntermediateDataSetId, IntermediateResult]
) -> None:
    """Make the edges into all subtasks of a vertex that has none yet."""
    for job_edge in execution_job_vertex.job_vertex.inputs:
        result = results[job_edge.data_set]
        connect(job_edge, result.data_set.partitioner.pattern, result.partitions, execution_job_vertex.subtasks)
