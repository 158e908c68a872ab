"""A partitioning that the user asks for. What the kinds are and do is in ``partition_planning``.

Held by: tests/optimizer/test_partitionings.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.expression import Expression
from engine.graph.operator_descriptor import IdentityOperator, OperatorDescriptor, PhysicalOperator
from engine.graph.plan import Partition, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.candidates import Candidate
from engine.optimizer.input_changes import follow_input, narrow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, Planning
from engine.optimizer.operator_entries.python_function import function_details
from engine.optimizer.partition_planning import channel_descriptor, forward_error, partition_candidates
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.short_text import short
from engine.statistics.estimates import Estimates


class PartitionEntry(OperatorEntry[Partition]):
    """The entry of partitionings."""

    operator = Partition

    def name(self, operator: Partition) -> str:
        """Return the kind and the keys."""
        kind = operator.kind.lower()
        return short(f"{kind} by {', '.join(operator.keys)}") if operator.keys else kind

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the place of a custom one's function in the script."""
        return function_details(operator)

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Partition, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the columns that consumers use, and the keys."""
        return used | set(operator.keys)

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Partition, used: set[str]) -> None:
        """Send nothing that is not used."""
        narrow_input(plan, node, 0, used | set(operator.keys))
        follow_input(plan, plan.node(node.id))

    def estimate(self, node: PlanNode, operator: Partition, inputs: Sequence[Estimates]) -> Estimates:
        """Return the rows of the input; those of a broadcast follow with its parallelism."""
        return msgspec.structs.replace(inputs[0], origin="rows of the input")

    def origins(
        self, operator: Partition, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values are those of the input."""
        return ((0, key),)

    def candidates(
        self,
        planning: Planning,
        node: PlanNode,
        operator: Partition,
        estimates: Estimates,
        inputs: list[list[Candidate]],
    ) -> list[Candidate]:
        """Return the candidate that the user asked for."""
        found = partition_candidates(node, operator, estimates, inputs[0], planning.settings)
        if not found:
            raise forward_error(planning.plan, node, inputs[0][0], planning.name_of)
        return found

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Partition) -> int:
        """Add the edge, and before a custom one the function that gives each row its channel."""
        if operator.kind != "CUSTOM":
            return builder.add_plain(candidate, IdentityOperator(), are_apart=False)
        below = builder.input_node(candidate)
        descriptor = channel_descriptor(candidate, operator, below.descriptor.output_schema)
        source = builder.add_phase(candidate, below.id, descriptor, below.estimates)
        schema = candidate.node.schema
        name = builder.name_of(candidate.node)
        identity = OperatorDescriptor(candidate.node.id, name, IdentityOperator(), (schema,), schema)
        return builder.add(candidate, identity, (channel_of(source, 0, candidate.inputs[0].shipping),))
