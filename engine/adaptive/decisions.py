"""Run-time decisions: the plan looked at again when BLOCKING results show their real sizes.

    decide(job_graph, sizes, started) -> decisions          pure: the same facts give the same decisions

    job_graph   as it is now: the submitted one with all earlier decisions applied
    sizes       of data sets whose producers have all finished
    started     vertices of which some subtask was ever scheduled: nothing about them changes, nor about those that
                share a pipelined region with them (the JobMaster checks it: ``graph_invariants``)

    1  repartition ─► broadcast    one input of a join is finished and really small, the producer of the other one has
                                   not begun: its rows stay where they are made, and are not written at all where
                                   the join can run together with it
       broadcast ─► repartition    the broadcast input is finished and really large, the other side has not begun
    2  build side                  both inputs are finished: the really smaller one is built
    3  skew                        both inputs are finished: what is too large of one is read by several subtasks
                                   (``skew``)
    4  parallelism                 all BLOCKING inputs of vertices connected through FORWARD are finished: contiguous
                                   ranges of subpartitions of about ``bytes_per_subtask``, all inputs cut alike, so
                                   that equal keys still meet; never more subtasks than planned

Each is taken only where it is right (``AdaptiveJoin``: the join's type, the user's hint, and whether what follows
relies on how the join's rows lie) and where the planner was wrong by SWITCH_FACTOR or more: estimates that were right
change nothing. Costs are those of the planner, with real sizes (``costs``).

Limits: a broadcast by ranges is read through one channel for each subpartition of each producer that holds something,
so not with more than CHANNELS_MAX; split heavy keys are left as they were planned; a join whose other input has another
parallelism follows it only where the user has not set it and that input has more than one subtask.

Source: Spark's DynamicJoinSelection and CoalesceShufflePartitions, Flink's AdaptiveBatchScheduler. Spark shuffles the
large side before it knows; here it is not begun (``order``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property

from engine.adaptive.changes import apply
from engine.adaptive.costs import SWITCH_FACTOR, prefers_broadcast
from engine.adaptive.graph_shape import (
    DataSetSize,
    followers,
    input_edge,
    is_divisible,
    is_plain_hash,
    reads_all,
    region_of,
    region_pages,
)
from engine.adaptive.skew import skew_decision
from engine.errors import PlanError
from engine.graph.contiguous_runs import contiguous_runs, runs_needed
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import IntermediateDataSet, JobGraph, JobVertex
from engine.graph.operator_descriptor import HashJoinOperator
from engine.graph.pipelined_regions import pipelined_regions
from engine.graph.run_time_decision import (
    BroadcastInput,
    BuildSide,
    RepartitionInputs,
    RunTimeDecision,
    SubtaskRanges,
)
from engine.ids import IntermediateDataSetId, JobVertexId
from engine.shown_sizes import size_text
from engine.statistics.estimates import Estimates

#: largest number of channels through which one subtask reads a broadcast
CHANNELS_MAX = 4096
#: least weight of a build side among operators that share the pages of a slot
WEIGHT_MIN = 0.25
SIDES = ("left", "right")


class Facts:
    """The facts that rules look at."""

    def __init__(
        self,
        job_graph: JobGraph,
        sizes: Mapping[IntermediateDataSetId, DataSetSize],
        started: Collection[JobVertexId],
    ) -> None:
        self.job_graph = job_graph
        self.sizes = sizes
        self.started = started

    @cached_property
    def unstarted(self) -> frozenset[JobVertexId]:
        """The vertices of regions of which none has begun; no vertex where regions would wait for each other."""
        try:
            regions = [region.vertices for region in pipelined_regions(self.job_graph)]
        except ValueError:
            return frozenset()
        whole = (region for region in regions if not any(member in self.started for member in region))
        return frozenset(member for region in whole for member in region)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the pool that the planner takes for one join's subtask."""
        assert self.job_graph.adaptive is not None, "the job graph is not adaptive"
        return self.job_graph.adaptive.page_budget.operator_bytes

    def real(self, data_set: IntermediateDataSet) -> Estimates | None:
        """Return the real size of a data set, once it is finished."""
        size = self.sizes.get(data_set.id)
        return None if size is None else Estimates(max(1.0, size.rows), max(1.0, size.size_bytes), "real")


Rule = Callable[[Facts, JobVertex], RunTimeDecision | None]


def decide(
    job_graph: JobGraph, sizes: Mapping[IntermediateDataSetId, DataSetSize], started: Collection[JobVertexId]
) -> tuple[RunTimeDecision, ...]:
    """Return the changes to make now, in order; none when the job is not adaptive.

    PlanError: a rule proposes what does not fit the graph, which is a defect of the rule; it says which one.
    """
    if job_graph.adaptive is None:
        return ()
    decisions = []
    facts = Facts(job_graph, sizes, started)
    for name, rule in _RULES.items():
        for vertex_id in [vertex.id for vertex in job_graph.vertices if vertex.id not in started]:
            vertex = job_graph.vertex(vertex_id)
            try:
                decision = rule(facts, vertex)
                if decision is not None:
                    decisions.append(decision)
                    job_graph = apply(job_graph, decision.change)
                    facts = Facts(job_graph, sizes, started)
            except PlanError as error:
                raise PlanError(f"{name} of {vertex.name} does not fit: {error}") from error
    return tuple(decisions)


def broadcast_candidate(job_graph: JobGraph, join: JobVertex, small: int) -> bool:
    """Return whether an input of a repartitioned join may become a broadcast, should it be small enough."""
    if join.adaptive_join is None or not join.adaptive_join.may_broadcast[small]:
        return False
    edges = (input_edge(join, 0), input_edge(join, 1))
    data_sets = [job_graph.data_set(edge.data_set) for edge in edges]
    if any(data_set.result_type.is_pipelined or not is_plain_hash(data_set.partitioner) for data_set in data_sets):
        return False
    if any(edge.ranges or edge.shares for edge in edges) or any(data_set.expected is None for data_set in data_sets):
        return False
    return _can_follow(job_graph, join, data_sets[1 - small])


def _can_follow(job_graph: JobGraph, join: JobVertex, stay: IntermediateDataSet) -> bool:
    """Whether a join and its followers can have the parallelism of the producer of one of its inputs."""
    parallelism = job_graph.vertex(stay.id.producer).parallelism
    if parallelism == join.parallelism:
        return True
    if parallelism == 1:
        return False
    group = followers(job_graph, join.id)
    if any(job_graph.vertex(member).is_parallelism_fixed for member in group):
        return False
    return all(
        edge.data_set.producer in group or job_graph.data_set(edge.data_set).partitioner.kind == "BROADCAST"
        for member in group
        for edge in job_graph.vertex(member).inputs
        if member != join.id
    )


# ---- 1: how the inputs of a join travel ----


def _ship_otherwise(facts: Facts, join: JobVertex) -> RunTimeDecision | None:
    if join.adaptive_join is None:
        return None
    return _to_broadcast(facts, join, 0) or _to_broadcast(facts, join, 1) or _to_repartition(facts, join)


def _to_broadcast(facts: Facts, join: JobVertex, small: int) -> RunTimeDecision | None:
    job_graph = facts.job_graph
    if not broadcast_candidate(job_graph, join, small):
        return None
    small_set = job_graph.data_set(input_edge(join, small).data_set)
    stay_set = job_graph.data_set(input_edge(join, 1 - small).data_set)
    real = facts.real(small_set)
    if real is None or stay_set.expected is None or small_set.expected is None:
        return None
    if facts.sizes[small_set.id].filled_count > CHANNELS_MAX:
        return None
    if stay_set.id.producer not in facts.unstarted or join.id not in facts.unstarted:
        return None
    if real.size_bytes * SWITCH_FACTOR > small_set.expected.size_bytes:
        return None
    stay = Estimates(stay_set.expected.rows, stay_set.expected.size_bytes, "expected")
    parallelism = job_graph.vertex(stay_set.id.producer).parallelism
    if not prefers_broadcast(real, stay, parallelism, facts.memory_bytes):
        return None
    change = _runnable_broadcast(job_graph, join, small, stay_set)
    if change is None or not _may_follow(facts, join, change):
        return None
    side, other = SIDES[small], SIDES[1 - small]
    written = "is not shuffled" if change.is_pipelined else "is not shuffled, but stored: the join runs after it"
    return RunTimeDecision(
        "BROADCAST",
        join.id,
        join.name,
        "repartition both inputs",
        f"broadcast {side}",
        small_set.expected.size_bytes,
        int(real.size_bytes),
        f"{_sizes_text(side, real.size_bytes, small_set.expected.size_bytes)}; {other} {written}",
        change,
    )


def _runnable_broadcast(
    job_graph: JobGraph, join: JobVertex, small: int, stay: IntermediateDataSet
) -> BroadcastInput | None:
    """Return the change, pipelined where memory suffices and no region would wait for itself.

    The two regions had no pipelined edge between them, or they would be one; so their joint one has no new circle of
    tasks that wait for each other's buffers: the join takes rows as soon as its table is built, from what is finished.
    """
    settings = job_graph.adaptive
    assert settings is not None, "the job graph is not adaptive"
    inputs = (input_edge(join, 0).data_set, input_edge(join, 1).data_set)
    group = followers(job_graph, join.id, without=inputs)
    producer = job_graph.vertex(stay.id.producer)
    if producer.id in group:
        return None
    for is_pipelined in (True, False):
        change = BroadcastInput(join.id, small, group, producer.parallelism, is_pipelined)
        changed = apply(job_graph, change)
        region = region_of(changed, join.id)
        if region is None:
            continue
        fits = region_pages(changed, region) <= settings.page_budget.slot_pages
        if not is_pipelined or (fits and settings.execution_mode != ExecutionMode.BATCH_FORCED):
            return change
    return None


def _may_follow(facts: Facts, join: JobVertex, change: BroadcastInput) -> bool:
    """Whether nothing has begun that would get another parallelism along with the join."""
    is_kept = change.parallelism == join.parallelism
    return is_kept or all(member in facts.unstarted for member in change.followers)


def _to_repartition(facts: Facts, join: JobVertex) -> RunTimeDecision | None:
    job_graph, operator = facts.job_graph, join.chain[0].operator
    if join.adaptive_join is None or not join.adaptive_join.may_repartition:
        return None
    assert isinstance(operator, HashJoinOperator), f"{join.id} is no hash join"
    large_set = job_graph.data_set(input_edge(join, operator.first_input).data_set)
    stay_set = job_graph.data_set(input_edge(join, 1 - operator.first_input).data_set)
    real = facts.real(large_set)
    if real is None or large_set.expected is None or stay_set.expected is None:
        return None
    if stay_set.id.producer not in facts.unstarted or join.id not in facts.unstarted:
        return None
    if real.size_bytes < SWITCH_FACTOR * large_set.expected.size_bytes:
        return None
    # its subpartitions were fixed for the planned subtasks; there may be fewer by now, along with a FORWARD input
    counts = {each.subpartition_count for each in (large_set, stay_set)} - {None}
    if counts - {join.parallelism}:
        return None
    stay = Estimates(stay_set.expected.rows, stay_set.expected.size_bytes, "expected")
    if prefers_broadcast(real, stay, join.parallelism, facts.memory_bytes):
        return None
    change = RepartitionInputs(join.id, operator.first_input)
    if region_of(apply(job_graph, change), join.id) is None:
        return None
    side = SIDES[operator.first_input]
    return RunTimeDecision(
        "REPARTITION",
        join.id,
        join.name,
        f"broadcast {side}",
        "repartition both inputs",
        large_set.expected.size_bytes,
        int(real.size_bytes),
        _sizes_text(side, real.size_bytes, large_set.expected.size_bytes),
        change,
    )


def _sizes_text(what: str, real_bytes: float, expected_bytes: float) -> str:
    return f"{what} has {size_text(real_bytes)}, {size_text(expected_bytes)} were expected"


# ---- 2: which side is built ----


def _build_otherwise(facts: Facts, join: JobVertex) -> RunTimeDecision | None:
    job_graph, operator = facts.job_graph, join.chain[0].operator
    if join.adaptive_join is None or not isinstance(operator, HashJoinOperator) or operator.heavy is not None:
        return None
    build, probe = operator.first_input, 1 - operator.first_input
    if not join.adaptive_join.may_build[probe]:
        return None
    edges = (input_edge(join, 0), input_edge(join, 1))
    data_sets = [job_graph.data_set(edge.data_set) for edge in edges]
    if any(reads_all(edge, data_set) for edge, data_set in zip(edges, data_sets, strict=True)):
        return None
    built, probed = facts.real(data_sets[build]), facts.real(data_sets[probe])
    if built is None or probed is None or probed.size_bytes * SWITCH_FACTOR > built.size_bytes:
        return None
    settings = job_graph.adaptive
    assert settings is not None, "the job graph is not adaptive"
    weight = settings.page_budget.weight(probed.size_bytes / join.parallelism, WEIGHT_MIN)
    change = BuildSide(join.id, probe == 0, weight)
    expected = data_sets[build].expected
    return RunTimeDecision(
        "BUILD_SIDE",
        join.id,
        join.name,
        f"build {SIDES[build]}",
        f"build {SIDES[probe]}",
        -1.0 if expected is None else expected.size_bytes,
        int(built.size_bytes),
        f"{SIDES[build]} has {size_text(built.size_bytes)}, {SIDES[probe]} {size_text(probed.size_bytes)}",
        change,
    )


# ---- 3: what a subtask reads too much of ----


def _split_skew(facts: Facts, join: JobVertex) -> RunTimeDecision | None:
    if join.adaptive_join is None or join.parallelism == 1 or join.id not in facts.unstarted:
        return None
    group = followers(facts.job_graph, join.id)
    fewer = _fewer_subtasks(facts, facts.job_graph.vertex(group[0]))
    if fewer is not None and isinstance(fewer.change, SubtaskRanges) and len(fewer.change.ranges) == 1:
        return None  # it is little: one subtask will read all of it
    return skew_decision(facts.job_graph, facts.sizes, join)


# ---- 4: how many subtasks read finished results ----


def _fewer_subtasks(facts: Facts, vertex: JobVertex) -> RunTimeDecision | None:
    job_graph, settings = facts.job_graph, facts.job_graph.adaptive
    assert settings is not None, "the job graph is not adaptive"
    if settings.bytes_per_subtask == 0 or vertex.parallelism == 1:
        return None
    group = followers(job_graph, vertex.id)
    if group[0] != vertex.id or any(job_graph.vertex(member).is_parallelism_fixed for member in group):
        return None
    portioned = _portioned_inputs(facts, group)
    if not portioned or not all(member in facts.unstarted for member in group):
        return None
    sizes = [facts.sizes[data_set.id] for data_set in portioned]
    sums = [sum(each) for each in zip(*(size.subpartition_bytes for size in sizes), strict=True)]
    # a subpartition that is too large stands alone; it must not make the others large as well
    shares = [min(each, settings.bytes_per_subtask) for each in sums]
    count = runs_needed(shares, settings.bytes_per_subtask)
    if count * SWITCH_FACTOR > vertex.parallelism:
        return None
    expected = [data_set.expected.size_bytes for data_set in portioned if data_set.expected is not None]
    total = sum(sums)
    return RunTimeDecision(
        "PARALLELISM",
        vertex.id,
        vertex.name,
        f"{vertex.parallelism} subtasks",
        "1 subtask" if count == 1 else f"{count} subtasks",
        sum(expected) if len(expected) == len(portioned) else -1.0,
        total,
        f"reads {size_text(total)}, a subtask should read {size_text(settings.bytes_per_subtask)}",
        SubtaskRanges(group, contiguous_runs(shares, count)),
    )


def _portioned_inputs(facts: Facts, group: tuple[JobVertexId, ...]) -> list[IntermediateDataSet]:
    """Return the inputs of a group that would be cut; nothing when some cannot be, or are not finished."""
    portioned = []
    for member in group:
        vertex = facts.job_graph.vertex(member)
        for edge in vertex.inputs:
            data_set = facts.job_graph.data_set(edge.data_set)
            if edge.data_set.producer in group and data_set.partitioner.kind == "FORWARD":
                continue
            if reads_all(edge, data_set):
                continue
            size = facts.sizes.get(data_set.id)
            is_cut = bool(edge.ranges or edge.shares) or not is_divisible(data_set.partitioner)
            if size is None or is_cut or len(size.subpartition_bytes) != vertex.parallelism:
                return []
            portioned.append(data_set)
    return portioned


_RULES: dict[str, Rule] = {
    "another exchange": _ship_otherwise,
    "another build side": _build_otherwise,
    "splitting skew": _split_skew,
    "fewer subtasks": _fewer_subtasks,
}
