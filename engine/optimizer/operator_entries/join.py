"""A join: what comes out of it, what passes it, and what it becomes.

How it may run is in ``join_planning``; as physical operators, in ``join_translation``; its rows, in ``join_estimates``.
A filter of its result passes where that changes nothing:

    parts over left columns alone     inner, left, semi, anti, cross
    parts over right columns alone    inner, right, cross
    parts over coalesced keys alone   all types, into both sides
    all others of a cross join        become its condition

Parts over coalesced keys are true of both rows of a pair or of neither, so a side that may not lose rows loses none
that count. Only the right of a null-aware anti join keeps all of its rows: its null keys speak for the left ones.

Held by: tests/optimizer/test_join_rules.py
Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.expressions.text import expression_text
from engine.graph.expression import ColumnRef, Expression, columns_of, conjunction
from engine.graph.operator_descriptor import (
    AsofJoinOperator,
    JoinOperator,
    OperatorDescriptor,
    PhysicalOperator,
    ProjectOperator,
    RangeJoinOperator,
)
from engine.graph.plan import Join, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinType
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer import column_lineage
from engine.optimizer.candidates import Candidate
from engine.optimizer.expression_rewriting import substitute
from engine.optimizer.input_changes import filter_input, narrow_input
from engine.optimizer.join_alternatives import BF, FB, MARKING_PAIRS, LocalStrategy
from engine.optimizer.join_estimates import join_rows
from engine.optimizer.join_planning import join_candidates
from engine.optimizer.join_translation import held_estimates, join_translation, share_of_left
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, OrderUse, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.short_text import short
from engine.statistics.estimates import Estimates, sized

#: join types under which a filter of the output over one side's columns equals a filter of that side
PASSES_LEFT = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI, JoinType.CROSS})
PASSES_RIGHT = frozenset({JoinType.INNER, JoinType.RIGHT, JoinType.CROSS})


class JoinEntry(OperatorEntry[Join]):
    """The entry of joins."""

    operator = Join

    def name(self, operator: Join) -> str:
        """Return the type and the keys."""
        kind = f"{'null-aware ' if operator.null_aware else ''}{operator.how.value}"
        keys = ", ".join(operator.left_keys)
        return short(f"{kind} join on {keys}") if keys else f"{kind} join"

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the range and the condition."""
        lines = [f"range {operator.range.text}"] if isinstance(operator, RangeJoinOperator) else []
        if isinstance(operator, JoinOperator) and not isinstance(operator, AsofJoinOperator) and operator.condition:
            lines.append(f"condition {expression_text(operator.condition)}")
        return lines

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Join, input_index: int, used: set[str]
    ) -> set[str]:
        """Return keys, columns of the condition, and columns that are returned, of one side."""
        left_names = plan.node(node.inputs[0]).schema.names
        source_names = set(plan.node(node.inputs[input_index]).schema.names)
        return _columns_of_side(operator, input_index, used, left_names) & source_names

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Join, used: set[str]) -> None:
        """Keep of both sides what the join needs, and return what is used."""
        left_names = plan.node(node.inputs[0]).schema.names
        for side in (0, 1):
            narrow_input(plan, plan.node(node.id), side, _columns_of_side(operator, side, used, left_names))
        kept = node.schema.select(name for name in node.schema.names if name in used)
        if kept != node.schema:
            plan.replace(plan.node(node.id), schema=kept)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: Join, parts: list[Expression]
    ) -> list[Expression]:
        """Push parts into the sides, or into the condition of a cross join."""
        sides = _sides_of_filter(plan, node, operator, parts)
        if sides.to_condition:
            every = sides.to_condition if operator.condition is None else [operator.condition, *sides.to_condition]
            node = plan.replace(node, operator=msgspec.structs.replace(operator, condition=conjunction(every)))
        filter_input(plan, node, 0, sides.to_left)
        filter_input(plan, node, 1, sides.to_right)
        return sides.passed

    def order_use(self, operator: Join) -> OrderUse:
        """Rows come out as they are matched."""
        return OrderUse.LOST

    def estimate(self, node: PlanNode, operator: Join, inputs: Sequence[Estimates]) -> Estimates:
        """Return the pairs, and the rows that come out without one."""
        left, right = inputs
        columns = column_lineage.joined(operator, left.columns, right.columns, left.rows, right.rows)
        rows, origin = join_rows(operator, left, right, columns)
        if operator.ordered:
            origin += f"; {operator.ordered}"
        if operator.implied:
            origin += f"; keys filtered as those on the other side: {', '.join(operator.implied)}"
        unset = not (left.is_size_known and right.is_size_known)
        kept = {name: columns[name] for name in node.schema.names if name in columns}
        computed = left.computed if left.rows >= right.rows else ()
        return msgspec.structs.replace(sized(node.schema, rows, kept, origin, unset=unset), computed=computed)

    def origins(
        self, operator: Join, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values are those of the side that has all of the columns; semi and anti joins return the left ones only."""
        names = set(columns_of(key))
        sides = (0,) if operator.how in (JoinType.SEMI, JoinType.ANTI) else (0, 1)
        return [(side, key) for side in sides if names <= set(inputs[side].names)][:1]

    def candidates(
        self, planning: Planning, node: PlanNode, operator: Join, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return every correct pair of ship strategies with every side built."""
        return join_candidates(node, operator, estimates, inputs[0], inputs[1], planning.settings)

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Join) -> int:
        """Add the join; after a full one, a projection that merges its two key columns."""
        left, right = builder.input_node(candidate, 0), builder.input_node(candidate, 1)
        schemas = (left.descriptor.output_schema, right.descriptor.output_schema)
        heavy = candidate.inputs[0].shipping.partitioner.heavy
        share = share_of_left(left.estimates, right.estimates)
        builds_left = candidate.strategy == LocalStrategy.HASH_BUILD_FIRST
        is_broadcast = candidate.inputs[1 - builds_left].shipping.strategy is ShipStrategy.BROADCAST
        shares_marks = is_broadcast and (BF if builds_left else FB) in MARKING_PAIRS.get(operator.how, ())
        translated = join_translation(
            operator, *schemas, candidate.node.schema, candidate.strategy, heavy, share, shares_marks=shares_marks
        )
        held, copies = held_estimates(candidate, left.estimates, right.estimates)
        weight = builder.weight(held, max(1, candidate.parallelism // copies))
        node_id, name = candidate.node.id, builder.name_of(candidate.node)
        descriptor = OperatorDescriptor(node_id, name, translated.operator, schemas, translated.schema, weight)
        joined = builder.add(candidate, descriptor, builder.channels(candidate, are_apart=True))
        if not translated.coalescing:
            return joined
        coalescing = ProjectOperator(translated.coalescing)
        descriptor = OperatorDescriptor(
            node_id, "coalesce keys", coalescing, (translated.schema,), candidate.node.schema
        )
        return builder.add_phase(candidate, joined, descriptor, candidate.estimates)


def _columns_of_side(join: Join, side: int, used: set[str], left_names: tuple[str, ...]) -> set[str]:
    """Return the names that a join needs of one side: keys, columns of its condition, columns it returns."""
    condition = set() if join.condition is None else set(columns_of(join.condition))
    if side == 0:
        return used | set(join.left_keys) | condition
    returned = set() if join.how in (JoinType.SEMI, JoinType.ANTI) else used
    # what the left has under the same name is the left's: a coalesced key, or a column that only a semi join may have
    return ((returned | condition) - set(left_names)) | set(join.right_keys)


class _Sides(msgspec.Struct):
    """The sides that parts of a filter go to."""

    to_left: list[Expression] = []
    to_right: list[Expression] = []
    to_condition: list[Expression] = []
    passed: list[Expression] = []


def _sides_of_filter(plan: LogicalPlan, node: PlanNode, join: Join, parts: list[Expression]) -> _Sides:
    left_names = set(plan.node(node.inputs[0]).schema.names)
    right_names = set(plan.node(node.inputs[1]).schema.names) - left_names
    keys = set(join.left_keys) if join.coalesce_keys else set()
    if join.how in (JoinType.RIGHT, JoinType.FULL):
        # the coalesced key is not the left column there
        left_names -= keys
    right_of = {left: ColumnRef(right) for left, right in zip(join.left_keys, join.right_keys, strict=True)}
    sides = _Sides()
    for part in parts:
        names = set(columns_of(part))
        if not names:
            continue
        if names <= keys:
            sides.to_left.append(part)
            if not join.null_aware:
                sides.to_right.append(substitute(part, right_of))
        elif names <= left_names and join.how in PASSES_LEFT:
            sides.to_left.append(part)
        elif names <= right_names and join.how in PASSES_RIGHT:
            sides.to_right.append(part)
        elif join.how is JoinType.CROSS:
            sides.to_condition.append(part)
        else:
            continue
        sides.passed.append(part)
    return sides
