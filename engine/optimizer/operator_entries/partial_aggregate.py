"""States of groups, which rules put below joins and below coarser groups: the first phase of an aggregate by itself.

Rows stay in their subtask; a group may come out several times, and of each subtask that has rows of it.

Held by: tests/optimizer/test_aggregate_pushdown.py
Held by: tests/optimizer/test_coarser_groups.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.expression import columns_of
from engine.graph.operator_descriptor import HashAggregateOperator, OperatorDescriptor
from engine.graph.plan import PartialAggregate, PlanNode
from engine.optimizer.aggregate_phases import add_input, first_phase
from engine.optimizer.candidates import Candidate
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.aggregate import groups_of
from engine.optimizer.operator_entries.entry import OrderUse, Planning
from engine.optimizer.operator_entries.row_wise import RowWiseEntry
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.properties import GlobalProperties, LocalProperties
from engine.optimizer.short_text import short
from engine.statistics.estimates import Estimates


class PartialAggregateEntry(RowWiseEntry[PartialAggregate]):
    """The entry of partial aggregates, which compute states of groups."""

    operator = PartialAggregate

    def name(self, operator: PartialAggregate) -> str:
        """Return the keys."""
        return short(f"states by {', '.join(operator.keys)}")

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: PartialAggregate, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the keys and the columns of all arguments, or of all states."""
        if operator.of_states:
            return set(node.schema.names)
        arguments = (call.argument for call in operator.calls if call.argument is not None)
        return {name for argument in arguments for name in columns_of(argument)} | set(operator.keys)

    def order_use(self, operator: PartialAggregate) -> OrderUse:
        """Rows lose their order."""
        return OrderUse.LOST

    def estimate(self, node: PlanNode, operator: PartialAggregate, inputs: Sequence[Estimates]) -> Estimates:
        """Return a row for each group, and what that is good for."""
        groups = groups_of(node, operator.keys, inputs[0])
        return msgspec.structs.replace(groups, origin=f"{groups.origin}; {operator.why}")

    def properties(self, operator: PartialAggregate, source: Candidate) -> GlobalProperties:
        """Rows stay where they are."""
        return source.properties.kept(operator.keys)

    def candidates(
        self,
        planning: Planning,
        node: PlanNode,
        operator: PartialAggregate,
        estimates: Estimates,
        inputs: list[list[Candidate]],
    ) -> list[Candidate]:
        """Return one candidate for each of the input, in no order."""
        found = super().candidates(planning, node, operator, estimates, inputs)
        return [msgspec.structs.replace(each, order=LocalProperties(), sorted_by=()) for each in found]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: PartialAggregate) -> int:
        """Add the first phase, with its arguments."""
        below = add_input(builder, candidate, operator)
        weight = builder.weight(candidate.estimates, 1)
        rows = builder.node(below).estimates.rows / candidate.parallelism
        descriptor = OperatorDescriptor(
            candidate.node.id,
            builder.name_of(candidate.node),
            HashAggregateOperator(first_phase(operator), operator.keys, operator.calls, rows_expected=int(rows)),
            (builder.node(below).descriptor.output_schema,),
            candidate.node.schema,
            # where it cannot hold all groups, most rows pass it whatever memory it has
            weight if weight < 1.0 else builder.WEIGHT_MIN,
        )
        return builder.add(candidate, descriptor, (channel_of(below, 0, candidate.inputs[0].shipping),), "PARTIAL")
