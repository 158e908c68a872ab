"""A JobMaster without processes: regions start when the scheduler says so, subtasks run in the plain interpreter.

What a subtask reads is what its descriptor says; what it stores, and how large that is said to be, is up to the test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from types import SimpleNamespace

from engine.clock import ManualClock
from engine.graph.deployment import Staging, TaskReport
from engine.graph.job_graph import IntermediateDataSet, JobGraph
from engine.graph.operator_descriptor import OperatorDescriptor, SinkOperator
from engine.graph.packed_sizes import packed_sizes
from engine.graph.run_time_decision import RunTimeDecision
from engine.graph.subpartition_share import PARTS
from engine.ids import AllocationId, IntermediateDataSetId, JobVertexId, ResourceId, ResultPartitionId
from engine.jobmaster.deployment import build_descriptor
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.run_time_planner import RunTimePlanner
from engine.jobmaster.scheduler import Scheduler, SchedulingRegion
from engine.jobmaster.slot_pool import AllocatedSlot, SlotPool
from tests.optimizer.interpreter import Rows, Tables, run_subtask, targets

CLOCK = ManualClock()
RUN = (ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.RUNNING)

#: (data set, rows of each subpartition) -> bytes of each subpartition
SizeOf = Callable[[IntermediateDataSetId, list[int]], list[int]]


class Simulation:
    """One job on so many slots; ``run`` it once."""

    def __init__(
        self,
        job_graph: JobGraph,
        tables: Tables,
        slot_count: int,
        size_of: SizeOf,
        pages: int = 10_000,
        spare_pages: int = 0,
    ):
        self.graph = build_execution_graph(job_graph)
        self.planner = RunTimePlanner(self.graph)
        self.scheduler = Scheduler(self.graph)
        self.tables, self.size_of = tables, size_of
        self.pool = SlotPool()
        resource = ResourceId("a" * 32)
        for _ in range(slot_count):
            request = self.pool.open_request(1)
            self.pool.offer(request, AllocatedSlot(AllocationId.random(), resource, "here", "", pages, spare_pages))
            self.pool.close_request(request)
        self.stored: dict[ResultPartitionId, list[Rows]] = {}
        self.sinks: dict[int, dict[int, Rows]] = defaultdict(dict)
        #: rows that operators of subtasks have taken: by vertex and operator, input, subtask
        self.taken: dict[tuple[JobVertexId, int], dict[int, dict[int, Rows]]] = defaultdict(lambda: defaultdict(dict))
        #: rows written to a data set and rows read from it
        self.written: dict[IntermediateDataSetId, int] = defaultdict(int)
        #: names of vertices in the order in which regions started
        self.order: list[tuple[str, ...]] = []

    @property
    def decisions(self) -> tuple[RunTimeDecision, ...]:
        return self.planner.decisions

    def run(self) -> list[Rows]:
        """Return the rows of every sink in the order of their subtasks."""
        while not self.graph.is_finished:
            started = self.scheduler.start_regions(self.pool, CLOCK)
            assert started, "nothing can run, and the job has not finished"
            for region in started:
                self.order.append(tuple(sorted({subtask.job_vertex.name for subtask in region.subtasks})))
            for region in started:
                self._run_region(region)
        assert not self.planner.refused, self.planner.refused
        return [[row for _, rows in sorted(parts.items()) for row in rows] for _, parts in sorted(self.sinks.items())]

    def _run_region(self, region: SchedulingRegion) -> None:
        """Run a region to its end; its reports come after it."""
        reports = [(subtask, self._run_subtask(subtask, region)) for subtask in region.subtasks]
        for subtask, report in reports:
            for state in RUN:
                subtask.current.transition(state, CLOCK)
            assert self.graph.update(report, CLOCK) is subtask
            self.scheduler.subtask_ended(subtask, self.pool)
            if self.planner.replan(subtask):
                self.scheduler.revise()

    def _run_subtask(self, subtask: ExecutionVertex, region: SchedulingRegion) -> TaskReport:
        sinks = [
            step.operator.sink_index for step in subtask.job_vertex.chain if isinstance(step.operator, SinkOperator)
        ]
        descriptor = build_descriptor(subtask, self.graph.job_graph, region.subtasks, dict.fromkeys(sinks, Staging("")))
        count = max((gate.input_index for gate in descriptor.gates), default=-1) + 1
        inputs: list[Rows] = [[] for _ in range(count)]
        for gate in descriptor.gates:
            for channel in gate.channels:
                stored = self.stored[channel.partition][channel.subpartition_index]
                begin, end = (len(stored) * position // PARTS for position in channel.part)
                inputs[gate.input_index] += stored[begin:end]
        if descriptor.feed:
            fed = 1 - descriptor.chain[0].operator.first_input
            inputs = [*inputs, []][: max(count, 2)]
            assert not inputs[fed], "what is fed has no gate"
            inputs[fed] = self._run_chain(subtask, descriptor.feed, [])
        rows = self._run_chain(subtask, descriptor.chain, inputs)
        for sink in sinks:
            self.sinks[sink][subtask.subtask_index] = rows
        data_sets = subtask.job_vertex.outputs
        sizes = [
            self._store(data_set, partition.id, partition.subpartition_count, subtask.subtask_index, rows)
            for data_set, partition in zip(data_sets, descriptor.partitions, strict=True)
        ]
        return TaskReport(
            subtask.current.attempt,
            "FINISHED",
            partition_rows=(len(rows),) * len(data_sets),
            partition_bytes=tuple(sum(each) for each in sizes),
            subpartition_bytes=tuple(
                b"" if data_set.result_type.is_pipelined else packed_sizes(each)
                for data_set, each in zip(data_sets, sizes, strict=True)
            ),
        )

    def _run_chain(self, subtask: ExecutionVertex, chain: Sequence[OperatorDescriptor], inputs: list[Rows]) -> Rows:
        index = subtask.subtask_index
        rows: Rows = []
        for position, step in enumerate(chain):
            node = SimpleNamespace(descriptor=step, parallelism=subtask.job_vertex.parallelism)
            taken = self.taken[subtask.job_vertex.id, step.node_id]
            for each, source in enumerate(inputs if position == 0 else [rows]):
                taken[each][index] = source
            rows = run_subtask(node, index, [taken[each] for each in sorted(taken)], self.tables)
        return rows

    def _store(
        self, data_set: IntermediateDataSet, partition: ResultPartitionId, count: int, producer: int, rows: Rows
    ) -> list[int]:
        subpartitions: list[Rows] = [[] for _ in range(count)]
        for position, row in enumerate(rows):
            channels = (
                [0]
                if data_set.partitioner.kind == "FORWARD"
                else targets(data_set.partitioner, producer, position, row, count)
            )
            for channel in channels:
                subpartitions[channel].append(row)
        self.stored[partition] = subpartitions
        self.written[data_set.id] += sum(len(each) for each in subpartitions)
        sizes = self.size_of(data_set.id, [len(each) for each in subpartitions])
        return sizes[:1] if data_set.partitioner.kind == "BROADCAST" else sizes
