"""Filter pushdown: each part of a predicate moves towards the sources as far as it is safe.

    below          which parts may pass
    project        all: written in terms of the projection's input
    join           parts over left columns alone: inner, left, semi, anti, cross; over right columns alone: inner,
                   right, cross; over coalesced keys alone: all types, into both sides; of a cross join the others
                   become its condition
    union          all, into every branch
    sort           all, when the sort has no limit
    aggregate      parts over the keys alone, when there are keys
    filter         all (then neighbours combine)
    limit, Python  none

Parts over coalesced keys are true of both rows of a pair or of neither, so a side that may not lose rows loses none
that count. Only the right of a null-aware anti join keeps all of its rows: its null keys speak for the left ones.

A part passes only if it cannot raise, before and after it is rewritten: below, it sees rows that it would not have
seen above. A node with another consumer is never changed.
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import Call, ColumnRef, Expression, Literal, columns_of
from engine.graph.plan import Aggregate, Filter, Join, JoinType, PlanNode, Project, Sort, Union
from engine.optimizer.expression_rewriting import cannot_raise, conjunction, conjuncts, mapping_of, substitute
from engine.optimizer.logical_plan import LogicalPlan

#: join types under which a filter of the output over one side's columns equals a filter of that side
PASSES_LEFT = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI, JoinType.CROSS})
PASSES_RIGHT = frozenset({JoinType.INNER, JoinType.RIGHT, JoinType.CROSS})


def apply(plan: LogicalPlan) -> None:
    """Push every filter down by one node."""
    consumers = plan.consumers()
    for listed in reversed(plan.order()):
        node = plan.node(listed.id)
        if not isinstance(node.operator, Filter) or node.id not in consumers:
            continue
        lower = plan.node(node.inputs[0])
        if len(consumers[lower.id]) > 1 or node.parallelism not in (None, lower.parallelism):
            continue
        safe = [part for part in conjuncts(node.operator.predicate) if cannot_raise(part, lower.schema)]
        passed = _push(plan, lower, safe)
        if not passed:
            continue
        kept = [part for part in conjuncts(node.operator.predicate) if part not in passed]
        if kept:
            plan.replace(node, operator=Filter(conjunction(kept)))
        else:
            plan.redirect(node.id, lower.id)
        consumers = plan.consumers()


def _push(plan: LogicalPlan, lower: PlanNode, parts: list[Expression]) -> list[Expression]:
    """Put the parts that may pass below ``lower`` and return them."""
    match lower.operator:
        case Project(expressions=expressions):
            mapping = mapping_of(expressions)
            below = plan.node(lower.inputs[0]).schema
            passing = [
                part for part in parts if _is_cheap(part, mapping) and cannot_raise(substitute(part, mapping), below)
            ]
            filter_input(plan, lower, 0, [substitute(part, mapping) for part in passing])
            return passing
        case Sort(limit=None):
            filter_input(plan, lower, 0, parts)
            return parts
        case Union():
            for input_index in range(len(lower.inputs)):
                filter_input(plan, lower, input_index, parts)
            return parts
        case Aggregate(keys=keys) if keys:
            passing = [part for part in parts if set(columns_of(part)) <= set(keys)]
            filter_input(plan, lower, 0, passing)
            return passing
        case Join():
            return _push_into_join(plan, lower, lower.operator, parts)
        case _:
            return []


def _is_cheap(part: Expression, mapping: dict[str, Expression]) -> bool:
    """Whether nothing costly would be computed a second time, below and in the projection."""
    return all(_is_light(mapping[name]) for name in columns_of(part))


def _is_light(expression: Expression) -> bool:
    if isinstance(expression, ColumnRef | Literal):
        return True
    return isinstance(expression, Call) and all(
        isinstance(child, ColumnRef | Literal) for child in expression.arguments
    )


def _push_into_join(plan: LogicalPlan, node: PlanNode, join: Join, parts: list[Expression]) -> list[Expression]:
    left_names = set(plan.node(node.inputs[0]).schema.names)
    right_names = set(plan.node(node.inputs[1]).schema.names) - left_names
    keys = set(join.left_keys) if join.coalesce_keys else set()
    if join.how in (JoinType.RIGHT, JoinType.FULL):
        # the coalesced key is not the left column there
        left_names -= keys
    right_of = {left: ColumnRef(right) for left, right in zip(join.left_keys, join.right_keys, strict=True)}
    to_left: list[Expression] = []
    to_right: list[Expression] = []
    to_condition: list[Expression] = []
    passed = []
    for part in parts:
        names = set(columns_of(part))
        if not names:
            continue
        if names <= keys:
            to_left.append(part)
            if not join.null_aware:
                to_right.append(substitute(part, right_of))
        elif names <= left_names and join.how in PASSES_LEFT:
            to_left.append(part)
        elif names <= right_names and join.how in PASSES_RIGHT:
            to_right.append(part)
        elif join.how is JoinType.CROSS:
            to_condition.append(part)
        else:
            continue
        passed.append(part)
    if to_condition:
        every = to_condition if join.condition is None else [join.condition, *to_condition]
        node = plan.replace(node, operator=msgspec.structs.replace(join, condition=conjunction(every)))
    filter_input(plan, node, 0, to_left)
    filter_input(plan, node, 1, to_right)
    return passed


def filter_input(plan: LogicalPlan, node: PlanNode, input_index: int, parts: list[Expression]) -> None:
    """Put a filter between a node and one of its inputs."""
    if not parts:
        return
    source = plan.node(node.inputs[input_index])
    added = plan.insert(Filter(conjunction(parts)), (source.id,), source.schema, source)
    current = plan.node(node.id)
    inputs = tuple(added.id if index == input_index else old for index, old in enumerate(current.inputs))
    plan.replace(current, inputs=inputs)
