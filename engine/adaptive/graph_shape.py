"""The shape of a JobGraph for run-time decisions: readers of results, vertices that follow others or run with them.

    input_edge       the edge of one input of a join
    reads_all        every subtask reads all of a data set (a broadcast)
    is_divisible     whether subpartitions may be put together: each row is in one of them
    followers        vertices that have the same subtasks: connected through FORWARD
    region_of        the pipelined region of a vertex, None when regions would wait for each other
    region_pages     pages without which the operators of a region do not run
    DataSetSize      what a finished data set really is

Pure.

Held by: tests/adaptive/test_decisions.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from engine.graph.job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex
from engine.graph.pipelined_regions import pipelined_regions
from engine.graph.ship_strategy import PartitionerSpec
from engine.ids import IntermediateDataSetId, JobVertexId
from engine.memory.page_budget import pages_needed

#: exchanges that only divide rows: rows with equal keys are together, and no other promise is made
_PORTIONED = ("HASH", "REBALANCE", "SHUFFLE")


class DataSetSize(NamedTuple):
    """Rows and bytes of a finished data set, and bytes of each subpartition over all producers.

    ``filled_count``: subpartitions of all producers that hold something: channels through which it is read whole.
    ``stored``: bytes of each subpartition, for each producer.
    """

    rows: int
    size_bytes: int
    subpartition_bytes: tuple[int, ...]
    filled_count: int = 1
    stored: tuple[Sequence[int], ...] = ()


def input_edge(vertex: JobVertex, input_index: int) -> JobEdge:
    """Return the edge of an input of a join, which has one for each."""
    return next(edge for edge in vertex.inputs if edge.input_index == input_index)


def reads_all(edge: JobEdge, data_set: IntermediateDataSet) -> bool:
    """Whether every consumer reads all of a data set."""
    whole = (0, data_set.subpartition_count)
    return data_set.partitioner.kind == "BROADCAST" or (
        bool(edge.ranges) and all(each == whole for each in edge.ranges)
    )


def is_divisible(partitioner: PartitionerSpec) -> bool:
    """Whether any portions of the subpartitions may be read together: no row is in two of them."""
    plain = PartitionerSpec(partitioner.kind, partitioner.keys, partitioner.spread_nulls)
    return partitioner.kind in _PORTIONED and partitioner == plain


def is_plain_hash(partitioner: PartitionerSpec) -> bool:
    """Whether it is a hash exchange without split keys."""
    return partitioner.kind == "HASH" and is_divisible(partitioner)


def followers(
    job_graph: JobGraph, start: JobVertexId, without: Collection[IntermediateDataSetId] = ()
) -> tuple[JobVertexId, ...]:
    """Return a vertex and all that are connected with it through FORWARD, in order; ``without`` are not followed."""
    found = {start}
    stack = [start]
    while stack:
        for neighbour in _forward_neighbours(job_graph, job_graph.vertex(stack.pop()), without):
            if neighbour not in found:
                found.add(neighbour)
                stack.append(neighbour)
    return tuple(sorted(found))


def _forward_neighbours(
    job_graph: JobGraph, vertex: JobVertex, without: Collection[IntermediateDataSetId]
) -> Iterable[JobVertexId]:
    for edge in vertex.inputs:
        if job_graph.data_set(edge.data_set).partitioner.kind == "FORWARD" and edge.data_set not in without:
            yield edge.data_set.producer
    for data_set in vertex.outputs:
        if data_set.partitioner.kind == "FORWARD" and data_set.id not in without:
            yield data_set.consumer


def region_of(job_graph: JobGraph, vertex: JobVertexId) -> tuple[JobVertexId, ...] | None:
    """Return the vertices that run together with one; None when regions wait for each other: such a job cannot run."""
    try:
        regions = pipelined_regions(job_graph)
    except ValueError:
        return None
    return next(region.vertices for region in regions if vertex in region.vertices)


def region_pages(job_graph: JobGraph, region: Iterable[JobVertexId]) -> int:
    """Return the pages of a slot without which the operators of a region do not run together."""
    return pages_needed(step.memory_weight for vertex in region for step in job_graph.vertex(vertex).chain)


def with_vertices(job_graph: JobGraph, vertices: Iterable[JobVertex]) -> JobGraph:
    """Return the graph with some vertices replaced; the others are the same objects."""
    changed = {vertex.id: vertex for vertex in vertices}
    return msgspec.structs.replace(
        job_graph, vertices=tuple(changed.get(vertex.id, vertex) for vertex in job_graph.vertices)
    )


def with_data_set(job_graph: JobGraph, data_set: IntermediateDataSet) -> JobGraph:
    """Return the graph with a data set replaced."""
    producer = job_graph.vertex(data_set.id.producer)
    outputs = tuple(data_set if each.id == data_set.id else each for each in producer.outputs)
    return with_vertices(job_graph, [msgspec.structs.replace(producer, outputs=outputs)])


def with_edge(job_graph: JobGraph, consumer: JobVertexId, edge: JobEdge) -> JobGraph:
    """Return the graph with the edge of a data set replaced."""
    vertex = job_graph.vertex(consumer)
    inputs = tuple(edge if each.data_set == edge.data_set else each for each in vertex.inputs)
    return with_vertices(job_graph, [msgspec.structs.replace(vertex, inputs=inputs)])
