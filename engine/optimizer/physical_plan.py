"""The OptimizedPlan: physical operators and the channels between them, with everything explain needs.

    OptimizedPlan ── PhysicalNode * (topological order, id = position)
                     ├── descriptor     what runs, with its schemas and memory weight
                     ├── Channel *      ship strategy, partitioner, exchange mode, bytes shipped
                     ├── estimates, own and cumulative costs, rejected alternatives
                     └── pages          of its pool, in a slot with one subtask of each operator of its region

One node of the logical plan becomes one or more physical nodes: an aggregate is a projection of its arguments, a
partial and a final phase. ``plan_node`` says which one it came from. Frozen; ``plan`` is the rewritten plan.

Source: Flink's OptimizedPlan, PlanNode and Channel.
Held by: tests/optimizer/test_physical_operators.py
Held by: tests/optimizer/test_chaining.py
"""

from __future__ import annotations

import msgspec

from engine.errors import PlanError
from engine.graph.exchange_mode import DataExchangeMode
from engine.graph.operator_descriptor import JoinOperator, OperatorDescriptor, PhysicalOperator
from engine.graph.plan import Plan
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.optimizer.candidates import RejectedAlternative
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.costs import NO_COST, Costs
from engine.statistics.estimates import Estimates


class Channel(msgspec.Struct, frozen=True):
    """The channel of rows from one physical node into another."""

    source: int
    input_index: int
    ship_strategy: ShipStrategy
    partitioner: PartitionerSpec
    costs: Costs = NO_COST
    #: reason for its ship strategy, or ""
    reason: str = ""
    exchange_mode: DataExchangeMode = DataExchangeMode.PIPELINED
    #: reason for a BATCH exchange, or ""
    exchange_reason: str = ""

    @property
    def is_pipelined(self) -> bool:
        """Whether producer and consumer run together."""
        return self.exchange_mode is not DataExchangeMode.BATCH


class PhysicalNode(msgspec.Struct, frozen=True):
    """One operator as it will run."""

    id: int
    plan_node: int
    descriptor: OperatorDescriptor
    parallelism: int
    inputs: tuple[Channel, ...]
    estimates: Estimates
    #: algorithm, or "" where there is no choice
    strategy: str = ""
    #: name of a join's whole alternative, as a hint would name it
    alternative: str = ""
    #: cost of the node with the channels into it
    costs: Costs = NO_COST
    cumulative_costs: Costs = NO_COST
    rejected: tuple[RejectedAlternative, ...] = ()
    #: the hint that decided, or ""
    hint: str = ""
    pages: int = 0
    #: True for a first phase that runs with its input (a projection of arguments, partial aggregate, local limit)
    is_local_phase: bool = False

    def with_operator(self, operator: PhysicalOperator) -> PhysicalNode:
        """Return the node with another operator, all else as it is."""
        return msgspec.structs.replace(self, descriptor=msgspec.structs.replace(self.descriptor, operator=operator))

    @property
    def uses_memory(self) -> bool:
        """Whether it keeps rows, in pages of a pool."""
        return self.descriptor.memory_weight > 0

    def absorbs(self, input_index: int) -> bool:
        """Whether it takes all of an input without emitting, so that the producer is never held up by what follows."""
        operator = self.descriptor.operator
        if isinstance(operator, JoinOperator):
            return input_index == operator.first_input
        return operator.traits.absorbs


class OptimizedPlan(msgspec.Struct, frozen=True):
    """The result of the optimizer."""

    nodes: tuple[PhysicalNode, ...]
    #: plan after rewriting, with the node ids of PhysicalNode.plan_node
    plan: Plan
    #: plan before rewriting
    original: Plan
    settings: OptimizerSettings

    def consumers_of(self, node_id: int) -> tuple[tuple[PhysicalNode, Channel], ...]:
        """Return the nodes that read a node's output, with the channels they read it through."""
        return tuple((node, channel) for node in self.nodes for channel in node.inputs if channel.source == node_id)

    def validate(self) -> None:
        """Raise PlanError when ids, order, channels or schemas are inconsistent."""
        for position, node in enumerate(self.nodes):
            if node.id != position or node.parallelism < 1:
                raise PlanError(f"physical node {node.id} at position {position} is malformed")
            for channel in node.inputs:
                self._validate_channel(node, channel)

    def _validate_channel(self, node: PhysicalNode, channel: Channel) -> None:
        text = f"channel {channel.source} -> {node.id}"
        if not 0 <= channel.source < node.id:
            raise PlanError(f"{text} is not topological")
        producer = self.nodes[channel.source]
        if channel.ship_strategy is ShipStrategy.FORWARD and producer.parallelism != node.parallelism:
            raise PlanError(f"{text} is FORWARD from {producer.parallelism} to {node.parallelism} subtasks")
        made = channel.partitioner.travelling(producer.descriptor.output_schema)
        if made != node.descriptor.input_schemas[channel.input_index]:
            raise PlanError(f"{text}: the consumer expects other columns than the producer makes")
        for key in channel.partitioner.keys:
            producer.descriptor.output_schema.column(key)
