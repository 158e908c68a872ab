"""The StreamGraph: one node per physical operator, edges with their partitioner and exchange mode.

    StreamNode(id, descriptor, parallelism) ◄──in_edges── StreamEdge ──► StreamNode
                                            source, target, input_index, ship strategy, partitioner, exchange mode

It stands between the optimizer, which decides, and chaining, which joins nodes into the vertices of the JobGraph.
Nodes are in topological order and their ids are their positions. It has no picture of its own, as
Flink's has (JSONGenerator): people read ``explain``, and dashboards the vertices of the JobGraph
(``/jobs/:jobid/plan``), which are what runs.

Source: Flink's StreamGraph, StreamNode and StreamEdge. Virtual nodes do not exist here: a partitioning
is a property of an edge from the start.
"""

from __future__ import annotations

import msgspec

from engine.errors import PlanError
from engine.graph.exchange_mode import DataExchangeMode
from engine.graph.operator_descriptor import OperatorDescriptor
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy


class StreamEdge(msgspec.Struct, frozen=True):
    """How rows get from one operator to another."""

    source: int
    target: int
    #: which input of the target: 0 and 1 are left and right of a join; the edges of a union share 0
    input_index: int
    ship_strategy: ShipStrategy
    partitioner: PartitionerSpec
    exchange_mode: DataExchangeMode


class StreamNode(msgspec.Struct, frozen=True):
    """A physical operator and its parallelism."""

    id: int
    descriptor: OperatorDescriptor
    parallelism: int
    in_edges: tuple[StreamEdge, ...] = ()


class StreamGraph(msgspec.Struct, frozen=True):
    """All nodes of a job in topological order."""

    nodes: tuple[StreamNode, ...]
    name: str = ""

    def out_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        """Return the edges that leave a node, in the order of their targets."""
        return tuple(edge for node in self.nodes for edge in node.in_edges if edge.source == node_id)

    def validate(self) -> None:
        """Raise PlanError when ids, order, edges or schemas are inconsistent."""
        for position, node in enumerate(self.nodes):
            if node.id != position or node.parallelism < 1:
                raise PlanError(f"stream node {node.id} at position {position} is malformed")
            for edge in node.in_edges:
                self._validate_edge(node, edge)

    def _validate_edge(self, node: StreamNode, edge: StreamEdge) -> None:
        text = f"edge {edge.source} -> {edge.target}"
        if edge.target != node.id or not 0 <= edge.source < node.id:
            raise PlanError(f"{text} at node {node.id} is not topological")
        producer = self.nodes[edge.source]
        if edge.ship_strategy is ShipStrategy.FORWARD and producer.parallelism != node.parallelism:
            raise PlanError(f"{text} is FORWARD from {producer.parallelism} to {node.parallelism} subtasks")
        made = edge.partitioner.travelling(producer.descriptor.output_schema)
        if made != node.descriptor.input_schemas[edge.input_index]:
            raise PlanError(f"{text}: the consumer expects other columns than the producer makes")
        for key in edge.partitioner.keys:
            producer.descriptor.output_schema.column(key)
