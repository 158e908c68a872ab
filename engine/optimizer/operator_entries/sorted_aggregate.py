"""Aggregates of groups that look at all of their values: lists, quantiles. Rows are shipped as those of windows.

    input that lies in this order already ──► sorted aggregate                 GROUPS
    input ──HASH by keys──► partitioned aggregate                              PARTITIONED_GROUPS
    input ──HASH by keys──► sort by keys and order ──► sorted aggregate        SORTED_GROUPS

Rows are sorted where lists want an order of texts or other values that are no words of 8 bytes: those are sorted within
their group. Quantiles are selected from values in any order, and lists without an order are in that of the rows.

Parts of a filter over the keys alone pass below.

Held by: tests/optimizer/test_window_planning.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from engine.graph.expression import Expression, columns_of
from engine.graph.operator_descriptor import (
    OperatorDescriptor,
    PartitionedAggregateOperator,
    PhysicalOperator,
    SortedAggregateOperator,
)
from engine.graph.plan import PlanNode, SortedAggregate
from engine.graph.plan_schema import PlanSchema
from engine.graph.sort_key import SortKey
from engine.graph.window import SortedCall, has_order_of_words
from engine.optimizer.candidates import Candidate, cheapest
from engine.optimizer.input_changes import filter_input, narrow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.aggregate import groups_of
from engine.optimizer.operator_entries.entry import OperatorEntry, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.short_text import short
from engine.optimizer.window_planning import HEAVY_WEIGHT, sorted_input, window_candidate
from engine.statistics.estimates import Estimates


class _Groups(NamedTuple):
    """A sorted aggregate as what wants sorted rows."""

    partition_by: tuple[str, ...]
    order_by: tuple[SortKey, ...]
    top: None = None


class SortedAggregateEntry(OperatorEntry[SortedAggregate]):
    """The entry of sorted aggregates."""

    operator = SortedAggregate

    def name(self, operator: SortedAggregate) -> str:
        """Return the functions and the keys."""
        keys = f" by {', '.join(operator.keys)}" if operator.keys else ""
        return short(f"{', '.join(_call_text(call) for call in operator.calls)}{keys}")

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: SortedAggregate, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the keys, the order, and what is read for the calls that are used."""
        calls = [call for call in operator.calls if call.name in used] or operator.calls[:1]
        read = {name for call in calls for name in (call.argument, call.where) if name is not None}
        return {*operator.keys, *(key.column for key in operator.order_by)} | read

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the threads of one by partitions."""
        threads = operator.threads if isinstance(operator, PartitionedAggregateOperator) else 1
        return [f"partitions are grouped by {threads} threads"] if threads > 1 else []

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: SortedAggregate, used: set[str]) -> None:
        """Compute what is used, one at least."""
        calls = tuple(call for call in operator.calls if call.name in used) or operator.calls[:1]
        narrow_input(plan, node, 0, self.columns_used(plan, node, operator, 0, used))
        if calls != operator.calls:
            kept = node.schema.select((*operator.keys, *(call.name for call in calls)))
            current = plan.node(node.id)
            plan.replace(current, operator=msgspec.structs.replace(operator, calls=calls), schema=kept)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: SortedAggregate, parts: list[Expression]
    ) -> list[Expression]:
        """Push parts over the keys alone; without keys there is a group in any case."""
        if not operator.keys:
            return []
        passing = [part for part in parts if set(columns_of(part)) <= set(operator.keys)]
        filter_input(plan, node, 0, passing)
        return passing

    def estimate(self, node: PlanNode, operator: SortedAggregate, inputs: Sequence[Estimates]) -> Estimates:
        """Return a row for each group."""
        return groups_of(node, operator.keys, inputs[0])

    def origins(
        self, operator: SortedAggregate, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values of the keys are those of the input."""
        return ((0, key),) if set(columns_of(key)) <= set(operator.keys) else ()

    def candidates(
        self,
        planning: Planning,
        node: PlanNode,
        operator: SortedAggregate,
        estimates: Estimates,
        inputs: list[list[Candidate]],
    ) -> list[Candidate]:
        """Return the cheapest way to run it."""
        wanted = _Groups(operator.keys, operator.order_by)
        ways = [window_candidate(node, wanted, estimates, source, planning.settings) for source in inputs[0]]
        best = cheapest(ways)
        strategy, order = "GROUPS", best.sorted_by[: len(operator.keys)]
        if best.strategy.startswith("SORTED"):
            strategy = "PARTITIONED_GROUPS" if _orders_words(operator, best) else "SORTED_GROUPS"
        if strategy == "PARTITIONED_GROUPS":
            order = ()
        properties = best.properties.kept(operator.keys)
        return [msgspec.structs.replace(best, strategy=strategy, sorted_by=order, properties=properties)]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: SortedAggregate) -> int:
        """Add the sort, where one is needed, and the pass over the rows."""
        if candidate.strategy == "PARTITIONED_GROUPS":
            return self._partitioned(builder, candidate, operator)
        below, channel = sorted_input(builder, candidate, _Groups(operator.keys, operator.order_by))
        descriptor = OperatorDescriptor(
            candidate.node.id,
            builder.name_of(candidate.node),
            SortedAggregateOperator(operator.keys, operator.calls),
            (below.descriptor.output_schema,),
            candidate.node.schema,
            min(HEAVY_WEIGHT, builder.weight(below.estimates, candidate.parallelism)),
        )
        return builder.add(candidate, descriptor, (channel,), "SORTED")

    def _partitioned(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: SortedAggregate) -> int:
        below = builder.input_node(candidate)
        weight = builder.weight(below.estimates, candidate.parallelism)
        descriptor = OperatorDescriptor(
            candidate.node.id,
            builder.name_of(candidate.node),
            PartitionedAggregateOperator(operator.keys, operator.order_by, operator.calls),
            (below.descriptor.output_schema,),
            candidate.node.schema,
            weight + min(HEAVY_WEIGHT, weight),
        )
        channel = channel_of(below.id, 0, candidate.inputs[0].shipping)
        return builder.add(candidate, descriptor, (channel,), "PARTITIONED")


def _orders_words(operator: SortedAggregate, candidate: Candidate) -> bool:
    """Whether rows are put in order within their groups; without keys there is one, which no memory need hold."""
    schema = candidate.inputs[0].candidate.node.schema
    return bool(operator.keys) and all(
        has_order_of_words(schema.column(key.column).type_text) for key in operator.order_by
    )


def _call_text(call: SortedCall) -> str:
    return f"{call.function}({call.argument}{f', {call.share:g}' if call.function == 'quantile' else ''})"
