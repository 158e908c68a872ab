"""Intervals: constants such as INTERVAL '1 year 2 days', and numbers of a unit that a column says.

    INTERVAL '36 hours', INTERVAL 3 DAY, '01:30:00'      a constant of months, days and nanoseconds
    d + INTERVAL (n) DAY, d + to_days(n)                 the date moved by as many days as n says

Held by: tests/sql/test_spans.py
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.api.expression import Expr
from engine.api.expressions import lit
from engine.errors import NotYetSupportedError, PlanError
from engine.records.plain_scalars import scalar_of as arrow_scalar
from engine.sql.frames import Binder
from engine.sql.operators import in_utc, is_moment
from engine.sql.spans import moved, unit_named

_PART: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*(?:,|and\b)?\s*", re.IGNORECASE)
_CLOCK: Final = re.compile(r"\s*([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*")
_MONTHS: Final = {"year": 12, "quarter": 3, "month": 1}
_DAYS: Final = {"week": 7, "day": 1}
_NANOSECONDS: Final = {
    "hour": 3600 * 10**9,
    "minute": 60 * 10**9,
    "second": 10**9,
    "millisecond": 10**6,
    "microsecond": 10**3,
}
_TO: Final = "to_"
#: functions that make an interval of a number
TO_UNITS: Final = frozenset(
    f"to_{unit}s" for unit in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
)


def interval_of(text: str, unit: str | None, place: str) -> Expr:
    """Return the interval that a text says, of a unit if there is one. Raises: PlanError."""
    whole = f"{text} {unit}" if unit else text
    months, days, nanoseconds, at = Decimal(0), Decimal(0), Decimal(0), 0
    try:
        while at < len(whole.rstrip()):
            clock = _CLOCK.match(whole, at)
            if clock:
                sign = -1 if clock[1] == "-" else 1
                nanoseconds += sign * (int(clock[2]) * 3600 + int(clock[3]) * 60 + Decimal(clock[4] or 0)) * 10**9
                at = clock.end()
                continue
            found = _PART.match(whole, at)
            if found is None:
                raise PlanError(f"{place}'{whole}' is no INTERVAL; write INTERVAL '1 day'")
            number, name, at = Decimal(found[1]), unit_named(found[2]), found.end()
            if name in _MONTHS:
                months += number * _MONTHS[name]
            elif name in _DAYS:
                days += number * _DAYS[name]
            else:
                nanoseconds += number * _NANOSECONDS[name]
    except NotYetSupportedError:
        raise PlanError(f"{place}'{whole.lower()}' is no INTERVAL; write INTERVAL '1 day'") from None
    # a part of a month is days, of a day nanoseconds
    days += (months - int(months)) * 30
    nanoseconds += (days - int(days)) * 86400 * 10**9
    return lit(arrow_scalar(pa.MonthDayNano([int(months), int(days), int(nanoseconds)])))


def is_interval(node: exp.Expr) -> bool:
    """Return whether a node is an interval whose number is computed."""
    inner = node.unnest()
    if isinstance(inner, exp.Anonymous):
        return str(inner.name).lower() in TO_UNITS
    if isinstance(inner, exp.Mul):
        return any(isinstance(one.unnest(), exp.Interval) for one in (inner.this, inner.expression))
    return isinstance(inner, exp.Interval) and not isinstance(inner.this, exp.Literal)


def _count(node: exp.Expr) -> exp.Expr:
    """Return the number of an interval of one unit."""
    return exp.Literal.number(node.name) if isinstance(node, exp.Literal) else node


def interval_moved(binder: Binder, one: exp.Expr, other: exp.Expr, *, is_back: bool) -> Expr | None:
    """Return a moment moved by a computed interval; None where the other side is no moment."""
    inner = other.unnest()
    if isinstance(inner, exp.Mul):
        sides = [inner.this.unnest(), inner.expression.unnest()]
        interval = next(side for side in sides if isinstance(side, exp.Interval))
        times = next(side for side in sides if side is not interval)
        unit = interval.args["unit"].name if interval.args.get("unit") is not None else "day"
        number = exp.Mul(this=times, expression=_count(interval.this))
    elif isinstance(inner, exp.Anonymous):
        unit, number = str(inner.name).lower().removeprefix(_TO), inner.expressions[0]
    else:
        unit, number = inner.args["unit"].name if inner.args.get("unit") is not None else "day", inner.this
    value = binder.bind(one)
    data_type = binder.type_of(value)
    if not is_moment(data_type):
        return None
    is_date = bool(pa.types.is_date(data_type))
    return moved(in_utc(value, data_type), binder.bind(number), unit, is_date=is_date, is_back=is_back)
