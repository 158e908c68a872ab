"""Pipelined regions: which vertices must run together, and an order in which regions can run.

    source ══► map ──BLOCKING──► reduce ══► sink          ══ PIPELINED
    └── region 0 ──┘             └── region 1 ──┘

Vertices joined by PIPELINED data sets (in either direction) form one region: they are deployed, fail and restart
together. A region may start when every BLOCKING data set that it reads is finished. That works only when the regions
form a DAG, so a planner calls ``acyclic_cuts`` first:

    A ══► C          A and C are one region, and B, which C reads, waits for A to finish while C waits for B:
    A ──► B ──► C    the edge A ══► C must be BLOCKING too.

The cut: give each vertex a level, the largest number of BLOCKING edges on a path to it, and make those PIPELINED
edges BLOCKING that climb levels and lie inside a cycle of regions. A region whose PIPELINED edges all stay on one
level has one level, and BLOCKING edges strictly climb: no cycle is left.

Regions are numbered in an order in which they can run, and among those free to run, regions that feed build sides
come first, so that a table is there before its probe side starts.

Source: Flink's DefaultExecutionTopology and SchedulingPipelinedRegionComputeUtil (which merges cyclic regions; we cut
instead, so that any job of BLOCKING stages runs on one slot).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import msgspec

from engine.graph.components import component_of
from engine.graph.job_graph import JobGraph
from engine.graph.operator_descriptor import JoinOperator
from engine.ids import JobVertexId


class RegionEdge(msgspec.Struct, frozen=True):
    """One exchange between two nodes numbered from 0 in topological order."""

    producer: int
    consumer: int
    is_pipelined: bool
    is_build_side: bool = False


class PipelinedRegion(msgspec.Struct, frozen=True):
    """Vertices that run together. ``index`` is the region's place in an order in which regions can run."""

    index: int
    vertices: tuple[JobVertexId, ...]
    #: indexes of regions whose BLOCKING results it reads
    inputs: tuple[int, ...]
    #: indexes of regions that read its BLOCKING results
    outputs: tuple[int, ...]
    #: slots needed at once: the largest parallelism of its vertices (one subtask of each shares a slot)
    slot_count: int


def pipelined_components(node_count: int, edges: Sequence[RegionEdge]) -> list[int]:
    """Return the smallest node number of each node's pipelined component."""
    return component_of(node_count, [(edge.producer, edge.consumer) for edge in edges if edge.is_pipelined])


def cyclic_components(components: list[int], edges: Sequence[RegionEdge]) -> set[int]:
    """Return the components that wait for themselves through BLOCKING edges, directly or around a cycle."""
    reads: dict[int, set[int]] = {component: set() for component in components}
    for edge in edges:
        if not edge.is_pipelined:
            reads[components[edge.consumer]].add(components[edge.producer])
    cyclic: set[int] = set()
    for start, producers in reads.items():
        reached: set[int] = set()
        stack = list(producers)
        while stack:
            component = stack.pop()
            if component not in reached:
                reached.add(component)
                stack.extend(reads[component])
        if start in reached:
            cyclic.add(start)
    return cyclic


def acyclic_cuts(node_count: int, edges: Sequence[RegionEdge]) -> set[int]:
    """Return positions in ``edges`` that must become BLOCKING so that the regions form a DAG; empty when they do.

    Every producer must have a smaller number than its consumer.
    """
    cut: set[int] = set()
    current = list(edges)
    while True:
        components = pipelined_components(node_count, current)
        cyclic = cyclic_components(components, current)
        if not cyclic:
            return cut
        level = [0] * node_count
        for edge in sorted(current, key=lambda edge: edge.consumer):
            level[edge.consumer] = max(level[edge.consumer], level[edge.producer] + (not edge.is_pipelined))
        for position, edge in enumerate(current):
            climbs = edge.is_pipelined and level[edge.producer] < level[edge.consumer]
            if climbs and components[edge.consumer] in cyclic:
                cut.add(position)
                current[position] = msgspec.structs.replace(edge, is_pipelined=False)


def pipelined_regions(job_graph: JobGraph) -> tuple[PipelinedRegion, ...]:
    """Return the regions of a job in an order in which they can run one after another, build sides first.

    A graph whose regions form a cycle (the generator makes none) raises ValueError.
    """
    edges = _edges_of(job_graph)
    components = pipelined_components(len(job_graph.vertices), edges)
    if cyclic_components(components, edges):
        raise ValueError("the pipelined regions of the job graph wait for each other")
    reads: dict[int, set[int]] = {component: set() for component in components}
    feeds_build: set[int] = set()
    for edge in edges:
        if not edge.is_pipelined:
            reads[components[edge.consumer]].add(components[edge.producer])
            if edge.is_build_side:
                feeds_build.add(components[edge.producer])
    order = _run_order(reads, _with_all_inputs(feeds_build, reads))
    index_of = {component: index for index, component in enumerate(order)}
    members: dict[int, list[int]] = {component: [] for component in order}
    for node, component in enumerate(components):
        members[component].append(node)
    outputs: dict[int, set[int]] = {component: set() for component in order}
    for component, producers in reads.items():
        for producer in producers:
            outputs[producer].add(component)
    regions = []
    for component in order:
        vertices = [job_graph.vertices[node] for node in members[component]]
        regions.append(
            PipelinedRegion(
                index=index_of[component],
                vertices=tuple([vertex.id for vertex in vertices]),
                inputs=tuple(sorted(map(index_of.__getitem__, reads[component]))),
                outputs=tuple(sorted(map(index_of.__getitem__, outputs[component]))),
                slot_count=max([vertex.parallelism for vertex in vertices]),
            )
        )
    return tuple(regions)


def _edges_of(job_graph: JobGraph) -> list[RegionEdge]:
    edges = []
    for position, vertex in enumerate(job_graph.vertices):
        head = vertex.chain[0].operator
        build_input = head.first_input if isinstance(head, JoinOperator) else None
        for edge in vertex.inputs:
            is_pipelined = job_graph.data_set(edge.data_set).result_type.is_pipelined
            is_build_side = edge.input_index == build_input
            edges.append(RegionEdge(edge.data_set.producer.index, position, is_pipelined, is_build_side))
    return edges


def _with_all_inputs(components: set[int], reads: dict[int, set[int]]) -> set[int]:
    """Return components and everything that they read, directly or not."""
    found: set[int] = set()
    stack = list(components)
    while stack:
        component = stack.pop()
        if component not in found:
            found.add(component)
            stack.extend(reads[component])
    return found


def _run_order(reads: dict[int, set[int]], feeds_build: set[int]) -> list[int]:
    """Topological order of components; among the free ones those that feed build sides first, then by number."""
    waiting = {component: len(producers) for component, producers in reads.items()}
    consumers: dict[int, list[int]] = {component: [] for component in reads}
    for component, producers in reads.items():
        for producer in producers:
            consumers[producer].append(component)
    free: list[tuple[bool, int]] = []
    for component, count in waiting.items():
        if count == 0:
            heappush(free, (component not in feeds_build, component))
    order = []
    while free:
        _, component = heappop(free)
        order.append(component)
        for consumer in consumers[component]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                heappush(free, (consumer not in feeds_build, consumer))
    return order
