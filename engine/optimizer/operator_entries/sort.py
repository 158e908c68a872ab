"""A sort, or with a limit the top n rows of one.

How it may run is in ``sort_planning``; over groups, in ``sorted_aggregates``.

Held by: tests/optimizer/test_sort_planning.py
Held by: tests/optimizer/test_sorted_aggregates.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.expression import Expression
from engine.graph.operator_descriptor import PhysicalOperator
from engine.graph.plan import Aggregate, Limit, PlanNode, Sort
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.aggregate_phases import add_partial
from engine.optimizer.candidates import Candidate
from engine.optimizer.input_changes import filter_input, follow_input, narrow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, OrderUse, Planning
from engine.optimizer.operator_entries.limit import add_sort_or_limit
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.short_text import order_details, short
from engine.optimizer.sort_planning import NO_SORT, sort_candidate
from engine.optimizer.sorted_aggregates import STRATEGIES, sorted_aggregate_operators, with_sorted_aggregate
from engine.statistics.estimates import Estimates, limited


class SortEntry(OperatorEntry[Sort]):
    """The entry of sorts."""

    operator = Sort

    def name(self, operator: Sort) -> str:
        """Return the keys, and how many rows are kept."""
        names = ", ".join(f"{key.column}{' descending' if key.descending else ''}" for key in operator.keys)
        return short(f"top {operator.limit} by {names}" if operator.limit is not None else f"sort by {names}")

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the order."""
        return order_details(operator)

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Sort, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the columns that consumers use, and the keys."""
        return used | {key.column for key in operator.keys}

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Sort, used: set[str]) -> None:
        """Keep no column that is not used."""
        narrow_input(plan, node, 0, used | {key.column for key in operator.keys})
        follow_input(plan, plan.node(node.id))

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: Sort, parts: list[Expression]
    ) -> list[Expression]:
        """Push all parts; with a limit none, since it would choose other rows."""
        if operator.limit is not None:
            return []
        filter_input(plan, node, 0, parts)
        return parts

    def take_limit(self, plan: LogicalPlan, node: PlanNode, operator: Sort, limit: PlanNode) -> None:
        """Take the limit over: a sort that keeps n rows needs no spilling."""
        assert isinstance(limit.operator, Limit), "not a limit"
        count = limit.operator.count
        smaller = count if operator.limit is None else min(count, operator.limit)
        plan.replace(node, operator=msgspec.structs.replace(operator, limit=smaller))
        plan.redirect(limit.id, node.id)

    def order_use(self, operator: Sort) -> OrderUse:
        """Return whether there is a limit: which rows of equal keys it takes depends on the order they had."""
        return OrderUse.LOST if operator.limit is None else OrderUse.SEEN

    def estimate(self, node: PlanNode, operator: Sort, inputs: Sequence[Estimates]) -> Estimates:
        """Return the rows of the input, at most the limit."""
        if operator.limit is not None:
            return limited(inputs[0], operator.limit, f"top {operator.limit}")
        return msgspec.structs.replace(inputs[0], origin="rows of the input")

    def origins(
        self, operator: Sort, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values are those of the input."""
        return ((0, key),)

    def candidates(
        self, planning: Planning, node: PlanNode, operator: Sort, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return one candidate for each of the input, with the aggregate below in one where that pays."""
        sorts = [sort_candidate(node, operator, estimates, source, planning.settings) for source in inputs[0]]
        return [with_sorted_aggregate(planning.plan, sort, planning.settings) for sort in sorts]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Sort) -> int:
        """Add the sort, or an aggregate whose states are sorted and combined in runs and merges."""
        grouping = candidate.combined
        if candidate.strategy == NO_SORT:
            return builder.input_node(candidate).id
        if grouping is None:
            return add_sort_or_limit(builder, candidate)
        aggregate = grouping.node.operator
        assert isinstance(aggregate, Aggregate), "a sort is combined with an aggregate"
        states = builder.node(add_partial(builder, grouping, aggregate, is_sorted_next=True))
        weight = builder.weight(states.estimates, states.parallelism)
        runs, merge = sorted_aggregate_operators(candidate, builder.name_of(candidate.node), weight)
        before, behind = STRATEGIES
        source = builder.add_phase(candidate, states.id, runs, states.estimates, before)
        return builder.add(candidate, merge, (channel_of(source, 0, candidate.inputs[0].shipping),), behind)
