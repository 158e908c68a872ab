"""An as-of join: each left row with the right row nearest in time. How it may run is in ``asof_planning``.

A filter over left columns alone passes to the left, whose rows do not know of each other; over the ``by`` columns it
passes to the right as well.

Held by: tests/optimizer/test_asof_planning.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.expression import ColumnRef, Expression, columns_of
from engine.graph.operator_descriptor import (
    AsofJoinOperator,
    OperatorDescriptor,
    PartitionedAsofOperator,
    PhysicalOperator,
)
from engine.graph.plan import AsofJoin, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.asof_planning import PARTITIONED, asof_candidates
from engine.optimizer.candidates import Candidate
from engine.optimizer.expression_rewriting import substitute
from engine.optimizer.input_changes import filter_input, narrow_input
from engine.optimizer.join_translation import share_of_left
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, OrderUse, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.short_text import short
from engine.statistics.estimates import UNKNOWN, Estimates, sized


class AsofJoinEntry(OperatorEntry[AsofJoin]):
    """The entry of as-of joins."""

    operator = AsofJoin

    def name(self, operator: AsofJoin) -> str:
        """Return the columns that it compares."""
        by = f" by {', '.join(operator.left_by)}" if operator.left_by else ""
        return short(f"as-of join{by} on {operator.left_on}")

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the direction: which right row is taken."""
        if not isinstance(operator, AsofJoinOperator):
            return ()
        strict = ", not at the very time" if operator.is_strict else ""
        within = "" if operator.tolerance is None else f", at most {operator.tolerance} away"
        return (f"direction {operator.direction.value}{strict}{within}",)

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: AsofJoin, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the keys of one side and what is returned of it."""
        lefts = set(plan.node(node.inputs[0]).schema.names)
        if input_index == 0:
            return (used & lefts) | set(operator.left_keys)
        return (used - lefts) & set(plan.node(node.inputs[1]).schema.names) | set(operator.right_keys)

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: AsofJoin, used: set[str]) -> None:
        """Keep of both sides what is needed; of the right alone, nothing of it means that the left does."""
        needed = [self.columns_used(plan, node, operator, side, used) for side in (0, 1)]
        if not used & set(node.schema.names) - set(plan.node(node.inputs[0]).schema.names):
            plan.redirect(node.id, node.inputs[0])
            return
        for side in (0, 1):
            narrow_input(plan, plan.node(node.id), side, needed[side])
        kept = node.schema.select(name for name in node.schema.names if name in used)
        if kept != node.schema:
            plan.replace(plan.node(node.id), schema=kept)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: AsofJoin, parts: list[Expression]
    ) -> list[Expression]:
        """Push parts over left columns into the left side, and those over equal columns into both."""
        lefts = set(plan.node(node.inputs[0]).schema.names)
        passing = [part for part in parts if columns_of(part) and set(columns_of(part)) <= lefts]
        right_of = {left: ColumnRef(right) for left, right in zip(operator.left_by, operator.right_by, strict=True)}
        to_right = [substitute(part, right_of) for part in passing if set(columns_of(part)) <= set(right_of)]
        filter_input(plan, node, 0, passing)
        filter_input(plan, node, 1, to_right)
        return passing

    def order_use(self, operator: AsofJoin) -> OrderUse:
        """Return SEEN: among rows at one time, the order of the input decides."""
        return OrderUse.SEEN

    def estimate(self, node: PlanNode, operator: AsofJoin, inputs: Sequence[Estimates]) -> Estimates:
        """Return the rows of the left, with more columns."""
        left, right = inputs
        columns = {**right.columns, **left.columns}
        kept = {name: columns[name] for name in node.schema.names if name in columns}
        return sized(node.schema, left.rows, kept, "rows of the left", unset=not left.is_size_known)

    def origins(
        self, operator: AsofJoin, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values of left columns are those of the left."""
        return ((0, key),) if set(columns_of(key)) <= set(inputs[0].names) else ()

    def candidates(
        self,
        planning: Planning,
        node: PlanNode,
        operator: AsofJoin,
        estimates: Estimates,
        inputs: list[list[Candidate]],
    ) -> list[Candidate]:
        """Return every correct pair of ship strategies."""
        return asof_candidates(node, operator, estimates, inputs[0], inputs[1], planning.settings)

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: AsofJoin) -> int:
        """Add the join, which sorts or parts its inputs itself."""
        left, right = builder.input_node(candidate, 0), builder.input_node(candidate, 1)
        schemas = (left.descriptor.output_schema, right.descriptor.output_schema)
        output = tuple(
            (0, schemas[0].index(name)) if name in schemas[0].names else (1, schemas[1].index(name))
            for name in candidate.node.schema.names
        )
        kind = PartitionedAsofOperator if candidate.strategy == PARTITIONED else AsofJoinOperator
        joined = kind(
            operator.left_keys,
            operator.right_keys,
            operator.direction,
            operator.is_strict,
            operator.tolerance,
            output,
            share_of_left(left.estimates, right.estimates),
        )
        held = Estimates(left.estimates.rows + right.estimates.rows, _bytes_of(left.estimates, right.estimates), "both")
        copies = candidate.parallelism if candidate.alternative.startswith("BROADCAST") else 1
        weight = builder.weight(held, max(1, candidate.parallelism // copies))
        node = candidate.node
        descriptor = OperatorDescriptor(node.id, builder.name_of(node), joined, schemas, node.schema, weight)
        return builder.add(candidate, descriptor, builder.channels(candidate, are_apart=True))


def _bytes_of(left: Estimates, right: Estimates) -> float:
    is_known = left.is_size_known and right.is_size_known
    return left.size_bytes + right.size_bytes if is_known else UNKNOWN
