"""Chained sources: a join that reads the rows it probes with itself, where they come from a source beside it.

    source ──FORWARD──► filter ──FORWARD──► join ──FORWARD──► project          edges of the plan
    └────── vertex 0 ─────────┘   build ──► └────── vertex 2 ───────┘          without
                                  build ──► └─ feed ─┴──── chain ───┘          vertex 1: with_chained_sources

    with_chained_sources(job_graph) -> job_graph          what is chained is no vertex any more, the others move up

A vertex passes its rows to one thread of the same slot, which waits for them: as a ``feed`` of that thread's vertex
they cost no message, and no second thread that wants the same core. The feed is read when the build side is complete,
not before. What is chained: one source with projections and filters, that feeds this join and nothing else, PIPELINED
and FORWARD, in as many subtasks. A join of which it is open how its inputs travel keeps them apart.

The rows that a join builds its table from are read likewise (``build_feed``) where that takes less than a task of their
own: a small source of a join in one subtask, which reads all splits. A task costs as much as 100,000 rows.

Pure. Source: Flink's multiple-input operators with chained sources (MultipleInputStreamTask, ChainedSource).
"""

from __future__ import annotations

from collections import Counter

import msgspec

from engine.graph.job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex
from engine.graph.operator_descriptor import FilterOperator, HashJoinOperator, ProjectOperator
from engine.ids import IntermediateDataSetId, JobVertexId

VERTEX_NAME_MAX = 200
#: number of the first input of a join's vertex that is none of the join, but of its feed
JOIN_INPUTS = 2


def vertex_name(names: list[str]) -> str:
    """Return the name of a vertex of these operators."""
    name = " -> ".join(names)
    return name if len(name) <= VERTEX_NAME_MAX else f"{name[: VERTEX_NAME_MAX - 3]}..."


def with_chained_sources(job_graph: JobGraph) -> JobGraph:
    """Return the graph whose joins read themselves what they can."""
    fed = {vertex.id: _fed_edges(job_graph, vertex) for vertex in job_graph.vertices}
    chained = {edge.data_set.producer for edges in fed.values() for edge in edges}
    kept = [vertex for vertex in job_graph.vertices if vertex.id not in chained]
    place = {vertex.id: JobVertexId(index) for index, vertex in enumerate(kept)}
    # what was read for a source is read for the join
    place |= {edge.data_set.producer: place[vertex] for vertex, edges in fed.items() for edge in edges}
    vertices = []
    for vertex in kept:
        join = vertex
        for edge in fed[vertex.id]:
            join = _fed(join, edge, job_graph.vertex(edge.data_set.producer))
        vertices.append(_moved(join, place))
    return msgspec.structs.replace(job_graph, vertices=tuple(vertices)) if chained else job_graph


def _fed_edges(job_graph: JobGraph, vertex: JobVertex) -> list[JobEdge]:
    """Return the edges into a join that become its feeds, that of the build side first: it comes behind in names."""
    join = vertex.chain[0].operator
    if not isinstance(join, HashJoinOperator):
        return []
    if vertex.adaptive_join is not None and vertex.adaptive_join.may_repartition:
        return []
    count = Counter(edge.input_index for edge in vertex.inputs)
    single = [edge for edge in vertex.inputs if count[edge.input_index] == 1]
    single.sort(key=lambda edge: edge.input_index != join.first_input)
    return [edge for edge in single if _is_fed(job_graph, vertex, edge, is_build=edge.input_index == join.first_input)]


def _is_fed(job_graph: JobGraph, vertex: JobVertex, edge: JobEdge, *, is_build: bool) -> bool:
    producer, data_set = job_graph.vertex(edge.data_set.producer), job_graph.data_set(edge.data_set)
    is_beside = data_set.partitioner.kind == "FORWARD" and data_set.result_type.is_pipelined
    if not is_beside or len(producer.outputs) != 1 or producer.parallelism != vertex.parallelism:
        return False
    source = producer.source
    is_read_whole = source is not None and source.is_small and vertex.parallelism == 1 and not producer.inputs
    if source is None or (is_build and not is_read_whole):
        return False
    return all(isinstance(step.operator, ProjectOperator | FilterOperator) for step in producer.chain[1:])


def _fed(join: JobVertex, edge: JobEdge, producer: JobVertex) -> JobVertex:
    head = join.chain[0].operator
    assert isinstance(head, HashJoinOperator), "a join is fed"
    is_build = edge.input_index == head.first_input
    return msgspec.structs.replace(
        join,
        name=vertex_name([producer.name, join.name]),
        feed=join.feed if is_build else producer.chain,
        build_feed=producer.chain if is_build else join.build_feed,
        inputs=(*(each for each in join.inputs if each is not edge), *map(_beside_those_of_a_join, producer.inputs)),
        is_parallelism_fixed=True,
        adaptive_join=None,
    )


def _beside_those_of_a_join(edge: JobEdge) -> JobEdge:
    """Return an edge into a source, through which stored filters come, as one into the join that reads the source."""
    return msgspec.structs.replace(edge, input_index=JOIN_INPUTS + edge.input_index)


def _moved(vertex: JobVertex, place: dict[JobVertexId, JobVertexId]) -> JobVertex:
    """Return the vertex with its own and all other ids as they are now."""

    def moved(data_set: IntermediateDataSetId) -> IntermediateDataSetId:
        return IntermediateDataSetId(place[data_set.producer], data_set.output_index)

    def output(data_set: IntermediateDataSet) -> IntermediateDataSet:
        return msgspec.structs.replace(data_set, id=moved(data_set.id), consumer=place[data_set.consumer])

    return msgspec.structs.replace(
        vertex,
        id=place[vertex.id],
        inputs=tuple(msgspec.structs.replace(edge, data_set=moved(edge.data_set)) for edge in vertex.inputs),
        outputs=tuple(output(data_set) for data_set in vertex.outputs),
    )
