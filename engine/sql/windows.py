"""Functions over windows: ``sum(v) OVER (PARTITION BY k ORDER BY d ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)``.

    partitions, sorts           over(partition_by=, order_by=, descending=, nulls_last=)
    ROWS, RANGE with offsets    rows=(-2, 0), range=(-2, 0); None is unbounded
    what SQL means without      no frame: the same default

Held by: tests/sql/test_windows.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.windows import (
    cume_dist,
    dense_rank,
    first_value,
    lag,
    last_value,
    lead,
    nth_value,
    ntile,
    percent_rank,
    rank,
    row_number,
)
from engine.errors import NotYetSupportedError, PlanError
from engine.graph.expression import Literal
from engine.sql.aggregates import MODE, NUMBERED, AggregateCall, aggregate
from engine.sql.arguments import constant_of, value_of
from engine.sql.null_treatment import PASSING_NULLS, passing_nulls

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression

_RANKS: Final[dict[str, Callable[[], Any]]] = {
    "row_number": row_number,
    "rank": rank,
    "dense_rank": dense_rank,
    "percent_rank": percent_rank,
    "cume_dist": cume_dist,
}
_VALUES: Final[dict[str, Callable[[Expr], Any]]] = {
    "first_value": first_value,
    "last_value": last_value,
}
_SHIFTS: Final[dict[str, Callable[..., Any]]] = {"lag": lag, "lead": lead}

#: functions that need OVER
WINDOW_NAMES: Final = (*_RANKS, *_SHIFTS, "ntile", "nth_value")


def window(
    read: Callable[[Expression], Expr],
    name: str,
    message: Expression.WindowFunction,
    type_of: Callable[[Expr], pa.DataType],
    made: Callable[[Expr], Expr],
) -> Expr:
    """Return a function over a window; NotYetSupportedError for one that is not here.

    Args: read: reads its parts; made: makes an expression a column that is there before.
    """
    arguments = [read(argument.value) for argument in message.arguments]
    directions = [field.SortDirection.Name(field.direction) for field in message.sorts]
    settings: dict[str, Any] = {
        "partition_by": [read(key) for key in message.partitions],
        "order_by": [read(field.expr) for field in message.sorts],
        "descending": ["DESC" in direction for direction in directions],
        "nulls_last": ["NULLS_LAST" in direction for direction in directions],
    }
    if name == "nth_value" and value_of(arguments[1]) in PASSING_NULLS:
        row = made(row_number().over(**settings))
        value, number = arguments[0], int(value_of(arguments[1]))
        return passing_nulls(number, value, type_of(value), row, settings | _frame(message))
    function, has_frame = _function(name, arguments)
    if has_frame:
        settings |= _frame(message)
    found: Expr = function.over(**settings)
    return found


def _function(name: str, arguments: Sequence[Expr]) -> tuple[Any, bool]:
    """Return a function, and whether it looks at a frame of its partition."""
    if name in _RANKS:
        return _RANKS[name](), False
    if name == "ntile":
        return ntile(int(constant_of(arguments[0], "the number of NTILE"))), False
    if name in _SHIFTS:
        distance = constant_of(arguments[1], f"the distance of {name.upper()}") if len(arguments) > 1 else 1
        if distance is None:
            raise PlanError(f"sql: the distance of {name.upper()} is NULL; write a number of rows")
        distance = int(distance)
        if distance < 0:
            name, distance = ("lead" if name == "lag" else "lag"), -distance
        return _SHIFTS[name](arguments[0], distance, *arguments[2:3]), False
    if name == "nth_value":
        number = int(constant_of(arguments[1], "the number of NTH_VALUE"))
        if number == MODE:
            return NUMBERED[MODE](arguments[0]), True
        if number in NUMBERED:
            raise NotYetSupportedError(f"{NUMBERED[number].__name__}() over a window; write it with GROUP BY and join")
        return nth_value(arguments[0], number), True
    if name in _VALUES:
        return _VALUES[name](arguments[0]), True
    first = arguments[0].expression if arguments else None
    is_of_rows = first is None or (isinstance(first, Literal) and constant_of(arguments[0], name) is not None)
    return aggregate(AggregateCall(name, arguments, is_of_rows)), True


def _frame(message: Expression.WindowFunction) -> dict[str, tuple[int | None, int | None]]:
    """Return ``rows=`` or ``range=``; {} for what SQL means where nothing is written."""
    bounds = _bound(message.lower_bound), _bound(message.upper_bound)
    if message.BoundsType.Name(message.bounds_type).endswith("ROWS"):
        return {"rows": bounds}
    is_default = bounds == (None, 0) or (bounds == (None, None) and not message.sorts)
    return {} if is_default else {"range": bounds}


def _bound(bound: Any) -> int | None:
    match bound.WhichOneof("kind"):
        case "preceding":
            return -int(bound.preceding.offset)
        case "following":
            return int(bound.following.offset)
        case "current_row":
            return 0
        case _:
            return None
