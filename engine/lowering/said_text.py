"""A plan as users said it, as text: an operator a line, its inputs below it.

    [4] group by shop: total = sum(price), best = max(price) filter (where is_open)
    └─ [3] project *, rank = rank() over (partition by shop order by price)
       └─ [2] inner join on shop == id
          ├─ [0] csv source prices
          └─ [1] csv source shops

``*`` stands for the columns of the input. An operator that is read twice is written once and referred to.

Held by: tests/lowering/test_said_plans.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.expressions.text import expression_text
from engine.graph.expression import ColumnRef, Expression, NamedExpression
from engine.graph.plan import Filter, Plan, PlanNode, Project
from engine.graph.said_operators import Apply, ApplyUse, AsofJoinBy, GroupBy, JoinBy, Page, Pivot, SetOperation, SortBy
from engine.lowering.projections import columns_as_they_are
from engine.optimizer.operator_names import operator_name


def said_text(plan: Plan) -> str:
    """Return a plan as text, its roots one behind the other."""
    lines: list[str] = []
    written: set[int] = set()
    for root in plan.sinks:
        _write(plan, plan.node(root), "", "", lines, written)
    return "\n".join(lines) + "\n"


def _write(plan: Plan, root: PlanNode, first: str, rest: str, lines: list[str], written: set[int]) -> None:
    # without recursion: a program may have any number of operators
    waiting = [(root, first, rest)]
    while waiting:
        node, first, rest = waiting.pop()
        head = f"{first}[{node.id}] {_text(plan, node)}"
        if node.id in written:
            lines.append(f"{head} (above)")
            continue
        written.add(node.id)
        lines.append(head)
        for position, source in reversed(list(enumerate(node.inputs))):
            is_last = position == len(node.inputs) - 1
            below = (f"{rest}{'└─ ' if is_last else '├─ '}", f"{rest}{'   ' if is_last else '│  '}")
            waiting.append((plan.node(source), *below))


def _text(plan: Plan, node: PlanNode) -> str:
    """Return an operator as one line."""
    if node.name:
        return node.name
    match node.operator:
        case Project(expressions=named):
            return f"project {_columns(named, plan.node(node.inputs[0]).schema.names)}"
        case Filter(predicate=predicate):
            return f"filter {expression_text(predicate)}"
        case GroupBy() as said:
            return _group_text(said)
        case JoinBy() as said:
            return _join_text(said)
        case AsofJoinBy() as said:
            by = [expression_text(key) for key in said.by]
            keys = " and ".join([*by, _pair(*said.on, is_on=said.is_on)])
            within = "" if said.tolerance is None else f", within {said.tolerance}"
            strict = ", no exact matches" if said.is_strict else ""
            return f"as-of join on {keys}, {said.direction.value}{within}{strict}"
        case SortBy(keys=keys, limit=limit):
            order = (
                f"{expression_text(key.expression)}{' descending' * key.descending}{' nulls last' * key.nulls_last}"
                for key in keys
            )
            return f"{'sort' if limit is None else f'first {limit}'} by {', '.join(order)}"
        case Page(count=count, offset=offset):
            return f"{'rows' if count is None else f'limit {count}'} behind {offset}"
        case SetOperation(in_other=in_other, counts_copies=counts_copies):
            return f"{'intersect' if in_other else 'except'}{' all' * counts_copies}"
        case Pivot(on=on, index=index, cells=cells, columns=columns):
            return f"pivot {on} by {', '.join(index)}: {_named(cells)} in {', '.join(one.name for one in columns)}"
        case Apply() as said:
            return _apply_text(said)
        case _:
            return operator_name(node)


def _columns(named: Sequence[NamedExpression], given: Sequence[str]) -> str:
    """Return columns, those of the input as one star where they come first and are as they were."""
    count = len(given)
    if count < 2 or list(named[:count]) != columns_as_they_are(given):
        return _named(named)
    return ", ".join(["*", *([_named(named[count:])] if named[count:] else [])])


def _named(named: Sequence[NamedExpression]) -> str:
    return ", ".join(
        one.name if one.expression == ColumnRef(one.name) else f"{one.name} = {expression_text(one.expression)}"
        for one in named
    )


def _group_text(said: GroupBy) -> str:
    keys = f"group by {_named(said.keys)}" if said.keys else "aggregate"
    if said.sets is not None:
        sets = [", ".join(one) for one in said.sets]
        keys += f", sets ({'), ('.join(sets)})"
    return f"{keys}: {_named(said.outputs)}" if said.outputs else keys


def _join_text(said: JoinBy) -> str:
    keys = " and ".join(_pair(*pair, is_on=said.is_on) for pair in said.keys)
    parts = [f"{'null-aware ' if said.null_aware else ''}{said.how.value} join{' on ' if keys else ''}{keys}"]
    parts += ["null equals null"] if any(said.null_safe) else []
    parts += [] if said.condition is None else [f"where {expression_text(said.condition)}"]
    return ", ".join(parts)


def _apply_text(said: Apply) -> str:
    rows = " and ".join(_pair(*pair, is_on=False) for pair in said.keys)
    parts = ["rows"] if said.value is None else [expression_text(said.value)]
    parts += [f"of {rows}"] if rows else []
    parts += [] if said.condition is None else [f"where {expression_text(said.condition)}"]
    if said.use is ApplyUse.IN:
        parts = [" and ".join(_pair(*pair, is_on=False) for pair in said.tested), "in", *parts]
    asked = f"{'not ' * said.is_not}{said.use.value if said.use is not ApplyUse.IN else ''}".rstrip()
    answer = " ".join([*([asked] if asked else []), *parts])
    return f"apply {said.column} = {answer}" if said.column else f"filter by {answer}"


def _pair(left: Expression, right: Expression, *, is_on: bool) -> str:
    return expression_text(left) if is_on else f"{expression_text(left)} == {expression_text(right)}"
