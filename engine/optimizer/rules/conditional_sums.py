"""Conditional sums: values of one side of a join under conditions on the other side are added up before the join.

    sum(case when day = 'Sunday' then price end), sum(case when day = 'Monday' then price end), ... by week
        of (sales join days)
    ->  sum(case when day = 'Sunday' then total end), ... by week
        of (sum(price) as total by date of sales) join days

SQL turns rows into columns so. All sales of one date find the same days, so the condition is the same for all of them.
Sums, least and greatest values of columns of one side are taken so, under conditions on the other side and on what the
groups below have as keys, or under none; where no condition is true there must be a null, or the zero of a sum in 64
bits. What is added up for rows that the join drops must have a value (``safe_numbers``). It pays where there are far
fewer groups than rows, as for ``aggregate_pushdown``, which does the same for arguments of one side alone.

Source: Galindo-Legaria and Joshi, "Orthogonal Optimization of Subqueries and Aggregation" (2001), local aggregates.
Held by: tests/sql/test_conditional_sums.py
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from engine.graph.expression import AggregateCall, Case, ColumnRef, Expression, Literal, NamedExpression, columns_of
from engine.graph.plan import Aggregate, Join, PlanNode, Project
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.said_operators import JoinType
from engine.optimizer.expression_rewriting import column_projection
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.aggregate_pushdown import Above, above_join, are_state_keys, pays
from engine.optimizer.safe_numbers import is_safe_call

#: functions of which that of a few groups' results is that of all their rows
_FUNCTIONS: Final = ("sum", "min", "max")
#: types of results to which any zero is widened
_ZEROS: Final = ("int64", "double")
#: value and text of the constant null
_NULL: Final = (None, "None")


class _Taken(NamedTuple):
    """A value taken of one column of a side: the function, and the place of the first call that asks for it."""

    function: str
    column: str
    place: int
    #: name of the column of results, which no other in the plan has
    name: str


def apply(plan: LogicalPlan) -> None:
    """Add up before the join below each aggregate where that pays."""
    for listed in plan.order():
        node = plan.node(listed.id)
        if not isinstance(node.operator, Aggregate) or node.operator.of_states or not _has_conditions(node.operator):
            continue
        above = above_join(plan, node)
        join = None if above is None else above.join.operator
        if above is not None and isinstance(join, Join) and join.how is JoinType.INNER and not join.coalesce_keys:
            any(_added_up(plan, above, node.operator, side) for side in (0, 1))


def _has_conditions(aggregate: Aggregate) -> bool:
    calls = aggregate.calls
    return any(isinstance(call.argument, Case) for call in calls) and all(call.function in _FUNCTIONS for call in calls)


def _added_up(plan: LogicalPlan, above: Above, aggregate: Aggregate, side: int) -> bool:
    """Put an aggregate below one side of the join; False where it may not be there, or does not pay."""
    join = above.join.operator
    assert isinstance(join, Join)
    source = plan.node(above.join.inputs[side])
    taken = _taken_of(above, aggregate, source.schema)
    if taken is None:
        return False
    kept = {each.column for each in taken}
    conditions = [part for call in above.calls for part in _conditions(call.argument)]
    looked_at = {name for part in (*above.keys.values(), *conditions) for name in columns_of(part)}
    looked_at |= set() if join.condition is None else set(columns_of(join.condition))
    own = set(source.schema.names)
    keys = tuple(n for n in source.schema.names if n in {*(join.left_keys, join.right_keys)[side], *looked_at})
    columns = source.schema.select(keys).columns
    if kept.intersection(keys) or looked_at & own - set(keys) or not are_state_keys(above, columns):
        return False
    if any(name in looked_at and expression != ColumnRef(name) for name, expression in above.keys.items()):
        return False
    arguments = tuple(source.schema.column(each.column) for each in taken)
    states = tuple(aggregate.state_schema.column(f"__state{each.place}_0") for each in taken)
    if not pays(plan, above, source, keys, arguments, states):
        return False
    results = tuple(
        msgspec.structs.replace(above.aggregate.schema.column(aggregate.calls[each.place].name), name=each.name)
        for each in taken
    )
    below = Aggregate(
        keys,
        tuple(AggregateCall(each.function, ColumnRef(each.column), each.name) for each in taken),
        PlanSchema((*columns, *_numbered(states, "__state{}_0"))),
        PlanSchema((*columns, *_numbered(arguments, "__arg{}"))),
    )
    added = plan.insert(below, (source.id,), PlanSchema((*columns, *results)), source)
    _put_above(plan, above, aggregate, taken, side, added)
    return True


def _taken_of(above: Above, aggregate: Aggregate, own: PlanSchema) -> list[_Taken] | None:
    """Return the values that all calls take of columns of a side, each once; None where one takes another thing."""
    found: list[_Taken] = []
    for place, call in enumerate(above.calls):
        value = _value(call)
        if value is None or value not in own.names:
            return None
        argument = aggregate.argument_schema.column(f"__arg{place}").type_text
        state = aggregate.state_schema.column(f"__state{place}_0").type_text
        taken, made = own.column(value).type_text, above.aggregate.schema.column(call.name).type_text
        if state != made or (taken != argument and (call.function, state) != ("sum", "int64")):
            return None
        if _zero(call) is not None and made not in _ZEROS:
            return None
        if not is_safe_call(AggregateCall(call.function, ColumnRef(value), ""), taken, own):
            return None
        if not any((each.function, each.column) == (call.function, value) for each in found):
            found.append(_Taken(call.function, value, place, f"__taken{above.aggregate.id}_{place}"))
    return found


def _value(call: AggregateCall) -> str | None:
    """Return the column whose values an argument has, under a condition or not; None for any other argument."""
    match call.argument:
        case ColumnRef(name=name):
            return name
        case Case(branches=((_, ColumnRef(name=name)),), otherwise=otherwise):
            is_null = otherwise is None or (
                isinstance(otherwise, Literal) and (otherwise.value, otherwise.text) == _NULL
            )
            return name if is_null or _zero(call) is not None else None
    return None


def _zero(call: AggregateCall) -> Literal | None:
    """Return the zero that a sum has where its condition is not true."""
    match call:
        case AggregateCall(function="sum", argument=Case(otherwise=Literal(value=int() | float() as value) as zero)):
            return zero if value == 0 and not isinstance(value, bool) else None
    return None


def _conditions(argument: Expression | None) -> list[Expression]:
    return [condition for condition, _ in argument.branches] if isinstance(argument, Case) else []


def _numbered(columns: tuple[ColumnInfo, ...], name: str) -> tuple[ColumnInfo, ...]:
    return tuple(msgspec.structs.replace(each, name=name.format(place)) for place, each in enumerate(columns))


def _put_above(
    plan: LogicalPlan, above: Above, aggregate: Aggregate, taken: list[_Taken], side: int, added: PlanNode
) -> None:
    """Join what was added up, and take the results where values were taken."""
    inputs = tuple(added.id if index == side else old for index, old in enumerate(above.join.inputs))
    schema = PlanSchema(tuple(column for each in inputs for column in plan.node(each).schema.columns))
    below = plan.replace(above.join, inputs=inputs, schema=schema)
    named = {(each.function, each.column): each.name for each in taken}
    calls = []
    for call, own in zip(above.calls, aggregate.calls, strict=True):
        value = _value(call)
        assert value is not None, "it was found to have a column's values"
        result = ColumnRef(named[call.function, value])
        argument: Expression = result
        if isinstance(call.argument, Case):
            argument = Case(tuple((condition, result) for condition, _ in call.argument.branches), _zero(call))
        calls.append(msgspec.structs.replace(own, argument=argument))
    wanted = {name for call in calls if call.argument is not None for name in columns_of(call.argument)}
    rest = sorted(wanted - above.keys.keys())
    keys = tuple(NamedExpression(key, expression) for key, expression in above.keys.items())
    key_columns = above.aggregate.schema.select(above.keys).columns
    project = Project((*keys, *column_projection(rest)))
    source = plan.insert(project, (below.id,), PlanSchema((*key_columns, *schema.select(rest).columns)), below)
    results = [
        msgspec.structs.replace(above.aggregate.schema.column(call.name), name=f"__arg{place}")
        for place, call in enumerate(calls)
    ]
    operator = msgspec.structs.replace(
        aggregate, calls=tuple(calls), argument_schema=PlanSchema((*key_columns, *results))
    )
    plan.replace(above.aggregate, operator=operator, inputs=(source.id,))
