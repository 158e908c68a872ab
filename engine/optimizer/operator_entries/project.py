"""A projection: new columns over the input, of which those that are columns keep what is known of them.

Held by: tests/optimizer/test_rules.py
Held by: tests/optimizer/test_column_lineage.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.expression import Call, ColumnRef, Expression, Literal, columns_of
from engine.graph.function_table import is_deterministic
from engine.graph.operator_descriptor import ProjectOperator
from engine.graph.plan import Limit, PlanNode, Project
from engine.graph.plan_schema import PlanSchema
from engine.graph.sort_key import SortKey
from engine.optimizer import column_lineage
from engine.optimizer.candidates import Candidate
from engine.optimizer.expression_rewriting import cannot_raise, mapping_of, substitute
from engine.optimizer.input_changes import filter_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OrderUse
from engine.optimizer.operator_entries.row_wise import RowWiseEntry
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.properties import GlobalProperties
from engine.optimizer.window_planning import sorted_columns
from engine.statistics.estimates import Estimates, sized


class ProjectEntry(RowWiseEntry[Project]):
    """The entry of projections."""

    operator = Project

    def name(self, operator: Project) -> str:
        """Return the number of columns, and of those that are computed."""
        count = len(operator.expressions)
        computed = sum(1 for named in operator.expressions if not isinstance(named.expression, ColumnRef))
        suffix = f", {computed} computed" if computed else ""
        return f"project {count} column{'' if count == 1 else 's'}{suffix}"

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Project, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the columns of the expressions that are used."""
        return {name for named in operator.expressions if named.name in used for name in columns_of(named.expression)}

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Project, used: set[str]) -> None:
        """Compute what is used."""
        kept = node.schema.select(name for name in node.schema.names if name in used)
        if kept != node.schema:
            wanted = tuple(named for named in operator.expressions if named.name in used)
            plan.replace(node, operator=Project(wanted), schema=kept)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: Project, parts: list[Expression]
    ) -> list[Expression]:
        """Push all parts, in terms of the input, that are cheap and cannot raise there."""
        mapping = mapping_of(operator.expressions)
        below = plan.node(node.inputs[0]).schema
        passing = [
            part for part in parts if _is_cheap(part, mapping) and cannot_raise(substitute(part, mapping), below)
        ]
        filter_input(plan, node, 0, [substitute(part, mapping) for part in passing])
        return passing

    def take_limit(self, plan: LogicalPlan, node: PlanNode, operator: Project, limit: PlanNode) -> None:
        """Push the limit: fewer rows are computed."""
        assert isinstance(limit.operator, Limit), "not a limit"
        below = plan.insert(limit.operator, node.inputs, plan.node(node.inputs[0]).schema, limit)
        plan.replace(node, inputs=(below.id,))
        plan.redirect(limit.id, node.id)

    def order_use(self, operator: Project) -> OrderUse:
        """Rows stay in their order; what has a value by its place sees it."""
        is_by_value = all(is_deterministic(named.expression) for named in operator.expressions)
        return OrderUse.PASSED_ON if is_by_value else OrderUse.SEEN

    def estimate(self, node: PlanNode, operator: Project, inputs: Sequence[Estimates]) -> Estimates:
        """Return the rows of the input, at the width of the columns."""
        source = inputs[0]
        columns = column_lineage.projected(operator.expressions, source.columns, source.computed)
        estimates = sized(node.schema, source.rows, columns, "rows of the input")
        computed = column_lineage.carried(operator.expressions, source.computed)
        return msgspec.structs.replace(estimates, computed=computed)

    def origins(
        self, operator: Project, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values are computed from the input's."""
        return ((0, substitute(key, mapping_of(operator.expressions))),)

    def properties(self, operator: Project, source: Candidate) -> GlobalProperties:
        """Rows lie as they did, by the new names of the columns that are kept."""
        return source.properties.projected(operator.expressions)

    def order_kept(self, operator: Project, order: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
        """Rows stay as they lie, by the keys that are kept."""
        names: dict[str, str] = {}
        for named in operator.expressions:
            if isinstance(named.expression, ColumnRef):
                names.setdefault(named.expression.name, named.name)
        return sorted_columns(order, names)

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Project) -> int:
        """Add the projection."""
        return builder.add_plain(candidate, ProjectOperator(operator.expressions))


def _is_cheap(part: Expression, mapping: dict[str, Expression]) -> bool:
    """Whether nothing costly would be computed a second time, below and in the projection."""
    return all(_is_light(mapping[name]) for name in columns_of(part))


def _is_light(expression: Expression) -> bool:
    if isinstance(expression, ColumnRef | Literal):
        return True
    return isinstance(expression, Call) and all(
        isinstance(child, ColumnRef | Literal) for child in expression.arguments
    )
