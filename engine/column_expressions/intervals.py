"""Spans of the calendar: ``col("day") + interval(months=1)``.

Held by: tests/expressions/test_calendar_functions.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.calendar_functions import LIMIT
from engine.records.plain_scalars import scalar_of

_MONTHS: Final = {"years": 12, "quarters": 3, "months": 1}
_DAYS: Final = {"weeks": 7, "days": 1}
_NANOSECONDS: Final = {
    "hours": 3600 * 10**9,
    "minutes": 60 * 10**9,
    "seconds": 10**9,
    "milliseconds": 10**6,
    "microseconds": 10**3,
    "nanoseconds": 1,
}


def interval(**units: int) -> pa.Scalar:
    """Return a span to add to dates and timestamps or take from them: years, quarters, months, weeks, days, hours...

    Months and days are the calendar's: the time of day stays, whatever clocks do in between, and where a month has no
    such day it is its last one. Hours and shorter units are elapsed time. A ``datetime.timedelta`` is elapsed time
    altogether.

    >>> values(col("x") - interval(years=1, days=1), x=[datetime.date(2024, 2, 29)])
    [datetime.date(2023, 2, 27)]
    """
    parts = []
    known = {**_MONTHS, **_DAYS, **_NANOSECONDS}
    for name, count in units.items():
        if name not in known:
            raise SchemaError(f"interval({name}=...): choose among {', '.join(known)}")
        if isinstance(count, bool) or not isinstance(count, int):
            raise SchemaError(f"interval({name}={count!r}): the count is an int")
    for of_part, limit in ((_MONTHS, LIMIT), (_DAYS, LIMIT), (_NANOSECONDS, 1 << 63)):
        total = sum(count * of_part[name] for name, count in units.items() if name in of_part)
        if not -limit < total < limit:
            raise SchemaError(f"interval({', '.join(f'{name}={count}' for name, count in units.items())}) is too long")
        parts.append(total)
    return scalar_of(pa.MonthDayNano(parts))
