"""A limit: the first rows of each subtask, and of those the first ones. How it runs is in ``sort_planning``.

Held by: tests/optimizer/test_sort_planning.py
Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.expression import Expression
from engine.graph.plan import Limit, PlanNode, Sort
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.candidates import Candidate
from engine.optimizer.input_changes import follow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.sort_planning import STRATEGIES, limit_candidate, sort_operators
from engine.statistics.estimates import Estimates, limited


class LimitEntry(OperatorEntry[Limit]):
    """The entry of limits. No filter passes one: it would see other rows."""

    operator = Limit

    def name(self, operator: Limit) -> str:
        """Return the number of rows there are at most."""
        return f"limit {operator.count}"

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Limit, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the columns that consumers use."""
        return set(used)

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Limit, used: set[str]) -> None:
        """Return the columns of the input."""
        follow_input(plan, node)

    def take_limit(self, plan: LogicalPlan, node: PlanNode, operator: Limit, limit: PlanNode) -> None:
        """Become the smaller one of both."""
        assert isinstance(limit.operator, Limit), "not a limit"
        count, is_first = min(limit.operator.count, operator.count), limit.operator.is_first or operator.is_first
        plan.replace(node, operator=Limit(count, is_first))
        plan.redirect(limit.id, node.id)

    def estimate(self, node: PlanNode, operator: Limit, inputs: Sequence[Estimates]) -> Estimates:
        """Return the rows of the input, at most that many."""
        return limited(inputs[0], operator.count, f"limit {operator.count}")

    def origins(
        self, operator: Limit, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values are those of the input."""
        return ((0, key),)

    def candidates(
        self, planning: Planning, node: PlanNode, operator: Limit, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return one candidate for each of the input."""
        return [limit_candidate(node, operator, estimates, source) for source in inputs[0]]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Limit) -> int:
        """Add the limit, one in each subtask before it."""
        return add_sort_or_limit(builder, candidate)


def add_sort_or_limit(builder: PhysicalPlanBuilder, candidate: Candidate) -> int:
    """Add the operators of a sort or a limit: a sort of n rows that do not fit in memory is one with a limit behind."""
    operator = candidate.node.operator
    below = builder.input_node(candidate)
    is_top = isinstance(operator, Sort) and operator.limit is not None
    parallelism = below.parallelism if candidate.strategy == "SORT_RANGES" else 1
    weight = builder.weight(candidate.estimates if is_top else below.estimates, parallelism)
    *phases, final = sort_operators(candidate, builder.name_of(candidate.node), weight)
    before, behind = STRATEGIES.get(candidate.strategy, ("", ""))
    source = below.id
    for phase in phases:
        source = builder.add_phase(candidate, source, phase, candidate.estimates, before)
    return builder.add(candidate, final, (channel_of(source, 0, candidate.inputs[0].shipping),), behind)
