"""Window functions: the rows of the input with columns behind theirs.

How they run is in ``window_planning`` and ``window_ranges``.

Parts of a filter over partition keys alone pass below: they leave whole partitions out.

Held by: tests/optimizer/test_window_planning.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.expression import Expression, columns_of
from engine.graph.operator_descriptor import PhysicalOperator
from engine.graph.plan import PlanNode, Window
from engine.graph.plan_schema import PlanSchema
from engine.graph.window import WindowCall
from engine.optimizer.candidates import Candidate, cheapest
from engine.optimizer.input_changes import filter_input, narrow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.short_text import order_details, short
from engine.optimizer.window_planning import add_window, window_candidate
from engine.optimizer.window_ranges import STRATEGY as RANGES
from engine.optimizer.window_ranges import add_ranges, ranges_candidate
from engine.statistics.estimates import Estimates, sized


class WindowEntry(OperatorEntry[Window]):
    """The entry of window functions."""

    operator = Window

    def name(self, operator: Window) -> str:
        """Return the functions and their window."""
        calls = ", ".join(_call_text(call) for call in operator.calls)
        partition = f" by {', '.join(operator.partition_by)}" if operator.partition_by else ""
        keys = (f"{key.column}{' descending' if key.descending else ''}" for key in operator.order_by)
        order = f" in order of {', '.join(keys)}" if operator.order_by else ""
        return short(f"window{partition}{order}: {calls}")

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the order."""
        return order_details(operator)

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Window, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the input's columns that are used, the keys, and the arguments of the calls that are used."""
        results = {call.name for call in operator.calls}
        read = {name for call in operator.calls if call.name in used for name in (call.argument, call.default)}
        keys = {*operator.partition_by, *(key.column for key in operator.order_by)}
        return (used - results) | keys | {name for name in read if name is not None}

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Window, used: set[str]) -> None:
        """Compute what is used; without any call left the rows are those of the input."""
        calls = tuple(call for call in operator.calls if call.name in used)
        if not calls:
            plan.redirect(node.id, node.inputs[0])
            return
        narrow_input(plan, node, 0, self.columns_used(plan, node, operator, 0, used))
        current = plan.node(node.id)
        below = plan.node(current.inputs[0]).schema
        results = node.schema.select(call.name for call in calls)
        schema = PlanSchema((*below.columns, *results.columns))
        if calls != operator.calls or schema != node.schema:
            narrowed = Window(operator.partition_by, operator.order_by, calls, operator.top)
            plan.replace(current, operator=narrowed, schema=schema)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: Window, parts: list[Expression]
    ) -> list[Expression]:
        """Push parts over partition keys alone."""
        passing = [part for part in parts if set(columns_of(part)) <= set(operator.partition_by)]
        passing = [part for part in passing if set(columns_of(part))]
        filter_input(plan, node, 0, passing)
        return passing

    def estimate(self, node: PlanNode, operator: Window, inputs: Sequence[Estimates]) -> Estimates:
        """Return the rows of the input, with more columns."""
        source = inputs[0]
        return sized(
            node.schema, source.rows, dict(source.columns), "rows of the input", unset=not source.is_size_known
        )

    def origins(
        self, operator: Window, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values of the input's columns are those of the input."""
        return ((0, key),) if set(columns_of(key)) <= set(inputs[0].names) else ()

    def candidates(
        self, planning: Planning, node: PlanNode, operator: Window, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return the cheapest way to run it."""
        settings = planning.settings
        ranges = [ranges_candidate(node, operator, estimates, source, settings) for source in inputs[0]]
        ways = [each for each in ranges if each is not None]
        return [cheapest(ways or [window_candidate(node, operator, estimates, each, settings) for each in inputs[0]])]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Window) -> int:
        """Add the sort and the window."""
        if candidate.strategy == RANGES:
            return add_ranges(builder, candidate, operator)
        return add_window(builder, candidate, operator)


def _call_text(call: WindowCall) -> str:
    arguments = [call.argument or "", *([str(call.count)] if call.count else [])]
    function = "count" if call.function == "count_all" else call.function
    return f"{function}({', '.join(part for part in arguments if part)})"
