"""A filter: the rows for which a predicate is true, by its selectivity.

Held by: tests/optimizer/test_rules.py
Held by: tests/optimizer/test_estimates.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.expressions.text import expression_text
from engine.graph.expression import Expression, columns_of
from engine.graph.operator_descriptor import FilterOperator
from engine.graph.plan import Filter, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.graph.sort_key import SortKey
from engine.optimizer import column_lineage
from engine.optimizer.candidates import Candidate
from engine.optimizer.input_changes import follow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OrderUse
from engine.optimizer.operator_entries.row_wise import RowWiseEntry
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.properties import GlobalProperties
from engine.optimizer.selectivity import selectivity
from engine.optimizer.short_text import short
from engine.statistics.estimates import Estimates, scaled


class FilterEntry(RowWiseEntry[Filter]):
    """The entry of filters."""

    operator = Filter

    def name(self, operator: Filter) -> str:
        """Return the predicate."""
        return short(f"filter {expression_text(operator.predicate)}")

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Filter, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the columns that consumers use, and those of the predicate."""
        return used | set(columns_of(operator.predicate))

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Filter, used: set[str]) -> None:
        """Return the columns of the input."""
        follow_input(plan, node)

    def order_kept(self, operator: Filter, order: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
        """Rows stay as they lie."""
        return order

    def order_use(self, operator: Filter) -> OrderUse:
        """Rows stay in their order."""
        return OrderUse.PASSED_ON

    def estimate(self, node: PlanNode, operator: Filter, inputs: Sequence[Estimates]) -> Estimates:
        """Return the share of the rows that the predicate keeps."""
        source = inputs[0]
        share, origin = selectivity(operator.predicate, source.columns, source.computed)
        kept = scaled(source, share, f"{share:.3g} of the input: {origin}")
        columns = {
            name: msgspec.structs.replace(known, relation_rows=min(known.relation_rows, kept.rows))
            for name, known in column_lineage.filtered(operator.predicate, source.columns, source.computed).items()
        }
        return msgspec.structs.replace(kept, columns=columns)

    def origins(
        self, operator: Filter, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values are those of the input."""
        return ((0, key),)

    def properties(self, operator: Filter, source: Candidate) -> GlobalProperties:
        """Rows lie as they did."""
        return source.properties

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Filter) -> int:
        """Add the filter."""
        return builder.add_plain(candidate, FilterOperator(operator.predicate))
