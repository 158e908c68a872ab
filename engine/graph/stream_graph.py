"""The StreamGraph: one node per physical operator, edges with their partitioner and exchange mode.

    StreamNode(id, descriptor, parallelism) ◄──in_edges── StreamEdge ──► StreamNode
                                            source, target, input_index, ship strategy, partitioner, exchange mode

It stands between the optimizer, which decides, and chaining, which joins nodes into the vertices of the JobGraph.
Nodes are in topological order and their ids are their positions. ``plan_json`` is the picture for people and
dashboards, in the shape of Flink's plan JSON.

Source: Flink's StreamGraph, StreamNode, StreamEdge and JSONGenerator. Virtual nodes do not exist here: a partitioning
is a property of an edge from the start.
"""

from __future__ import annotations

import msgspec

from engine.errors import PlanError
from engine.graph.exchange_mode import DataExchangeMode
from engine.graph.operator_descriptor import OperatorDescriptor, SinkOperator, SourceOperator
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

    @property
    def is_source(self) -> bool:
        """Whether it reads from outside."""
        return isinstance(self.descriptor.operator, SourceOperator)

    @property
    def is_sink(self) -> bool:
        """Whether it writes outside."""
        return isinstance(self.descriptor.operator, SinkOperator)


class StreamGraph(msgspec.Struct, frozen=True):
    """All nodes of a job in topological order."""

    nodes: tuple[StreamNode, ...]
    name: str = ""

    @property
    def sources(self) -> tuple[int, ...]:
        """Ids of the nodes that read from outside."""
        return tuple(node.id for node in self.nodes if node.is_source)

    @property
    def sinks(self) -> tuple[int, ...]:
        """Ids of the nodes that write outside."""
        return tuple(node.id for node in self.nodes if node.is_sink)

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

    def plan_json(self) -> str:
        """Return the plan as JSON text: one object per node with its predecessors, like Flink's."""
        nodes = [
            {
                "id": node.id,
                "type": node.descriptor.name,
                "pact": "Data Source" if node.is_source else "Data Sink" if node.is_sink else "Operator",
                "parallelism": node.parallelism,
                "predecessors": [
                    {
                        "id": edge.source,
                        "ship_strategy": edge.ship_strategy.value,
                        "exchange_mode": edge.exchange_mode.value,
                        "side": "second" if edge.input_index else "first",
                    }
                    for edge in node.in_edges
                ],
            }
            for node in self.nodes
        ]
        return msgspec.json.format(msgspec.json.encode({"name": self.name, "nodes": nodes}), indent=2).decode()
