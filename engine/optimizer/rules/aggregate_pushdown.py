"""Aggregate pushdown: rows are grouped before a join where that makes far fewer of them.

    groups by names (sales join customers)   ->   groups by names (states by customer (sales) join customers)

Sales of one customer find the same customers, so their states do. They are grouped by what the join and what is above
it look at, in their own subtask, and the groups above the join merge states. That pays where there are far fewer such
groups than rows, and where the join does not drop most rows anyway; both are estimated in bytes that are touched.

Different rows are groups too, and of the rows that a semi join asks only the different keys count.

All arguments are of one side. They are evaluated on rows that the join may drop, so they cannot raise, nor their sums
(``safe_numbers``). First and last values depend on the order of rows, and stay. The side is any one of an inner, a left
or a right join:

    customers left join sales, by name: count(price), count()
        a customer with sales       states by customer (sales): 3, 3
        one without                 null, null      ->  0, 1: what a row of nulls counts

Of rows without a partner the states are null, which is what sums and the like of no value are; counts get their number
above the join. So each argument must be null there: one of a column, or strictly computed of some.

Source: Yan and Larson, "Eager aggregation and lazy aggregation" (1995).
Held by: tests/optimizer/test_aggregate_pushdown.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import msgspec

from engine.graph.expression import (
    ORDER_DEPENDENT_AGGREGATES,
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    NamedExpression,
    columns_of,
)
from engine.graph.plan import Aggregate, Join, PartialAggregate, PlanNode, Project
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.said_operators import JoinType
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import column_projection, mapping_of, strict_columns, substitute
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.projection_pruning import used_columns
from engine.optimizer.safe_numbers import is_safe_call
from engine.statistics.estimates import Estimates, row_width

#: share of the bytes otherwise touched, below which it pays
WORTHWHILE = 0.8
#: bytes of a row beside its columns, whenever it is touched: hash, place in a table
ROW_BYTES = 16.0
#: share of the states of a first phase below, up to which it is worth merging them before the next join
MERGED_SHARE = 0.8
#: rows below which it does not pay
ROWS_MIN = 20_000.0

_ENCODED = ("dictionary", "run_end", "string_view", "binary_view")
_FLOATS = ("halffloat", "float", "double")


class Above(NamedTuple):
    """An aggregate over a join: its keys and calls in terms of the join's columns."""

    aggregate: PlanNode
    keys: dict[str, Expression]
    calls: tuple[AggregateCall, ...]
    join: PlanNode


def apply(plan: LogicalPlan) -> None:
    """Put a first phase below every join above which there are groups, where it pays."""
    for listed in plan.order():
        node: PlanNode | None = plan.node(listed.id)
        if isinstance(listed.operator, Join):
            node = _different_keys(plan, plan.node(listed.id))
        while node is not None:
            node = _pushed(plan, node)


def _different_keys(plan: LogicalPlan, node: PlanNode) -> PlanNode | None:
    """Make different rows of what a semi or anti join asks, where states of it go below a join; return those."""
    semi = node.operator
    assert isinstance(semi, Join)
    if semi.how not in (JoinType.SEMI, JoinType.ANTI) or semi.condition is not None or not semi.right_keys:
        return None
    asked = plan.node(node.inputs[1])
    keys = tuple(dict.fromkeys(semi.right_keys))
    schema = asked.schema.select(keys)
    distinct = plan.insert(Aggregate(keys, (), schema, schema), (asked.id,), schema, asked)
    added = _pushed(plan, distinct) if all(map(_is_plain_key, schema.columns)) else None
    if added is not None:
        plan.replace(node, inputs=(node.inputs[0], distinct.id))
    return added


def _pushed(plan: LogicalPlan, node: PlanNode) -> PlanNode | None:
    """Put a first phase below the join under an aggregate; return it, None where that does not pay."""
    if not isinstance(node.operator, Aggregate | PartialAggregate) or node.operator.of_states:
        return None
    above = above_join(plan, node)
    if above is None:
        return None
    return next((added for side in _sides(above) if (added := _push(plan, above, side)) is not None), None)


def above_join(plan: LogicalPlan, node: PlanNode) -> Above | None:
    """Return an aggregate in terms of the join that it reads through projections; None where there is none."""
    aggregate = node.operator
    assert isinstance(aggregate, Aggregate | PartialAggregate)
    if any(call.function in ORDER_DEPENDENT_AGGREGATES for call in aggregate.calls):
        return None
    consumers = plan.consumers()
    keys: dict[str, Expression] = {key: ColumnRef(key) for key in aggregate.keys}
    calls = aggregate.calls
    below = plan.node(node.inputs[0])
    while isinstance(below.operator, Project) and len(consumers[below.id]) == 1 and below.parallelism is None:
        columns = mapping_of(below.operator.expressions)
        keys = {key: substitute(expression, columns) for key, expression in keys.items()}
        calls = tuple(_in_terms_of(columns, call) for call in calls)
        below = plan.node(below.inputs[0])
    is_sole = len(consumers[below.id]) == 1 and below.parallelism is None
    return Above(node, keys, calls, below) if is_sole and isinstance(below.operator, Join) else None


def _in_terms_of(columns: Mapping[str, Expression], call: AggregateCall) -> AggregateCall:
    if call.argument is None:
        return call
    return msgspec.structs.replace(call, argument=substitute(call.argument, columns))


def _sides(above: Above) -> tuple[int, ...]:
    """Return the inputs that may be grouped: every row comes out with each partner, or their columns are all null."""
    join = above.join.operator
    assert isinstance(join, Join)
    if join.how not in (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT):
        return ()
    if join.how is JoinType.RIGHT and join.coalesce_keys:
        return ()
    sides = (1, 0) if join.how is JoinType.RIGHT else (0, 1)
    is_null = all(call.argument is None or strict_columns(call.argument) for call in above.calls)
    return sides if is_null or join.how is JoinType.INNER else sides[:1]


def _is_filled(join: Join, side: int) -> bool:
    """Whether the join fills the columns of an input with nulls where a row of the other one has no partner."""
    return join.how is (JoinType.LEFT if side == 1 else JoinType.RIGHT)


def _push(plan: LogicalPlan, above: Above, side: int) -> PlanNode | None:
    """Put states below one side of a join and return them, None where they may not be there, or do not pay."""
    join = above.join.operator
    assert isinstance(join, Join)
    source, other = (plan.node(above.join.inputs[index]) for index in (side, 1 - side))
    own = set(source.schema.names) - (set(other.schema.names) if side == 1 else set())
    arguments = {name for call in above.calls if call.argument is not None for name in columns_of(call.argument)}
    if not arguments <= own or (not arguments and _is_smaller(plan, source, other)):
        return None
    looked_at = {name for expression in above.keys.values() for name in columns_of(expression)}
    looked_at |= set() if join.condition is None else set(columns_of(join.condition))
    names = {*(join.right_keys if side == 1 else join.left_keys), *(looked_at & own)}
    keys = tuple(name for name in source.schema.names if name in names)
    columns = source.schema.select(keys).columns
    if not are_state_keys(above, columns):
        return None
    types = _argument_columns(above.aggregate)
    if not all(
        is_safe_call(call, types[index].type_text if index in types else "", source.schema)
        for index, call in enumerate(above.calls)
    ):
        return None
    states = _state_columns(above.aggregate)
    unmatched = estimate_below(plan, other, {}).rows if _is_filled(join, side) else 0.0
    if not pays(plan, above, source, keys, tuple(types.values()), states, unmatched):
        return None
    return _build(plan, above, side, PlanSchema((*columns, *types.values())), PlanSchema((*columns, *states)))


def _is_smaller(plan: LogicalPlan, source: PlanNode, other: PlanNode) -> bool:
    known: dict[int, Estimates] = {}
    return estimate_below(plan, source, known).rows < estimate_below(plan, other, known).rows


def _is_plain_key(column: ColumnInfo) -> bool:
    """Whether states have the column in the same type: encoded ones become plain."""
    return column.is_key_type and not column.type_text.startswith(_ENCODED)


def _argument_columns(node: PlanNode) -> dict[int, ColumnInfo]:
    """Return the columns of arguments, by the index of their call."""
    assert isinstance(node.operator, Aggregate | PartialAggregate)
    keys = set(node.operator.keys)
    columns = (column for column in node.operator.argument_schema.columns if column.name not in keys)
    return {int(column.name.removeprefix("__arg")): column for column in columns}


def _state_columns(node: PlanNode) -> tuple[ColumnInfo, ...]:
    aggregate = node.operator
    schema = aggregate.state_schema if isinstance(aggregate, Aggregate) else node.schema
    assert isinstance(aggregate, Aggregate | PartialAggregate)
    return tuple(column for column in schema.columns if column.name not in aggregate.keys)


def are_state_keys(above: Above, columns: Sequence[ColumnInfo]) -> bool:
    """Whether columns below a join may be keys of states: equal values of them are alike to all that is above."""
    plain = {expression.name for expression in above.keys.values() if isinstance(expression, ColumnRef)}
    return all(_is_plain_key(each) and (each.type_text not in _FLOATS or each.name in plain) for each in columns)


def pays(
    plan: LogicalPlan,
    above: Above,
    source: PlanNode,
    keys: tuple[str, ...],
    arguments: tuple[ColumnInfo, ...],
    states: tuple[ColumnInfo, ...],
    rows_min: float = 0.0,
) -> bool:
    """Whether far fewer bytes are touched if rows of a join's side are grouped before it.

    rows_min: rows that the join returns at least.
    """
    known: dict[int, Estimates] = {}
    joined, rows = estimate_below(plan, above.join, known), estimate_below(plan, source, known)
    counts = [rows.distinct(key) for key in keys]
    if joined.rows < ROWS_MIN or any(count is None for count in counts):
        return False
    share = min(1.0, prod(count for count in counts if count is not None) / rows.rows)
    used = used_columns(plan)[above.join.id]
    out = row_width(above.join.schema.select(n for n in above.join.schema.names if n in used), joined.columns)
    of_groups = sum(column.width_bytes for column in above.aggregate.schema.columns if column.name in above.keys)
    of_states = sum(column.width_bytes for column in states)
    of_arguments = sum(column.width_bytes for column in arguments)
    before = joined.rows * (out + of_groups + of_arguments + 2 * ROW_BYTES)
    grouped = rows.rows * (row_width(source.schema.select(keys), rows.columns) + of_arguments + ROW_BYTES)
    after = grouped + max(share * joined.rows, rows_min) * (out + of_groups + of_states + 3 * ROW_BYTES)
    return after < WORTHWHILE * before


def _build(plan: LogicalPlan, above: Above, side: int, arguments: PlanSchema, states: PlanSchema) -> PlanNode:
    """Put the first phase below a join and return it; the aggregate merges what comes out of the join."""
    join, node = above.join.operator, above.aggregate
    assert isinstance(join, Join)
    assert isinstance(node.operator, Aggregate | PartialAggregate)
    source = plan.node(above.join.inputs[side])
    state_names = {column.name for column in _state_columns(node)}
    keys = tuple(name for name in states.names if name not in state_names)
    partial = PartialAggregate(keys, above.calls, arguments, why="before the join, which gets fewer rows")
    added = plan.insert(partial, (source.id,), states, source)
    inputs = tuple(added.id if index == side else old for index, old in enumerate(above.join.inputs))
    below = plan.replace(above.join, inputs=inputs, schema=_joined_schema(plan, above.join, inputs, side))
    filled = _filled_states(above, states) if _is_filled(join, side) else {}
    if filled or any(expression != ColumnRef(key) for key, expression in above.keys.items()):
        expressions = tuple(NamedExpression(key, expression) for key, expression in above.keys.items())
        names = sorted(state_names)
        columns = (*node.schema.select(above.keys).columns, *below.schema.select(names).columns)
        made = tuple(NamedExpression(name, filled.get(name, ColumnRef(name))) for name in names)
        below = plan.insert(Project((*expressions, *made)), (below.id,), PlanSchema(columns), below)
    merging = msgspec.structs.replace(node.operator, argument_schema=PlanSchema(()), of_states=True)
    merged = plan.replace(node, operator=merging, inputs=(below.id,))
    if isinstance(merging, PartialAggregate) and not _merges(plan, merged):
        plan.replace(merged, operator=Project(column_projection(merged.schema.names)))
    return added


def _joined_schema(plan: LogicalPlan, node: PlanNode, inputs: tuple[int, ...], side: int) -> PlanSchema:
    """Return the columns of a join with states on one side; those of a side that it fills may all be null."""
    join = node.operator
    assert isinstance(join, Join)
    sides = [list(plan.node(each).schema.columns) for each in inputs]
    if _is_filled(join, side):
        sides[side] = [msgspec.structs.replace(column, nullable=True) for column in sides[side]]
    dropped = set(join.right_keys) if join.coalesce_keys else set()
    return PlanSchema((*sides[0], *(column for column in sides[1] if column.name not in dropped)))


def _filled_states(above: Above, states: PlanSchema) -> dict[str, Expression]:
    """Return the counts of a side that a join fills: of a row of nulls count() is 1, count of a column 0."""
    found: dict[str, Expression] = {}
    for index, call in enumerate(above.calls):
        place = {"count_all": 0, "count": 0, "avg": 1}.get(call.function)
        if place is not None:
            state = states.column(f"__state{index}_{place}")
            is_counted = Call("is_null" if call.argument is None else "is_not_null", (ColumnRef(state.name),))
            number = Cast(is_counted, state.ipc, state.type_text)
            found[state.name] = Call("coalesce", (ColumnRef(state.name), number))
    return found


def _merges(plan: LogicalPlan, states: PlanNode) -> bool:
    """Whether a first phase of states makes fewer of many; where it does not, the groups above merge them anyway."""
    known: dict[int, Estimates] = {}
    before = estimate_below(plan, plan.node(states.inputs[0]), known).rows
    return before >= ROWS_MIN and estimate_below(plan, states, known).rows < MERGED_SHARE * before
