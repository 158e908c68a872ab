"""The rows of range() and generate_series(): numbers, or times with an interval between them.

    range(1, 4)                                        1 2 3
    generate_series(DATE '2024-01-31', DATE '2024-03-31', INTERVAL '1 month')     31 January, 29 February, 29 March

Each time is the one before it and the interval, as in PostgreSQL and DuckDB; the end of a month stays its end.

Held by: tests/sql/test_series.py
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from engine.errors import PlanError
from engine.records.plain_scalars import array_of

_MOST: Final = 100_000_000
_MICROSECOND: Final = timedelta(microseconds=1)


def series_of(name: str, given: Sequence[Any]) -> pa.Array:
    """Return the values of a call with constants. Raises: PlanError, whose text begins with the call."""
    if given and isinstance(given[0], date):
        return _times(name, given)
    if not 1 <= len(given) <= 3 or not all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        raise PlanError(f"{name}() takes one to three whole numbers, or two times and an interval")
    start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given[:2], given[2] if len(given) > 2 else 1)
    found = _steps(name, start, stop, step)
    return array_of(list(found), pa.int64())


def _steps(name: str, start: int, stop: int, step: int) -> range:
    if step == 0:
        raise PlanError(f"{name}() with a step of 0")
    found = range(start, stop + (0 if name == "range" else 1 if step > 0 else -1), step)
    if len(found) > _MOST:
        raise PlanError(f"{name}() of {len(found)} numbers; {_MOST} at most")
    return found


def _times(name: str, given: Sequence[Any]) -> pa.Array:
    if len(given) != 3 or not isinstance(given[1], date) or not isinstance(given[2], pa.MonthDayNano):
        raise PlanError(f"{name}() of times takes a begin, an end and an interval")
    begin, end = (one if isinstance(one, datetime) else datetime(one.year, one.month, one.day) for one in given[:2])
    if (begin.tzinfo is None) != (end.tzinfo is None):
        raise PlanError(f"{name}() of a TIMESTAMP and a TIMESTAMPTZ; cast one of them")
    data_type = pa.timestamp("us", None if begin.tzinfo is None else "UTC")
    months, days, nanoseconds = given[2].months, given[2].days, given[2].nanoseconds
    step = timedelta(days=days, microseconds=nanoseconds // 1000)
    if not months:
        zero = datetime(1970, 1, 1, tzinfo=None if begin.tzinfo is None else UTC)
        ticks = [(one - zero) // _MICROSECOND for one in (begin, end)]
        return array_of(list(_steps(name, ticks[0], ticks[1], step // _MICROSECOND)), pa.int64()).cast(data_type)
    is_up = months > 0
    found: list[datetime] = []
    while (begin < end if is_up else begin > end) or (begin == end and name != "range"):
        found.append(begin)
        begin = _in_months(begin, months) + step
        if (begin > found[-1]) != is_up:
            raise PlanError(f"{name}() with an interval that leads to no end")
    return array_of(found, data_type)


def _in_months(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, calendar.monthrange(year, month + 1)[1]))
