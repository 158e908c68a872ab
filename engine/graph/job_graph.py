"""The JobGraph: the unit of submission. Vertices of chained operators, data sets between them.

    JobVertex ──produces──► IntermediateDataSet ──consumed by one──► JobEdge ──into──► JobVertex

One data set has exactly one consumer: k downstream vertices need k data sets. Vertices are in topological order.
A chain is linear: what its last operator emits goes to every data set of the vertex. A join may have a feed beside it:
a source that its tasks read themselves (``chained_sources``).

Readers: without ``ranges`` the pattern of the edge decides (consumer i reads subpartition i of every producer,
or its producers' parts). With ``ranges`` consumer i reads the subpartitions [begin, end) of every producer: run-time
decisions have finished results read in other portions than they were written for.

    3 subpartitions   planned (0,1) (1,2) (2,3)      fewer subtasks (0,2) (2,3)      broadcast (0,3) (0,3) (0,3)

With ``shares`` consumer i reads portions of subpartitions: too large ones are read by several (``subpartition_share``).

Source: Flink's JobGraph, JobVertex, IntermediateDataSet and JobEdge.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from engine.errors import PlanError
from engine.graph.exact import Exact
from engine.graph.operator_descriptor import OperatorDescriptor, PythonOperator, SourceOperator
from engine.graph.planned_step import PlannedStep
from engine.graph.run_time_decision import AdaptiveJoin, AdaptiveSettings, ExpectedSize
from engine.graph.ship_strategy import DistributionPattern, PartitionerSpec, ResultPartitionType, ShipStrategy
from engine.graph.subpartition_share import SubpartitionShare, are_complete
from engine.ids import IntermediateDataSetId, JobId, JobVertexId


class IntermediateDataSet(Exact, frozen=True):
    """One output of a vertex."""

    id: IntermediateDataSetId
    consumer: JobVertexId
    result_type: ResultPartitionType
    partitioner: PartitionerSpec
    expected: ExpectedSize | None = None
    #: number of subpartitions of every producer, where it is fixed; None: one for each consumer
    subpartition_count: int | None = None


class JobEdge(Exact, frozen=True):
    """A vertex's use of a data set. Edges with the same ``input_index`` are one logical input (a union)."""

    data_set: IntermediateDataSetId
    input_index: int
    ship_strategy: ShipStrategy
    pattern: DistributionPattern
    #: subpartitions [begin, end) that each consumer reads of every producer; (): those of the pattern
    ranges: tuple[tuple[int, int], ...] = ()
    #: shares of all producers' subpartitions that each consumer reads, when they are cut; (): as above
    shares: tuple[tuple[SubpartitionShare, ...], ...] = ()


class JobVertex(Exact, frozen=True):
    """A chain of operators that run in one task, in ``parallelism`` subtasks."""

    id: JobVertexId
    name: str
    parallelism: int
    chain: tuple[OperatorDescriptor, ...]
    inputs: tuple[JobEdge, ...]
    outputs: tuple[IntermediateDataSet, ...]
    max_parallelism: int = 128
    #: True if the user has set it, or a source's splits or a Python function require it, whose work is not in bytes
    is_parallelism_fixed: bool = True
    adaptive_join: AdaptiveJoin | None = None
    #: source with its chained operators, whose rows the join at the head of the chain probes
    feed: tuple[OperatorDescriptor, ...] = ()
    #: source with its chained operators, from whose rows the join at the head of the chain builds its table
    build_feed: tuple[OperatorDescriptor, ...] = ()

    @property
    def steps(self) -> tuple[OperatorDescriptor, ...]:
        """All operators of its tasks."""
        return (*self.feed, *self.build_feed, *self.chain)

    @property
    def source(self) -> SourceOperator | None:
        """The source whose splits are dealt to the subtasks, if the vertex has one."""
        head = (self.feed or self.chain)[0].operator
        return head if isinstance(head, SourceOperator) else None


#: key of a job's configuration with the name of its user
USER_KEY = "job.user"
#: archive of modules beside the job's script that it imported
SCRIPT_MODULES = "script-modules.zip"


class JobArtifact(Exact, frozen=True):
    """Python modules that came with a job: one ``.py`` file, or an archive (zip, wheel) of modules and packages."""

    #: file name as imports need it: ``helpers.py``
    name: str
    #: SHA-256 of the content in hex: its key among the job's blobs
    key: str
    size_bytes: int


class JobGraph(Exact, frozen=True, dict=True):
    """A submitted job: vertices in topological order, and the plan and configuration they came from."""

    job_id: JobId
    name: str
    vertices: tuple[JobVertex, ...]
    #: plan as ``engine.graph.plan.encode_plan`` gives it, for run-time decisions and the history
    plan: bytes
    #: configuration set for this job, by key
    configuration: dict[str, str]
    #: settings of run-time decisions; None: there are none
    adaptive: AdaptiveSettings | None = None
    #: artifacts in order of the module search path
    artifacts: tuple[JobArtifact, ...] = ()
    #: requests, bytes read and bytes written that making the plan took, by store
    stores: dict[str, tuple[int, int, int]] = msgspec.field(default_factory=dict)
    #: part of a slot's pages that its operators divide: libraries that it needs take the others
    page_share: float = 1.0
    #: physical operators as they were planned, for the profile of the run
    planned: tuple[PlannedStep, ...] = ()

    @cached_property
    def has_functions(self) -> bool:
        """Whether any of its tasks runs a user's Python function."""
        return any(isinstance(step.operator, PythonOperator) for vertex in self.vertices for step in vertex.steps)

    @property
    def user(self) -> str:
        """Name of the user that the job belongs to; "": none by name."""
        return self.configuration.get(USER_KEY, "")

    def vertex(self, vertex_id: JobVertexId) -> JobVertex:
        """Return the vertex of that id."""
        return self.vertices[vertex_id.index]

    def data_set(self, data_set_id: IntermediateDataSetId) -> IntermediateDataSet:
        """Return the data set of that id."""
        return self.vertex(data_set_id.producer).outputs[data_set_id.output_index]

    def validate(self) -> None:
        """Raise PlanError when ids, order or edges are inconsistent."""
        for position, vertex in enumerate(self.vertices):
            if vertex.id.index != position or vertex.parallelism < 1 or not vertex.chain:
                raise PlanError(f"vertex {vertex.id} at position {position} is malformed")
            for edge in vertex.inputs:
                if edge.data_set.producer.index >= position:
                    raise PlanError(f"vertex {vertex.id} reads {edge.data_set}: not topological")
                data_set = self.data_set(edge.data_set)
                if data_set.consumer != vertex.id:
                    raise PlanError(f"data set {edge.data_set} is consumed by two vertices")
                if edge.shares or edge.ranges or data_set.subpartition_count is not None:
                    self._validate_ranges(vertex, edge, data_set.subpartition_count)

    def _validate_ranges(self, vertex: JobVertex, edge: JobEdge, count: int | None) -> None:
        if edge.shares:
            self._validate_shares(vertex, edge, count or vertex.parallelism)
        if not edge.ranges:
            if count is not None and count != vertex.parallelism:
                raise PlanError(f"{vertex.parallelism} subtasks of {vertex.id} read {count} subpartitions")
            return
        if count is None or len(edge.ranges) != vertex.parallelism:
            raise PlanError(f"{vertex.id} reads {edge.data_set} in {len(edge.ranges)} ranges of {count} subpartitions")
        if any(not 0 <= begin < end <= count for begin, end in edge.ranges):
            raise PlanError(f"{vertex.id} reads {edge.data_set} in ranges {edge.ranges} of {count} subpartitions")

    def _validate_shares(self, vertex: JobVertex, edge: JobEdge, count: int) -> None:
        producers = self.vertex(edge.data_set.producer).parallelism
        shares = [share for each in edge.shares for share in each]
        is_fed = len(edge.shares) == vertex.parallelism and all(edge.shares)
        if not is_fed or bool(edge.ranges) or not are_complete(shares, count, producers):
            raise PlanError(f"{vertex.id} reads {edge.data_set} in shares {edge.shares} of {count} subpartitions")
