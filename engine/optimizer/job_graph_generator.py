"""OptimizedPlan to JobGraph: the last stage before submission.

    PhysicalNode ─► chain ─► JobVertex(id = position in topological order)
    Channel      ─► inside a chain: a call; between chains: IntermediateDataSet + JobEdge

One data set has one consumer, so a vertex with k consumers has k data sets, numbered in the order of its consumers.

Source: Flink's StreamingJobGraphGenerator and JobGraphGenerator. The StreamGraph between them, which copied what the
optimizer had decided, does not exist here.
Held by: tests/graph/test_job_graph.py
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.graph.chained_sources import vertex_name, with_chained_sources
from engine.graph.job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex
from engine.graph.plan import encode_plan
from engine.ids import IntermediateDataSetId, JobId, JobVertexId
from engine.optimizer.adaptive_facts import with_adaptive_facts
from engine.optimizer.chaining import chains
from engine.optimizer.physical_plan import OptimizedPlan, PhysicalNode
from engine.optimizer.planned_steps import planned_steps


def generate_job_graph(
    optimized: OptimizedPlan, job_id: JobId, name: str, configuration: Mapping[str, str] | None = None
) -> JobGraph:
    """Return the JobGraph to submit.

    name: shown to people; configuration: keys set for this job, as text.
    """
    optimized.validate()
    chained = chains(optimized.nodes)
    vertex_of = {node_id: JobVertexId(index) for index, chain in enumerate(chained) for node_id in chain}
    vertices = tuple(_vertex(optimized, chain, vertex_of) for chain in chained)
    plan, steps = encode_plan(optimized.original), planned_steps(optimized)
    job_graph = JobGraph(job_id, name, vertices, plan, dict(configuration or {}), planned=steps)
    job_graph = with_chained_sources(with_adaptive_facts(job_graph, optimized, chained))
    job_graph.validate()
    return job_graph


def _vertex(optimized: OptimizedPlan, chain: tuple[int, ...], vertex_of: dict[int, JobVertexId]) -> JobVertex:
    nodes = [optimized.nodes[node_id] for node_id in chain]
    vertex_id = vertex_of[chain[0]]
    outputs = tuple(
        IntermediateDataSet(
            IntermediateDataSetId(vertex_id, index),
            vertex_of[consumer.id],
            channel.exchange_mode.result_type,
            channel.partitioner,
        )
        for index, (consumer, channel) in enumerate(optimized.consumers_of(chain[-1]))
    )
    return JobVertex(
        vertex_id,
        vertex_name([node.descriptor.name for node in nodes]),
        nodes[0].parallelism,
        tuple(node.descriptor for node in nodes),
        _job_edges(optimized, nodes[0], vertex_of),
        outputs,
    )


def _job_edges(optimized: OptimizedPlan, head: PhysicalNode, vertex_of: dict[int, JobVertexId]) -> tuple[JobEdge, ...]:
    """Return the edges into a vertex; a data set has its channel's place among those that leave the producer."""
    edges = []
    for channel in head.inputs:
        # a union may read one producer twice through equal channels: each is an object of its own
        outgoing = [each for _, each in optimized.consumers_of(channel.source)]
        place = next(index for index, each in enumerate(outgoing) if each is channel)
        data_set = IntermediateDataSetId(vertex_of[channel.source], place)
        edges.append(JobEdge(data_set, channel.input_index, channel.ship_strategy, channel.partitioner.pattern))
    return tuple(edges)
