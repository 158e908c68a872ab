"""The order in which vertices start, so that decisions can still be made: some wait for the real sizes of others.

    waits(job_graph) -> {vertex: data sets}      the vertex's region does not begin before they are finished

A repartitioned join whose one input may turn out small enough for a broadcast: as soon as the producer of the *other*
input has begun, it is too late. So that producer waits for the real size, where waiting can pay:

    the input may be broadcast    (``broadcast_candidate``)
    its size is a guess           what is certain tells nothing new
    it is expected to be the smaller one: its producer is the one that should be ready first in any case
    nothing that makes it needs the waiting vertex, directly or through other waits

On one slot this is an order and costs nothing. On many slots those that the waiting region would take may idle while
the smaller input is made; the large one is then written once less and sent nowhere. Without ``AdaptiveSettings``
none waits. Pure.

Held by: tests/adaptive/test_decisions.py
"""

from __future__ import annotations

from engine.adaptive.decisions import broadcast_candidate
from engine.adaptive.graph_shape import input_edge
from engine.graph.job_graph import JobGraph, JobVertex
from engine.graph.pipelined_regions import PipelinedRegion, pipelined_regions
from engine.ids import IntermediateDataSetId, JobVertexId


def waits(job_graph: JobGraph) -> dict[JobVertexId, tuple[IntermediateDataSetId, ...]]:
    """Return the data sets that vertices wait for besides those that they read, by vertex of the waiting region."""
    if job_graph.adaptive is None:
        return {}
    undecided = [
        (join, small) for join in job_graph.vertices if (small := _undecided_input(job_graph, join)) is not None
    ]
    if not undecided:
        return {}
    regions = pipelined_regions(job_graph)
    region_of = {vertex: region for region in regions for vertex in region.vertices}
    needs = {region.index: set(region.inputs) for region in regions}
    found: dict[JobVertexId, tuple[IntermediateDataSetId, ...]] = {}
    for join, small in undecided:
        small_set, stay_set = input_edge(join, small).data_set, input_edge(join, 1 - small).data_set
        first, second = region_of[small_set.producer], region_of[stay_set.producer]
        if _needs(needs, first, second):
            continue
        needs[second.index].add(first.index)
        for vertex in second.vertices:
            found[vertex] = (*found.get(vertex, ()), small_set)
    return found


def _undecided_input(job_graph: JobGraph, join: JobVertex) -> int | None:
    """Return the input whose real size may make a repartitioned join a broadcast join."""
    for small in (0, 1):
        if not broadcast_candidate(job_graph, join, small):
            continue
        expected = job_graph.data_set(input_edge(join, small).data_set).expected
        other = job_graph.data_set(input_edge(join, 1 - small).data_set).expected
        assert expected is not None and other is not None, "candidates have expected sizes"
        if not expected.is_certain and expected.size_bytes <= other.size_bytes:
            return small
    return None


def _needs(needs: dict[int, set[int]], region: PipelinedRegion, other: PipelinedRegion) -> bool:
    """Whether a region cannot run before another one, or is the same."""
    found: set[int] = set()
    stack = [region.index]
    while stack:
        index = stack.pop()
        if index not in found:
            found.add(index)
            stack.extend(needs[index])
    return other.index in found
