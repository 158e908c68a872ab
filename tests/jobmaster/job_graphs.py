"""JobGraphs for tests of the control plane: vertices without real operators, connected as told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.graph.job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex
from engine.graph.operator_descriptor import (
    IdentityOperator,
    OperatorDescriptor,
    PhysicalOperator,
    SinkOperator,
    SourceOperator,
)
from engine.graph.plan_schema import PlanSchema
from engine.graph.ship_strategy import PartitionerSpec, ResultPartitionType, ShipStrategy
from engine.graph.source_spec import ParquetSource, SinkSpec, SourceSplit
from engine.ids import IntermediateDataSetId, JobId, JobVertexId

EMPTY = PlanSchema(())
PIPELINED, BLOCKING = ResultPartitionType.PIPELINED, ResultPartitionType.BLOCKING


@dataclass(frozen=True)
class Edge:
    """From producer to consumer, by position."""

    producer: int
    consumer: int
    kind: str = "HASH"
    result_type: ResultPartitionType = PIPELINED
    input_index: int = 0


def splits(*sizes: int) -> tuple[SourceSplit, ...]:
    return tuple(SourceSplit(f"file-{index}", 0, 1, size) for index, size in enumerate(sizes))


def job_graph(
    parallelisms: Sequence[int],
    edges: Sequence[Edge] = (),
    names: Sequence[str] = (),
    sinks: dict[int, SinkSpec] | None = None,
    source_splits: tuple[SourceSplit, ...] = (),
    weights: dict[int, float] | None = None,
    name: str = "test job",
) -> JobGraph:
    """Vertex ``i`` has ``parallelisms[i]`` subtasks; those without inputs are sources, those in ``sinks`` write."""
    vertices = []
    for index, parallelism in enumerate(parallelisms):
        inputs = [edge for edge in edges if edge.consumer == index]
        outputs = [edge for edge in edges if edge.producer == index]
        head: PhysicalOperator = IdentityOperator() if inputs else SourceOperator(ParquetSource((), source_splits, ()))
        vertex_name = names[index] if names else f"vertex {index}"
        chain = [OperatorDescriptor(0, vertex_name, head, (), EMPTY, (weights or {}).get(index, 0.0))]
        if sinks and index in sinks:
            chain.append(OperatorDescriptor(0, "sink", SinkOperator(index, sinks[index]), (), EMPTY))
        vertices.append(
            JobVertex(
                JobVertexId(index),
                vertex_name,
                parallelism,
                tuple(chain),
                tuple(_job_edge(edge, edges) for edge in inputs),
                tuple(
                    IntermediateDataSet(
                        IntermediateDataSetId(JobVertexId(index), position),
                        JobVertexId(edge.consumer),
                        edge.result_type,
                        PartitionerSpec(edge.kind),
                    )
                    for position, edge in enumerate(outputs)
                ),
            )
        )
    return JobGraph(JobId.random(), name, tuple(vertices), b"", {})


def _job_edge(edge: Edge, edges: Sequence[Edge]) -> JobEdge:
    siblings = [other for other in edges if other.producer == edge.producer]
    data_set = IntermediateDataSetId(JobVertexId(edge.producer), siblings.index(edge))
    ship = ShipStrategy.FORWARD if edge.kind == "FORWARD" else ShipStrategy.PARTITION_HASH
    return JobEdge(data_set, edge.input_index, ship, PartitionerSpec(edge.kind).pattern)
