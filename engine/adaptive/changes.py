"""Applying run-time decisions to a JobGraph: the second half of ``decisions``, and all of a replay.

    apply(job_graph, change) -> job_graph          pure; vertices that are not touched stay the same objects
    replay(job_graph, decisions) -> job_graph      of a submitted graph: what runs

Ids never change, nor what a producer that has begun makes: its number of subpartitions is fixed from then on
(``subpartition_count``), and the consumers' ``ranges`` say what each of them reads.

    change              finished input                         other input             vertices
    BroadcastInput      ranges (0, n) for every subtask        FORWARD, not shuffled   parallelism of the other input
    RepartitionInputs   subpartition i for subtask i           HASH, BLOCKING          as they were
    BuildSide           as it was                              as it was               the join's operator
    SplitSkew           shares                                 shares                  as they were
    SubtaskRanges       ranges; what is broadcast stays whole  -                       as many subtasks as ranges

Invariant: every consumer reads each row of a producer once, or, where it is broadcast, each subtask does.

Held by: tests/adaptive/test_decisions.py
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.adaptive.graph_shape import input_edge, reads_all, with_data_set, with_edge, with_vertices
from engine.errors import PlanError
from engine.graph.job_graph import JobEdge, JobGraph, JobVertex
from engine.graph.operator_descriptor import HashJoinOperator, SortMergeJoinOperator
from engine.graph.run_time_decision import (
    AdaptiveJoin,
    BroadcastInput,
    BuildSide,
    Change,
    KeepSkew,
    RepartitionInputs,
    RunTimeDecision,
    SplitSkew,
    SubtaskRanges,
)
from engine.graph.ship_strategy import DistributionPattern, PartitionerSpec, ResultPartitionType, ShipStrategy
from engine.ids import JobVertexId


def apply(job_graph: JobGraph, change: Change) -> JobGraph:
    """Return the graph with one change; PlanError when it is not a graph that could be changed so."""
    match change:
        case BroadcastInput():
            changed = _broadcast(job_graph, change)
        case RepartitionInputs():
            changed = _repartition(job_graph, change)
        case BuildSide():
            changed = _build(job_graph, change)
        case SplitSkew():
            changed = _split(job_graph, change)
        case KeepSkew():
            changed = _keep(job_graph, change)
        case SubtaskRanges():
            changed = _with_subtasks(job_graph, change.vertices, len(change.ranges), change.ranges)
    changed.validate()
    return changed


def replay(job_graph: JobGraph, decisions: Iterable[RunTimeDecision]) -> JobGraph:
    """Return the graph after decisions, in their order."""
    for decision in decisions:
        job_graph = apply(job_graph, decision.change)
    return job_graph


def _broadcast(job_graph: JobGraph, change: BroadcastInput) -> JobGraph:
    join = job_graph.vertex(change.join)
    small, stay = input_edge(join, change.small), input_edge(join, 1 - change.small)
    small_set, stay_set = job_graph.data_set(small.data_set), job_graph.data_set(stay.data_set)
    count = small_set.subpartition_count or join.parallelism
    result_type = ResultPartitionType.PIPELINED if change.is_pipelined else ResultPartitionType.BLOCKING
    job_graph = with_data_set(job_graph, msgspec.structs.replace(small_set, subpartition_count=count))
    job_graph = with_data_set(
        job_graph, msgspec.structs.replace(stay_set, partitioner=PartitionerSpec("FORWARD"), result_type=result_type)
    )
    whole = ((0, count),) * join.parallelism
    job_graph = with_edge(
        job_graph, join.id, msgspec.structs.replace(small, ship_strategy=ShipStrategy.BROADCAST, ranges=whole)
    )
    stays = msgspec.structs.replace(stay, ship_strategy=ShipStrategy.FORWARD, pattern=DistributionPattern.POINTWISE)
    job_graph = with_edge(job_graph, join.id, stays)
    built = _with_build_side(job_graph.vertex(join.id), build_left=change.small == 0)
    job_graph = with_vertices(job_graph, [msgspec.structs.replace(built, adaptive_join=AdaptiveJoin())])
    changed = tuple(vertex for vertex in change.followers if vertex != stay.data_set.producer)
    return _with_subtasks(job_graph, changed, change.parallelism, ())


def _repartition(job_graph: JobGraph, change: RepartitionInputs) -> JobGraph:
    join = job_graph.vertex(change.join)
    operator = join.chain[0].operator
    assert isinstance(operator, HashJoinOperator), f"{join.id} is no hash join"
    large, other = input_edge(join, change.large), input_edge(join, 1 - change.large)
    keys = operator.right_keys if change.large == 0 else operator.left_keys
    hashed = PartitionerSpec("HASH", keys, spread_nulls=True)
    other_set = msgspec.structs.replace(
        job_graph.data_set(other.data_set), partitioner=hashed, result_type=ResultPartitionType.BLOCKING
    )
    job_graph = with_data_set(job_graph, other_set)
    to_all = DistributionPattern.ALL_TO_ALL
    for edge in (large, other):
        shipped = msgspec.structs.replace(edge, ship_strategy=ShipStrategy.PARTITION_HASH, pattern=to_all, ranges=())
        job_graph = with_edge(job_graph, join.id, shipped)
    facts = join.adaptive_join or AdaptiveJoin()
    kept = msgspec.structs.replace(facts, may_repartition=False, may_broadcast=(False, False))
    return with_vertices(job_graph, [msgspec.structs.replace(job_graph.vertex(join.id), adaptive_join=kept)])


def _build(job_graph: JobGraph, change: BuildSide) -> JobGraph:
    join = _with_build_side(job_graph.vertex(change.join), build_left=change.build_left)
    head = msgspec.structs.replace(join.chain[0], memory_weight=change.memory_weight)
    return with_vertices(job_graph, [msgspec.structs.replace(join, chain=(head, *join.chain[1:]))])


def _split(job_graph: JobGraph, change: SplitSkew) -> JobGraph:
    for side, shares in enumerate(change.shares):
        edge = input_edge(job_graph.vertex(change.join), side)
        job_graph = with_edge(job_graph, change.join, msgspec.structs.replace(edge, shares=shares))
    return job_graph


def _keep(job_graph: JobGraph, change: KeepSkew) -> JobGraph:
    join = job_graph.vertex(change.join)
    facts = join.adaptive_join or AdaptiveJoin()
    left, right = facts.why_whole
    said = (None, right) if change.side == 0 else (left, None)
    kept = msgspec.structs.replace(join, adaptive_join=msgspec.structs.replace(facts, why_whole=said))
    return with_vertices(job_graph, [kept])


def _with_build_side(join: JobVertex, *, build_left: bool) -> JobVertex:
    operator = join.chain[0].operator
    if isinstance(operator, SortMergeJoinOperator):
        operator = HashJoinOperator(
            operator.how,
            operator.left_keys,
            operator.right_keys,
            build_left,
            operator.output,
            operator.condition,
        )
    elif isinstance(operator, HashJoinOperator):
        if build_left != operator.build_left:
            operator = msgspec.structs.replace(operator, build_left=build_left, filters=(), passes=())
    else:
        raise PlanError(f"vertex {join.id} is no join")
    return msgspec.structs.replace(
        join, chain=(msgspec.structs.replace(join.chain[0], operator=operator), *join.chain[1:])
    )


def _with_subtasks(
    job_graph: JobGraph, vertices: tuple[JobVertexId, ...], parallelism: int, ranges: tuple[tuple[int, int], ...]
) -> JobGraph:
    """Give vertices another parallelism; ``ranges`` are for inputs that are neither broadcast nor FORWARD."""
    for vertex_id in vertices:
        vertex = job_graph.vertex(vertex_id)
        if vertex.parallelism == parallelism:
            continue
        for edge in vertex.inputs:
            job_graph = _with_portions(job_graph, vertex, edge, parallelism, ranges)
        changed = msgspec.structs.replace(job_graph.vertex(vertex_id), parallelism=parallelism)
        job_graph = with_vertices(job_graph, [changed])
    return job_graph


def _with_portions(
    job_graph: JobGraph, vertex: JobVertex, edge: JobEdge, parallelism: int, ranges: tuple[tuple[int, int], ...]
) -> JobGraph:
    """Add the portion of an input that each of ``parallelism`` subtasks reads; other edges than BLOCKING have none."""
    data_set = job_graph.data_set(edge.data_set)
    if data_set.partitioner.kind == "FORWARD" or data_set.result_type.is_pipelined:
        return job_graph
    count = data_set.subpartition_count or vertex.parallelism
    portions = ranges
    if reads_all(edge, data_set):
        # a broadcast is stored once, as if in each of its subpartitions
        portions = ((0, 1 if data_set.partitioner.kind == "BROADCAST" else count),) * parallelism
    elif not ranges or ranges[-1][1] != count:
        raise PlanError(f"{vertex.id} reads {count} subpartitions of {edge.data_set}, not those of {ranges}")
    job_graph = with_data_set(job_graph, msgspec.structs.replace(data_set, subpartition_count=count))
    return with_edge(job_graph, vertex.id, msgspec.structs.replace(edge, ranges=portions))
