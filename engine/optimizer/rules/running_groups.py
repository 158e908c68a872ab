"""Running groups: aggregates of all rows before or behind a row are not made of pairs.

    groups by k: count(y) of (x join y on y.t > x.t)   ->   groups by k: states of
                                                            (x as-of join running counts of y, from the last t down)

That is SQL's correlated count by an inequality: a row of x finds half of the rows of y, whose count is the running one
at the nearest of them. With both sides in order that is one step a row in place of one a pair. Equal keys of the join
are what running aggregates are parted by. It pays where there are some times as many pairs as rows.

Counts, least and greatest values alone: a sum may overflow behind the last row that is asked for. All arguments are
columns of one side, all keys of groups columns of the other. Times are not floats, whose order as keys has NaN.

Source: the inequality is the boundary of a window over one side; Neumann and Kemper leave it a join.
Held by: tests/optimizer/test_running_groups.py
Held by: tests/sql/test_running_groups.py
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from engine.graph.expression import AggregateCall, Call, ColumnRef, NamedExpression
from engine.graph.plan import Aggregate, AsofJoin, Filter, Join, PlanNode, Project, Window
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.said_operators import AsofDirection, JoinHint, JoinType
from engine.graph.sort_key import SortKey
from engine.graph.window import RUNNING_FRAME, WindowCall
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import column_behind, column_projection
from engine.optimizer.logical_plan import LogicalPlan
from engine.statistics.estimates import Estimates

#: pairs for each row of both sides from which it pays
PAIRS_MIN: Final = 8.0

#: comparison -> (the same with sides exchanged, direction in which rows of its left side are looked for, strictly)
_SIGNS: Final = {
    "greater": ("less", AsofDirection.FORWARD, True),
    "greater_equal": ("less_equal", AsofDirection.FORWARD, False),
    "less": ("greater", AsofDirection.BACKWARD, True),
    "less_equal": ("greater_equal", AsofDirection.BACKWARD, False),
}
#: prefixes of types: whole numbers and times, what is counted besides
_ORDERED: Final = ("int", "uint", "decimal128", "date", "time", "duration")
_COUNTED: Final = (*_ORDERED, "bool", "float", "double", "string")


class _Groups(NamedTuple):
    """An aggregate over an inequality: the side that asks and the side that is aggregated, and how they are joined."""

    node: PlanNode
    join: PlanNode
    asking: int
    #: keys of groups, as columns of the side that asks
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    asking_on: str
    own_on: str
    direction: AsofDirection
    is_strict: bool


def apply(plan: LogicalPlan) -> None:
    """Make aggregates over inequalities of running ones, where it pays."""
    for listed in plan.order():
        node = plan.node(listed.id)
        if isinstance(node.operator, Aggregate) and not node.operator.of_states:
            groups = _groups(plan, node, node.operator)
            if groups is not None and _pays(plan, groups):
                _build(plan, groups)


def _groups(plan: LogicalPlan, node: PlanNode, aggregate: Aggregate) -> _Groups | None:
    """Return an aggregate over an inequality with its join, None for any other."""
    consumers = plan.consumers()
    names: dict[str, str | None] = {name: name for name in aggregate.keys}
    names |= {
        call.argument.name: call.argument.name for call in aggregate.calls if isinstance(call.argument, ColumnRef)
    }
    below = plan.node(node.inputs[0])
    while isinstance(below.operator, Project) and len(consumers[below.id]) == 1 and below.parallelism is None:
        made = below.operator.expressions
        names = {name: behind and column_behind(made, behind) for name, behind in names.items()}
        below = plan.node(below.inputs[0])
    join = below.operator
    if not isinstance(join, Join) or len(consumers[below.id]) > 1 or below.parallelism is not None:
        return None
    if join.how not in (JoinType.INNER, JoinType.CROSS) or join.coalesce_keys:
        return None
    if join.hint is not JoinHint.OPTIMIZER_CHOOSES or None in names.values():
        return None
    sides = [plan.node(source).schema for source in below.inputs]
    found = _inequality(join, sides)
    if found is None or set(sides[0].names) & set(sides[1].names):
        return None
    keys = tuple(str(names[key]) for key in aggregate.keys)
    asking = 0 if set(keys) <= set(sides[0].names) else 1
    calls = [_call_of(call, names, sides[1 - asking]) for call in aggregate.calls]
    taken = tuple(call for call in calls if call is not None)
    if not keys or not taken or len(taken) < len(calls) or not set(keys) <= set(sides[asking].names):
        return None
    columns, sign = found
    return _Groups(node, below, asking, keys, taken, columns[asking], columns[1 - asking], *_SIGNS[sign[asking]][1:])


def _inequality(join: Join, sides: list[PlanSchema]) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Return the columns of both sides that are compared, and how: seen from the right where the left asks, first."""
    match join.condition:
        case Call(function=sign, arguments=(ColumnRef(name=one), ColumnRef(name=other))) if sign in _SIGNS:
            if one not in sides[0].names:
                one, other, sign = other, one, _SIGNS[sign][0]
            if one not in sides[0].names or other not in sides[1].names:
                return None
            columns = sides[0].column(one), sides[1].column(other)
            if columns[0].ipc != columns[1].ipc or not columns[0].type_text.startswith(_ORDERED):
                return None
            return (one, other), (_SIGNS[sign][0], sign)
        case _:
            return None


def _call_of(call: AggregateCall, names: dict[str, str | None], side: PlanSchema) -> AggregateCall | None:
    """Return a call in terms of the aggregated side, None for one that is not made of running ones."""
    if call.function == "count_all":
        return call
    if call.function not in ("count", "min", "max") or not isinstance(call.argument, ColumnRef):
        return None
    name = names[call.argument.name]
    if name is None or name not in side.names:
        return None
    types = _COUNTED if call.function == "count" else _ORDERED
    if not side.column(name).type_text.startswith(types):
        return None
    return msgspec.structs.replace(call, argument=ColumnRef(name))


def _pays(plan: LogicalPlan, groups: _Groups) -> bool:
    known: dict[int, Estimates] = {}
    pairs = estimate_below(plan, groups.join, known).rows
    rows = sum(estimate_below(plan, plan.node(source), known).rows for source in groups.join.inputs)
    return pairs > PAIRS_MIN * rows


def _build(plan: LogicalPlan, groups: _Groups) -> None:
    """Put an as-of join with running states in the place of the join; the groups above merge states."""
    join, aggregate = groups.join.operator, groups.node.operator
    assert isinstance(join, Join)
    assert isinstance(aggregate, Aggregate)
    asking = plan.node(groups.join.inputs[groups.asking])
    by = (join.left_keys, join.right_keys)
    asking_by, own_by = by[groups.asking], by[1 - groups.asking]
    states = aggregate.state_schema.columns[len(aggregate.keys) :]
    running = _running(plan, groups, own_by, states)
    near = running.schema.column("__near")
    operator = AsofJoin(asking_by, _near(own_by), groups.asking_on, near.name, groups.direction, groups.is_strict)
    taken = [msgspec.structs.replace(each, nullable=True) for each in (near, *states)]
    joined = plan.insert(operator, (asking.id, running.id), PlanSchema((*asking.schema.columns, *taken)), groups.join)
    matched = plan.insert(Filter(Call("is_not_null", (ColumnRef(near.name),))), (joined.id,), joined.schema, joined)
    pairs = zip(aggregate.keys, groups.keys, strict=True)
    keys = [NamedExpression(key, ColumnRef(name)) for key, name in pairs]
    kept = Project((*keys, *column_projection(each.name for each in states)))
    source = plan.insert(kept, (matched.id,), aggregate.state_schema, matched)
    merging = msgspec.structs.replace(aggregate, argument_schema=PlanSchema(()), of_states=True)
    plan.replace(groups.node, operator=merging, inputs=(source.id,))


def _near(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"__near{place}" for place in range(len(keys)))


def _running(plan: LogicalPlan, groups: _Groups, by: tuple[str, ...], states: tuple[ColumnInfo, ...]) -> PlanNode:
    """Return the aggregated side with its running states, under names that the other side has not."""
    own = plan.node(groups.join.inputs[1 - groups.asking])
    columns = [own.schema.column(name) for name in (*by, groups.own_on)]
    order = SortKey(groups.own_on, groups.direction is AsofDirection.FORWARD, nulls_last=True)
    calls = []
    for call, state in zip(groups.calls, states, strict=True):
        argument = call.argument.name if isinstance(call.argument, ColumnRef) else None
        calls.append(WindowCall(call.function, argument, state.name, RUNNING_FRAME, order_count=1))
    window = Window(by, (order,), tuple(calls))
    made = plan.insert(window, (own.id,), PlanSchema((*own.schema.columns, *states)), own)
    names = (*_near(by), "__near")
    renamed = [NamedExpression(name, ColumnRef(each.name)) for name, each in zip(names, columns, strict=True)]
    kept = Project((*renamed, *column_projection(each.name for each in states)))
    shown = [msgspec.structs.replace(each, name=name) for name, each in zip(names, columns, strict=True)]
    return plan.insert(kept, (made.id,), PlanSchema((*shown, *states)), own)
