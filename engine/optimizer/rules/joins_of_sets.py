"""Joins of sets: an inner join that adds but repetitions, which are not counted above, becomes a semi join.

    a semi project(b ⋈ c to columns of b)   ->   a semi project(b semi c)

Rows may be repeated where they are the right side of a semi or anti join, where distinct ones, minima and maxima are
taken of them, and in what leads there: projections, filters, unions, inner joins. SQL writes such joins in ``IN`` and
``EXISTS``. It is done where the pairs are expected to be more than the rows of the side that is read.

Nodes above keep columns of the other side in their schemas; projection_pruning, which is next, drops what is not read.

Held by: tests/optimizer/test_joins_of_sets.py
"""

from __future__ import annotations

from typing import Final

from engine.graph.expression import Expression
from engine.graph.function_table import is_deterministic
from engine.graph.plan import Aggregate, Filter, Join, PartialAggregate, PlanNode, Project, Union
from engine.graph.said_operators import JoinHint, JoinType
from engine.optimizer.estimates import estimate_below
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.projection_pruning import used_columns
from engine.statistics.estimates import Estimates

#: aggregates whose result repeated rows do not change
_OF_SETS: Final = frozenset({"min", "max"})
#: ratio of pairs to rows of the side that is read from which it is done
WORTHWHILE: Final = 1.5


def apply(plan: LogicalPlan) -> None:
    """Make semi joins of inner joins whose pairs are not counted."""
    counted = set(plan.sinks)
    used = used_columns(plan)
    found: dict[int, tuple[Join, tuple[int, ...]]] = {}
    for node in reversed(plan.order()):
        is_counted = node.id in counted
        semi = None if is_counted else _semi_join(plan, node, used[node.id])
        if semi is not None:
            found[node.id] = semi
        operator, inputs = semi or (node.operator, node.inputs)
        counted.update(source for side, source in enumerate(inputs) if _counts(operator, side, is_counted=is_counted))
    for node_id, (operator, inputs) in found.items():
        plan.replace(plan.node(node_id), operator=operator, inputs=inputs)


def _counts(operator: object, side: int, *, is_counted: bool) -> bool:
    """Whether it matters to an operator how often a row of an input is there."""
    match operator:
        case Join(how=JoinType.SEMI | JoinType.ANTI) if side == 1:
            return False
        case Aggregate(calls=calls) | PartialAggregate(calls=calls):
            return any(call.function not in _OF_SETS for call in calls)
        case Join(how=JoinType.INNER | JoinType.CROSS | JoinType.SEMI | JoinType.ANTI, condition=condition):
            return is_counted or not _is_sure(condition)
        case Filter(predicate=predicate):
            return is_counted or not _is_sure(predicate)
        case Project(expressions=expressions):
            return is_counted or not all(_is_sure(each.expression) for each in expressions)
        case Union():
            return is_counted
        case _:
            return True


def _is_sure(expression: Expression | None) -> bool:
    return expression is None or is_deterministic(expression)


def _semi_join(plan: LogicalPlan, node: PlanNode, used: set[str]) -> tuple[Join, tuple[int, ...]] | None:
    """Return the semi join with the same different rows, and its inputs; None where nothing is saved."""
    join = node.operator
    if not isinstance(join, Join) or join.how is not JoinType.INNER or join.hint is not JoinHint.OPTIMIZER_CHOOSES:
        return None
    if node.name or node.parallelism is not None or not _is_sure(join.condition):
        return None
    left, right = (set(plan.node(source).schema.names) for source in node.inputs)
    is_mirrored = not used <= left
    if is_mirrored and (join.coalesce_keys or not used <= right or left & right):
        return None
    known: dict[int, Estimates] = {}
    kept = estimate_below(plan, plan.node(node.inputs[is_mirrored]), known)
    if estimate_below(plan, node, known).rows < WORTHWHILE * kept.rows:
        return None
    keys, inputs = (join.left_keys, join.right_keys), node.inputs
    if is_mirrored:
        keys, inputs = keys[::-1], inputs[::-1]
    return Join(JoinType.SEMI, *keys, coalesce_keys=False, condition=join.condition, implied=join.implied), inputs
