"""The first rows of each group: a filter on a ranking right above its window tells the sort which rows are enough.

    filter rank <= 3 and x > 0                filter rank <= 3 and x > 0
    window by k order by d: rank      ─►      window by k order by d: rank, wanted up to rank 3

Rows beyond it may be left out where only row_number, rank and dense_rank are computed: of rows that stay they depend on
rows before them alone, which stay as well. The filter stays. A window with another consumer keeps all rows.

Held by: tests/optimizer/test_window_planning.py
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import Call, ColumnRef, Expression, Literal, conjuncts
from engine.graph.plan import Filter, Window
from engine.graph.window import GroupLimit
from engine.optimizer.logical_plan import LogicalPlan

_RANKINGS = frozenset({"row_number", "rank", "dense_rank"})
#: comparison -> (the comparison with sides swapped, the difference to the constant)
_LIMITS = {"less_equal": ("greater_equal", 0), "less": ("greater", 1), "equal": ("equal", 0)}


def apply(plan: LogicalPlan) -> None:
    """Record in each window below a filter which rows of its groups are wanted."""
    consumers = plan.consumers()
    for listed in plan.order():
        node = plan.node(listed.id)
        if not isinstance(node.operator, Filter):
            continue
        below = plan.node(node.inputs[0])
        window = below.operator
        if not isinstance(window, Window) or window.top is not None or len(consumers[below.id]) > 1:
            continue
        if not all(call.function in _RANKINGS for call in window.calls):
            continue
        limits = [_limit(window, part) for part in conjuncts(node.operator.predicate)]
        found = [limit for limit in limits if limit is not None]
        if found:
            top = min(found, key=lambda limit: limit.count)
            plan.replace(below, operator=msgspec.structs.replace(window, top=top))


def _limit(window: Window, part: Expression) -> GroupLimit | None:
    """Return the limit that a part of a filter puts on a ranking; None: it puts none."""
    if not isinstance(part, Call) or len(part.arguments) != 2:
        return None
    left, right = part.arguments
    for function, (exchanged, less) in _LIMITS.items():
        if part.function == function and isinstance(left, ColumnRef) and isinstance(right, Literal):
            return _limit_of(window, left.name, right, less)
        if part.function == exchanged and isinstance(right, ColumnRef) and isinstance(left, Literal):
            return _limit_of(window, right.name, left, less)
    return None


def _limit_of(window: Window, name: str, constant: Literal, less: int) -> GroupLimit | None:
    value = constant.value
    call = next((call for call in window.calls if call.name == name), None)
    if call is None or isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**62:
        return None
    return GroupLimit(call.function, max(0, value - less), len(window.partition_by), call.order_count)
