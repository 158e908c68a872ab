"""Functions over windows: ``sum(v) OVER (PARTITION BY k ORDER BY d ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)``.

    partitions, sorts           over(partition_by=, order_by=, descending=, nulls_last=)
    ROWS, RANGE, GROUPS         rows=(-2, 0), range=(-2, 0), groups=(-2, 0); None is unbounded; EXCLUDE: exclude=
    what SQL means without      no frame: the same default
    OVER (w ORDER BY d)         what the window w has, with an order
    IGNORE NULLS                ignore_nulls=True

A query that depends on rows outside has the columns that it carries of them among its partitions.

Held by: tests/sql/test_windows.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.aggregates import Aggregate
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.column_expressions.windows import (
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
from engine.graph.window import CURRENT_ROW, GROUP, TIES
from engine.sql.aggregates import AGGREGATE_NAMES, AggregateCall, aggregate, different
from engine.sql.frames import Binder
from engine.sql_values.arguments import whole_constant
from engine.sql_values.constants import is_constant, scalar_of
from engine.sql_values.data_types import shown_type
from engine.sql_values.operators import is_number

_RANKS: Final[dict[str, Callable[[], Any]]] = {
    "row_number": row_number,
    "rank": rank,
    "dense_rank": dense_rank,
    "percent_rank": percent_rank,
    "cume_dist": cume_dist,
}
_SHIFTS: Final[dict[str, Callable[..., Any]]] = {"lag": lag, "lead": lead}
_VALUES: Final[dict[str, Callable[..., Any]]] = {
    "first_value": first_value,
    "first": first_value,
    "last_value": last_value,
    "last": last_value,
}
#: functions that need OVER
NAMES: Final = frozenset((*_RANKS, *_SHIFTS, "ntile", "nth_value"))
_CURRENT: Final = "CURRENT ROW"


def window(binder: Binder, node: exp.Window) -> Expr:
    """Return a function over a window. Raises: NotYetSupportedError for one that is not here."""
    if binder.frame.place:
        raise PlanError(f"a function over a window in {binder.frame.place}; write it in QUALIFY")
    inner, kept, ignores_nulls = node.this, None, False
    while not isinstance(inner, exp.Anonymous):
        if isinstance(inner, exp.Filter):
            kept = binder.condition(inner.expression.this, "FILTER")
        elif isinstance(inner, exp.IgnoreNulls):
            ignores_nulls = True
        elif not isinstance(inner, exp.RespectNulls):
            raise NotYetSupportedError(f"{inner.key.upper()} over a window")
        inner = inner.this
    name, given = str(inner.name).lower(), []
    is_distinct = False
    for item in inner.expressions:
        one = item
        if isinstance(one, exp.IgnoreNulls | exp.RespectNulls):
            ignores_nulls, one = isinstance(one, exp.IgnoreNulls), one.this
        if isinstance(one, exp.Order):
            raise NotYetSupportedError(f"ORDER BY among the arguments of {name}() over a window")
        if isinstance(one, exp.Distinct):
            is_distinct = True
            given += different(binder, name, one)
        elif not isinstance(one, exp.Star):
            given.append(one)
    arguments = binder.all(given)
    settings = _settings(binder, node)
    function, has_frame = _function(binder, name, arguments, kept, is_distinct, ignores_nulls)
    if has_frame:
        settings |= _frame(binder, node, settings)
    found: Expr = function.over(**settings)
    if ignores_nulls or "exclude" in settings:
        # what has no such frame is said where it stands
        binder.type_of(found)
    return found


def _function(
    binder: Binder,
    name: str,
    arguments: Sequence[Expr],
    kept: Expr | None,
    is_distinct: bool,
    ignores_nulls: bool,
) -> tuple[Any, bool]:
    """Return a function, and whether it looks at a frame of its partition."""
    if ignores_nulls and name not in (*_VALUES, *_SHIFTS, "nth_value"):
        raise NotYetSupportedError(
            f"{name}() with IGNORE NULLS (there are first_value, last_value, nth_value, lag, lead)"
        )
    if name in AGGREGATE_NAMES and name not in _VALUES:
        found = aggregate(binder, AggregateCall(name, arguments, kept, is_distinct))
        return Aggregate(found.expression), True
    if kept is not None:
        raise NotYetSupportedError(f"FILTER of {name}() over a window")
    counts = {"ntile": 1, "nth_value": 2, **dict.fromkeys(_RANKS, 0), **dict.fromkeys(_VALUES, 1)}
    if name in counts and len(arguments) != counts[name]:
        raise PlanError(f"{name}() has {len(arguments)} arguments here and takes {counts[name]}")
    if name in _RANKS:
        return _RANKS[name](), False
    if name == "ntile":
        return ntile(whole_constant(arguments[0], "the number of NTILE")), False
    if name in _SHIFTS:
        distance = whole_constant(arguments[1], f"the distance of {name.upper()}") if len(arguments) > 1 else 1
        if distance < 0:
            name, distance = ("lead" if name == "lag" else "lag"), -distance
        return _SHIFTS[name](arguments[0], distance, *arguments[2:3], ignore_nulls=ignores_nulls), False
    if name == "nth_value":
        place = whole_constant(arguments[1], "the number of NTH_VALUE")
        return nth_value(arguments[0], place, ignore_nulls=ignores_nulls), True
    if name in _VALUES:
        return _VALUES[name](arguments[0], ignore_nulls=ignores_nulls), True
    raise PlanError(f"no function {name} over a window")


def _settings(binder: Binder, node: exp.Window) -> dict[str, Any]:
    """Return partition and order of a window, those of the window that it names first."""
    partition, order = _parts(binder, node, ())
    carried = [col(name) for name in binder.frame.carried.values()]
    return {
        "partition_by": [*carried, *binder.all(partition)],
        "order_by": [binder.bind(one.this) for one in order],
        "descending": [bool(one.args.get("desc")) for one in order],
        "nulls_last": [not one.args.get("nulls_first") for one in order],
    }


def _parts(binder: Binder, node: exp.Window, seen: tuple[str, ...]) -> tuple[list[exp.Expr], list[exp.Ordered]]:
    partition, order = list(node.args.get("partition_by") or ()), node.args.get("order")
    own = list(order.expressions) if order is not None else []
    named = node.args.get("alias")
    if named is None:
        return partition, own
    name = named.name.lower()
    base = binder.frame.windows.get(name)
    if base is None or name in seen:
        raise PlanError(binder.said(node, f"no window {named.name}; write WINDOW {named.name} AS (...)"))
    its_partition, its_order = _parts(binder, base, (*seen, name))
    if partition or (own and its_order):
        raise PlanError(binder.said(node, f"the window {named.name} has what is written here again"))
    return its_partition, own or its_order


def _frame(binder: Binder, node: exp.Window, settings: dict[str, Any]) -> dict[str, Any]:
    """Return ``rows=``, ``range=`` or ``groups=``, and ``exclude=``; {} for what SQL means where nothing is written."""
    spec = node.args.get("spec")
    named = node.args.get("alias")
    while spec is None and named is not None:
        base = binder.frame.windows[named.name.lower()]
        spec, named = base.args.get("spec"), base.args.get("alias")
    if spec is None:
        return {}
    kind = str(spec.args.get("kind") or "").upper()
    end = spec.args.get("end") or _CURRENT
    start_bound = _bound(binder, spec.args.get("start"), spec.args.get("start_side"), kind)
    end_bound = _bound(binder, end, spec.args.get("end_side"), kind)
    bounds = (start_bound, end_bound)
    exclude = _excluded(binder, spec)
    if kind != "RANGE":
        return {kind.lower(): bounds, **exclude}
    is_default = bounds == (None, 0) or (bounds == (None, None) and not settings["order_by"])
    if is_default and not exclude:
        return {}
    _check_distances(binder, bounds, settings["order_by"])
    return {"range": bounds, **exclude}


def _excluded(binder: Binder, spec: exp.WindowSpec) -> dict[str, str]:
    exclude = spec.args.get("exclude")
    words = "" if exclude is None else str(getattr(exclude, "name", exclude)).lower()
    if words in ("", "no others"):
        return {}
    if words not in (CURRENT_ROW, GROUP, TIES):
        raise PlanError(binder.said(spec, f"EXCLUDE {words.upper()}; write CURRENT ROW, GROUP, TIES or NO OTHERS"))
    return {"exclude": words}


def _check_distances(binder: Binder, bounds: tuple[Any, Any], order: Sequence[Expr]) -> None:
    """Raise PlanError where the order of a RANGE has no such distances."""
    if all(bound in (None, 0) for bound in bounds):
        return
    if len(order) != 1:
        raise PlanError("RANGE with a distance needs one key of ORDER BY")
    data_type = binder.type_of(order[0])
    are_spans = all(bound in (None, 0) or isinstance(bound, str) for bound in bounds)
    if is_number(data_type) and not any(isinstance(bound, str) for bound in bounds):
        return
    if pa.types.is_temporal(data_type) and are_spans:
        return
    hint = "write INTERVAL '3 days'" if pa.types.is_temporal(data_type) else "there are distances of numbers and times"
    raise PlanError(f"RANGE with this distance over {shown_type(data_type)}; {hint}")


def _bound(binder: Binder, bound: Any, side: Any, kind: str) -> Any:
    if bound is None or str(bound).upper() == "UNBOUNDED":
        return None
    if str(bound).upper() == _CURRENT:
        return 0
    value = binder.bind(bound)
    if not is_constant(value):
        raise NotYetSupportedError("a bound of a frame that is no constant, in SQL")
    number = scalar_of(value).as_py()
    is_before = str(side or "").upper() == "PRECEDING"
    if isinstance(number, pa.MonthDayNano):
        if number.months:
            raise NotYetSupportedError("a frame of months, which have no one length; write days")
        ticks = number.days * 86400 * 10**6 + number.nanoseconds // 1000
        return f"{-ticks if is_before else ticks} us"
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float | Decimal)
        or (kind != "RANGE" and number != int(number))
    ):
        raise PlanError(f"a bound of a frame is {number!r}; write a number of rows, or a distance")
    if kind != "RANGE":
        number = int(number)
    if number < 0:
        raise PlanError("a bound of a frame is negative; write PRECEDING or FOLLOWING")
    return -number if is_before else number
