"""Revising an ExecutionGraph: a run-time decision changed the JobGraph, and what has not begun follows.

    revise(graph, job_graph)

    vertex untouched            the same objects
    vertex changed              the same subtasks with another JobVertex; new ones when their number changed
    consumers of changed ones   edges made anew
    producers for changed ones  the same objects; they write another number of subpartitions, unless they have begun

Ids, attempts, states, partitions and everything that ran stay: only subtasks of which no attempt was ever scheduled
are replaced, and only partitions whose producers have not begun get another number of subpartitions.

Source: Flink's DefaultExecutionGraph, which initializes its vertices one by one instead.
Held by: tests/jobmaster/test_graph_invariants.py
"""

from __future__ import annotations

from engine.graph.job_graph import JobGraph
from engine.ids import JobVertexId
from engine.jobmaster.edge_pattern import subpartition_count
from engine.jobmaster.execution_graph import (
    ExecutionGraph,
    ExecutionJobVertex,
    IntermediateResult,
    connect_inputs,
    create_vertex,
)
from engine.jobmaster.execution_state import ExecutionState


def started_vertices(graph: ExecutionGraph) -> frozenset[JobVertexId]:
    """Return the vertices of which some subtask was ever scheduled."""
    return frozenset(
        subtask.job_vertex.id
        for vertex in graph.vertices
        for subtask in vertex.subtasks
        if subtask.prior or subtask.current.state is not ExecutionState.CREATED
    )


def revise(graph: ExecutionGraph, job_graph: JobGraph) -> None:
    """Make the execution graph that of ``job_graph``: the same vertices and data sets, some of them changed."""
    changed = [vertex for vertex in graph.vertices if job_graph.vertex(vertex.job_vertex.id) is not vertex.job_vertex]
    graph.job_graph = job_graph
    stale = {vertex.job_vertex.id for vertex in changed}
    stale |= {data_set.consumer for vertex in changed for data_set in job_graph.vertex(vertex.job_vertex.id).outputs}
    for vertex_id in stale:
        _disconnect(graph.vertices[vertex_id.index])
    for vertex in changed:
        _replace(graph, vertex, job_graph)
    _count_subpartitions(graph)
    for vertex_id in sorted(stale):
        connect_inputs(graph.vertices[vertex_id.index], graph.results)
    graph.count_subtasks()


def _disconnect(vertex: ExecutionJobVertex) -> None:
    for subtask in vertex.subtasks:
        for edges in subtask.inputs:
            for partition in edges.partitions:
                partition.consumers = ()
        subtask.inputs = ()


def _replace(graph: ExecutionGraph, vertex: ExecutionJobVertex, job_graph: JobGraph) -> None:
    job_vertex = job_graph.vertex(vertex.job_vertex.id)
    vertex.job_vertex = job_vertex
    if len(vertex.subtasks) != job_vertex.parallelism:
        assert job_vertex.id not in started_vertices(graph), f"{job_vertex.id} has begun"
        vertex.subtasks = create_vertex(job_vertex, job_graph).subtasks
        for index, data_set in enumerate(job_vertex.outputs):
            partitions = [subtask.partitions[index] for subtask in vertex.subtasks]
            graph.results[data_set.id] = IntermediateResult(data_set, partitions)
        return
    for subtask in vertex.subtasks:
        subtask.job_vertex = job_vertex
    for index, data_set in enumerate(job_vertex.outputs):
        graph.results[data_set.id].data_set = data_set
        for subtask in vertex.subtasks:
            subtask.partitions[index].data_set = data_set


def _count_subpartitions(graph: ExecutionGraph) -> None:
    """Set the subpartitions of every producer to those of its present readers.

    Of all results, not of changed vertices only: a producer that stays as it was writes another number of
    subpartitions when its consumer has another number of subtasks.
    """
    started = started_vertices(graph)
    for result in graph.results.values():
        data_set = result.data_set
        if data_set.id.producer in started:
            continue  # it writes what it was told
        consumers = graph.job_graph.vertex(data_set.consumer).parallelism
        for index, partition in enumerate(result.partitions):
            partition.subpartition_count = data_set.subpartition_count or subpartition_count(
                data_set.partitioner.pattern, len(result.partitions), consumers, index
            )
