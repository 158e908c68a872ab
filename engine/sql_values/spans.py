"""Spans of time: units and what is added, intervals, and differences of timestamps.

    INTERVAL '36 hours', INTERVAL 3 DAY, '01:30:00'      a constant of months, days and nanoseconds
    d + INTERVAL (n) DAY          interval_of(n, 'day')       a column of microseconds, added
    ts - other                    duration[us]                which is compared with intervals without months
    extract(epoch FROM ts - other)

Held by: tests/sql/test_spans.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.errors import NotYetSupportedError, PlanError
from engine.records.plain_scalars import scalar_of as arrow_scalar
from engine.sql_values.arguments import constant_of
from engine.sql_values.constants import computed, is_constant, scalar_of

_MOMENT: Final = pa.timestamp("us")
_SPAN: Final = pa.duration("us")
_MONTHS: Final = {"year": 12, "quarter": 3, "month": 1}
#: microseconds of units with a fixed length
_LENGTHS: Final = {
    "week": 7 * 86400 * 10**6,
    "day": 86400 * 10**6,
    "hour": 3600 * 10**6,
    "minute": 60 * 10**6,
    "second": 10**6,
    "millisecond": 10**3,
    "microsecond": 1,
}
_DAYS: Final = {"week": 7, "day": 1}
_UNITS: Final = (*_MONTHS, *_LENGTHS)
_PART: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*(?:,|and\b)?\s*", re.IGNORECASE)
_CLOCK: Final = re.compile(r"\s*([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*")
#: functions that make an interval of a number
TO_UNITS: Final = frozenset(f"to_{unit}s" for unit in _UNITS if unit != "quarter")
_SHORT: Final = {
    **{"y": "year", "yr": "year", "mon": "month", "w": "week", "d": "day", "h": "hour", "hr": "hour", "m": "minute"},
    **{"min": "minute", "s": "second", "sec": "second", "ms": "millisecond", "us": "microsecond"},
}


def unit_named(name: str) -> str:
    """Return the unit of a name such as day, DAYS or d; NotYetSupportedError for another one."""
    lower = name.lower()
    unit = _SHORT.get(lower) or _SHORT.get(lower.removesuffix("s")) or lower.removesuffix("s")
    if unit not in _UNITS:
        raise NotYetSupportedError(f"sql: the unit '{name}' (there are {', '.join(_UNITS)})")
    return unit


def interval_of(text: str, unit: str | None, place: str) -> Expr:
    """Return the interval that a text says, of a unit if there is one. Raises: PlanError."""
    whole = f"{text} {unit}" if unit else text
    months, days, microseconds, at = Decimal(0), Decimal(0), Decimal(0), 0
    try:
        while at < len(whole.rstrip()):
            clock = _CLOCK.match(whole, at)
            if clock:
                sign = -1 if clock[1] == "-" else 1
                microseconds += sign * (int(clock[2]) * 3600 + int(clock[3]) * 60 + Decimal(clock[4] or 0)) * 10**6
                at = clock.end()
                continue
            found = _PART.match(whole, at)
            if found is None:
                raise PlanError(f"{place}'{whole}' is no INTERVAL; write INTERVAL '1 day'")
            number, name, at = Decimal(found[1]), unit_named(found[2]), found.end()
            months += number * _MONTHS.get(name, 0)
            days += number * _DAYS.get(name, 0)
            microseconds += 0 if name in _DAYS else number * _LENGTHS.get(name, 0)
    except NotYetSupportedError:
        raise PlanError(f"{place}'{whole.lower()}' is no INTERVAL; write INTERVAL '1 day'") from None
    # a part of a month is days, of a day microseconds
    days += (months - int(months)) * 30
    microseconds += (days - int(days)) * _LENGTHS["day"]
    return lit(arrow_scalar(pa.MonthDayNano([int(months), int(days), int(microseconds * 1000)])))


def moved(value: Expr, count: Expr, unit: str, *, is_date: bool, is_back: bool) -> Expr:
    """Return a moment moved by as many units as a column or a constant says; a date by days is a date."""
    unit = unit_named(unit)
    count = computed(-count) if is_back else count
    number = constant_of(count, f"a number of {unit}s to add") if is_constant(count) or unit in _MONTHS else None
    if number is not None:
        try:
            return value.dt.add(**{f"{unit}s": int(number)})
        except (TypeError, ValueError):
            raise PlanError(f"sql: {number!r} is no number of {unit}s to add") from None
    found = (value.cast(_MOMENT) if is_date else value) + (count.cast(pa.int64()) * _LENGTHS.get(unit, 0)).cast(_SPAN)
    return found.cast(pa.date32()) if is_date and unit in ("day", "week") else found


def part_of_span(part: str, span: Expr) -> Expr:
    """Return a part of a span: its seconds, or the days, hours, minutes and seconds that it is written with."""
    count = span.cast(_SPAN).cast(pa.int64())
    name = part.lower()
    if name == "epoch":
        return count / 10**6
    if name not in ("day", "hour", "minute", "second"):
        raise NotYetSupportedError(f"EXTRACT({part.upper()} FROM ...) of a difference (write EPOCH and divide)")
    above = {"hour": "day", "minute": "hour", "second": "minute"}.get(name)
    absolute = count.abs() if above is None else count.abs() % _LENGTHS[above]
    whole = absolute // _LENGTHS[name]
    return when(count < 0).then(-whole).otherwise(whole)


def with_spans(values: Sequence[Expr], type_of: Callable[[Expr], pa.DataType]) -> list[Expr]:
    """Return the compared values: beside a span of time an interval is one, too."""
    types = [type_of(value) for value in values]
    if not any(map(pa.types.is_duration, types)) and set(types) != {pa.month_day_nano_interval()}:
        return list(values)
    return [_as_span(value) if type_of(value) == pa.month_day_nano_interval() else value for value in values]


def _as_span(value: Expr) -> Expr:
    interval = scalar_of(value).as_py() if is_constant(value) else None
    if interval is None or interval.months:
        raise NotYetSupportedError("sql: a difference of timestamps beside an interval of months; write days")
    microseconds = interval.days * _LENGTHS["day"] + interval.nanoseconds // 1000
    return lit(arrow_scalar(microseconds, _SPAN))
