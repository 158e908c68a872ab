"""OptimizedPlan to StreamGraph to JobGraph: the last two stages before submission.

    PhysicalNode ─► StreamNode ─► chain ─► JobVertex(id = position in topological order)
    Channel      ─► StreamEdge ─► inside a chain: a call; between chains: IntermediateDataSet + JobEdge

One data set has one consumer, so a vertex with k consumers has k data sets, numbered in the order of its consumers.
A vertex's managed share is the sum of those of its operators.

Source: Flink's StreamingJobGraphGenerator and JobGraphGenerator.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.graph.chained_sources import vertex_name, with_chained_sources
from engine.graph.chaining import chains
from engine.graph.job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex
from engine.graph.plan import encode_plan
from engine.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from engine.ids import IntermediateDataSetId, JobId, JobVertexId
from engine.optimizer.adaptive_facts import with_adaptive_facts
from engine.optimizer.physical_plan import OptimizedPlan


def generate_stream_graph(optimized: OptimizedPlan) -> StreamGraph:
    """Return the StreamGraph of an optimized plan: one node per physical operator."""
    nodes = []
    for node in optimized.nodes:
        edges = tuple(
            StreamEdge(
                channel.source,
                node.id,
                channel.input_index,
                channel.ship_strategy,
                channel.partitioner,
                channel.exchange_mode,
            )
            for channel in node.inputs
        )
        nodes.append(StreamNode(node.id, node.descriptor, node.parallelism, edges))
    graph = StreamGraph(tuple(nodes), optimized.plan.name)
    graph.validate()
    return graph


def generate_job_graph(
    optimized: OptimizedPlan, job_id: JobId, name: str, configuration: Mapping[str, str] | None = None
) -> JobGraph:
    """Return the JobGraph to submit.

    name: shown to people; configuration: keys set for this job, as text.
    """
    graph = generate_stream_graph(optimized)
    chained = chains(graph)
    vertex_of = {node_id: JobVertexId(index) for index, chain in enumerate(chained) for node_id in chain}
    vertices = tuple(_vertex(optimized, graph, chain, vertex_of) for chain in chained)
    job_graph = JobGraph(job_id, name, vertices, encode_plan(optimized.original), dict(configuration or {}))
    job_graph = with_chained_sources(with_adaptive_facts(job_graph, optimized, chained))
    job_graph.validate()
    return job_graph


def _vertex(
    optimized: OptimizedPlan, graph: StreamGraph, chain: tuple[int, ...], vertex_of: dict[int, JobVertexId]
) -> JobVertex:
    head, tail = graph.nodes[chain[0]], graph.nodes[chain[-1]]
    vertex_id = vertex_of[head.id]
    outputs = tuple(
        IntermediateDataSet(
            IntermediateDataSetId(vertex_id, index),
            vertex_of[edge.target],
            edge.exchange_mode.result_type,
            edge.partitioner,
        )
        for index, edge in enumerate(graph.out_edges(tail.id))
    )
    return JobVertex(
        vertex_id,
        vertex_name([graph.nodes[node_id].descriptor.name for node_id in chain]),
        head.parallelism,
        tuple(graph.nodes[node_id].descriptor for node_id in chain),
        _job_edges(graph, head, vertex_of),
        outputs,
        managed_share=min(1.0, sum(optimized.nodes[node_id].managed_share for node_id in chain)),
    )


def _job_edges(graph: StreamGraph, head: StreamNode, vertex_of: dict[int, JobVertexId]) -> tuple[JobEdge, ...]:
    """Return the edges into a vertex; the data set is found by the edge's place among its producer's outgoing ones."""
    edges = []
    seen: dict[StreamEdge, int] = {}
    for edge in head.in_edges:
        same_channel = [index for index, other in enumerate(graph.out_edges(edge.source)) if other == edge]
        # a union may read one producer twice through equal edges: each takes its own data set
        repeat = seen.get(edge, 0)
        seen[edge] = repeat + 1
        data_set = IntermediateDataSetId(vertex_of[edge.source], same_channel[repeat])
        edges.append(JobEdge(data_set, edge.input_index, edge.ship_strategy, edge.partitioner.pattern))
    return tuple(edges)
