"""PhysicalPlanBuilder: the physical operators of chosen candidates, added one behind the other.

    add_plain    the one operator of a candidate
    add_phase    a first phase, in the subtasks of its input        input ─► phase ─► phase ═══ final
    add          the operator that finishes a candidate's work; it carries the costs

Memory weights: the part of a slot that an operator would fill with what it will hold, between WEIGHT_MIN (estimates can
be wrong) and 1.

Held by: tests/optimizer/test_physical_operators.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from engine.graph.operator_descriptor import OperatorDescriptor, PhysicalOperator
from engine.graph.plan import Plan, PlanNode
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.candidates import FORWARD, Candidate, Shipping
from engine.optimizer.physical_plan import Channel, PhysicalNode
from engine.optimizer.rejection_reasons import rejected_alternatives
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.costs import NO_COST
from engine.statistics.estimates import Estimates


class PhysicalPlanBuilder:
    """The physical nodes of a plan, in topological order; each candidate has one that finishes it.

    Args:
        plan: the candidates' plan.
        settings: of the place where it will run.
        name_of: what a node of the plan is called.
    """

    WEIGHT_MIN: ClassVar[float] = 0.125

    def __init__(self, plan: Plan, settings: OptimizerSettings, name_of: Callable[[PlanNode], str]) -> None:
        self._sink_index = {node_id: index for index, node_id in enumerate(plan.sinks)}
        self._settings = settings
        self.name_of = name_of
        self.nodes: list[PhysicalNode] = []
        self._built: dict[int, int] = {}

    # ---- what is there

    def is_built(self, candidate: Candidate) -> bool:
        """Whether a candidate's operators are there."""
        return id(candidate) in self._built

    def set_built(self, candidate: Candidate, node_id: int) -> None:
        """Record which node finishes a candidate's work."""
        self._built[id(candidate)] = node_id

    @property
    def next_id(self) -> int:
        """The id of the node that is added next."""
        return len(self.nodes)

    def node(self, node_id: int) -> PhysicalNode:
        """Return a node by its id."""
        return self.nodes[node_id]

    def input_node(self, candidate: Candidate, index: int = 0) -> PhysicalNode:
        """Return the node that finishes an input of a candidate."""
        return self.nodes[self._built[id(candidate.inputs[index].candidate)]]

    def sink_index(self, node: PlanNode) -> int:
        """Return the index of a node among the plan's sinks."""
        return self._sink_index[node.id]

    def channels(self, candidate: Candidate, *, are_apart: bool) -> tuple[Channel, ...]:
        """Return the channels into a candidate's operator.

        are_apart: each input is one of its own; else all of them are input 0.
        """
        return tuple(
            channel_of(self._built[id(each.candidate)], position if are_apart else 0, each.shipping)
            for position, each in enumerate(candidate.inputs)
        )

    def weight(self, held: Estimates, parallelism: int) -> float:
        """Return the weight of an operator that holds so much in all its subtasks together."""
        if not held.is_size_known:
            return 1.0
        return self._settings.page_budget.weight(held.size_bytes / parallelism, self.WEIGHT_MIN)

    # ---- what is added

    def add_node(self, node: PhysicalNode) -> int:
        """Add a node that was made elsewhere, with ``next_id``."""
        self.nodes.append(node)
        return node.id

    def change(self, node_id: int, operator: PhysicalOperator) -> None:
        """Give a node that is there another operator, with the same inputs and rows."""
        node = self.nodes[node_id]
        descriptor = msgspec.structs.replace(node.descriptor, operator=operator)
        self.nodes[node_id] = msgspec.structs.replace(node, descriptor=descriptor)

    def add_plain(self, candidate: Candidate, operator: PhysicalOperator, *, are_apart: bool = True) -> int:
        """Add a candidate's one operator, which keeps no rows; ``are_apart`` as in ``channels``."""
        channels = self.channels(candidate, are_apart=are_apart)
        count = len(channels) if are_apart else min(1, len(channels))
        schemas = tuple(self.nodes[channel.source].descriptor.output_schema for channel in channels[:count])
        descriptor = OperatorDescriptor(
            candidate.node.id, self.name_of(candidate.node), operator, schemas, candidate.node.schema
        )
        return self.add(candidate, descriptor, channels)

    def add(
        self, candidate: Candidate, descriptor: OperatorDescriptor, channels: tuple[Channel, ...], strategy: str = ""
    ) -> int:
        """Add the operator that finishes a candidate's work; it carries the costs."""
        report = candidate.report
        node = PhysicalNode(
            self.next_id,
            candidate.node.id,
            descriptor,
            candidate.parallelism,
            channels,
            candidate.estimates,
            strategy or candidate.strategy,
            candidate.alternative,
            candidate.own_costs,
            candidate.cumulative_costs,
            () if report is None else rejected_alternatives(candidate.alternative, report),
            "" if report is None else report.hint,
        )
        return self.add_node(node)

    def add_phase(
        self,
        candidate: Candidate,
        source: int,
        descriptor: OperatorDescriptor,
        estimates: Estimates,
        strategy: str = "",
    ) -> int:
        """Add a first phase that runs in the subtasks of its input."""
        below = self.nodes[source]
        node = PhysicalNode(
            self.next_id,
            candidate.node.id,
            descriptor,
            below.parallelism,
            (Channel(source, 0, ShipStrategy.FORWARD, FORWARD),),
            estimates,
            strategy,
            costs=NO_COST,
            cumulative_costs=below.cumulative_costs,
            is_local_phase=True,
        )
        return self.add_node(node)


def channel_of(source: int, input_index: int, shipping: Shipping) -> Channel:
    """Return the channel through which rows travel as it was planned."""
    return Channel(source, input_index, shipping.strategy, shipping.partitioner, shipping.costs, shipping.reason)
