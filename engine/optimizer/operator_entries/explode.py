"""Explode: a row's elements become rows, an unknown number; of the other columns all is known that was.

    filter over other columns       passes: fewer lists are opened
    limit n, lists without elements kept    n rows of the input are enough
    unused columns                          are not repeated

Held by: tests/optimizer/test_explode.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.expression import ColumnRef, Expression, NamedExpression, columns_of
from engine.graph.operator_descriptor import ExplodeOperator
from engine.graph.plan import Explode, Limit, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.graph.sort_key import SortKey
from engine.optimizer.candidates import Candidate
from engine.optimizer.input_changes import filter_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OrderUse
from engine.optimizer.operator_entries.row_wise import RowWiseEntry
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.properties import GlobalProperties
from engine.optimizer.window_planning import sorted_columns
from engine.statistics.estimates import Estimates, sized

#: elements of a list, where nothing is known
LIST_LENGTH = 4.0


class ExplodeEntry(RowWiseEntry[Explode]):
    """The entry of explode: lists become rows."""

    operator = Explode

    def name(self, operator: Explode) -> str:
        """Return the column's name."""
        return f"explode {operator.column}"

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Explode, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the input's columns that are used, and the lists, which decide the number of rows."""
        return (used - {operator.position}) | {operator.column}

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Explode, used: set[str]) -> None:
        """Repeat what is used."""
        below = set(plan.node(node.inputs[0]).schema.names)
        position = operator.position if operator.position in used else ""
        kept = node.schema.select(name for name in node.schema.names if name in below or name == position)
        if kept != node.schema:
            plan.replace(node, operator=msgspec.structs.replace(operator, position=position), schema=kept)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: Explode, parts: list[Expression]
    ) -> list[Expression]:
        """Push parts over other columns."""
        own = {operator.column, operator.position}
        passing = [part for part in parts if own.isdisjoint(columns_of(part))]
        filter_input(plan, node, 0, passing)
        return passing

    def take_limit(self, plan: LogicalPlan, node: PlanNode, operator: Explode, limit: PlanNode) -> None:
        """Take as many rows of the input as are wanted of the result, where each gives one at least."""
        assert isinstance(limit.operator, Limit), "not a limit"
        count = limit.operator.count
        if not operator.keep_empty or (operator.wanted is not None and operator.wanted <= count):
            return
        below = plan.insert(Limit(count, limit.operator.is_first), node.inputs, plan.node(node.inputs[0]).schema, limit)
        plan.replace(node, operator=msgspec.structs.replace(operator, wanted=count), inputs=(below.id,))

    def order_use(self, operator: Explode) -> OrderUse:
        """Rows of a row stand in its place."""
        return OrderUse.PASSED_ON

    def estimate(self, node: PlanNode, operator: Explode, inputs: Sequence[Estimates]) -> Estimates:
        """Return some rows for each."""
        source = inputs[0]
        columns = {name: known for name, known in source.columns.items() if name != operator.column}
        origin = f"{LIST_LENGTH:g} * input: default for a list"
        return sized(node.schema, source.rows * LIST_LENGTH, columns, origin)

    def origins(
        self, operator: Explode, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values of other columns are those of the input."""
        return ((0, key),) if {operator.column, operator.position}.isdisjoint(columns_of(key)) else ()

    def properties(self, operator: Explode, source: Candidate) -> GlobalProperties:
        """Rows lie where theirs lay."""
        others = [NamedExpression(name, ColumnRef(name)) for name in _others(operator, source)]
        return source.properties.projected(others)

    def order_kept(self, operator: Explode, order: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
        """Rows stay as they lie, by the keys before the lists."""
        return sorted_columns(order, {key.column: key.column for key in order if key.column != operator.column})

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Explode) -> int:
        """Add the operator."""
        return builder.add_plain(candidate, ExplodeOperator(operator.column, operator.position, operator.keep_empty))


def _others(operator: Explode, source: Candidate) -> list[str]:
    return [name for name in source.node.schema.names if name != operator.column]
