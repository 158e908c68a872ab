"""Spans of the calendar: ``col("day") + interval(months=1)``, and those that texts say: ``"15 minutes"``.

    units_of("1 month 2 days") -> {"months": 1, "days": 2}

Units are years, quarters, months, weeks, days, hours, minutes, seconds, milliseconds, microseconds and nanoseconds, in
the singular, too; or in short, as in Polars: y q mo w d h m s ms us ns. A ``timedelta`` is elapsed time.

Held by: tests/expressions/test_calendar_functions.py
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.calendar_units import DAYS, LIMIT, MONTHS
from engine.records.plain_scalars import scalar_of

_NANOSECONDS: Final = {
    "hours": 3600 * 10**9,
    "minutes": 60 * 10**9,
    "seconds": 10**9,
    "milliseconds": 10**6,
    "microseconds": 10**3,
    "nanoseconds": 1,
}
_SHORT: Final = {
    **{"y": "years", "q": "quarters", "mo": "months", "w": "weeks", "d": "days", "h": "hours", "m": "minutes"},
    **{"min": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"},
}
_PART: Final = re.compile(r"\s*([0-9]+)?\s*([a-z]+)", re.IGNORECASE)


def interval(**units: int) -> pa.Scalar:
    """Return a span to add to dates and timestamps or take from them: years, quarters, months, weeks, days, hours...

    Months and days are the calendar's: the time of day stays, whatever clocks do in between, and where a month has no
    such day it is its last one. Hours and shorter units are elapsed time. A ``datetime.timedelta`` is elapsed time
    altogether.

    >>> values(col("x") - interval(years=1, days=1), x=[datetime.date(2024, 2, 29)])
    [datetime.date(2023, 2, 27)]
    """
    parts = []
    known = {**MONTHS, **DAYS, **_NANOSECONDS}
    for name, count in units.items():
        if name not in known:
            raise SchemaError(f"interval({name}=...): choose among {', '.join(known)}")
        if isinstance(count, bool) or not isinstance(count, int):
            raise SchemaError(f"interval({name}={count!r}): the count is an int")
    for of_part, limit in ((MONTHS, LIMIT), (DAYS, LIMIT), (_NANOSECONDS, 1 << 63)):
        total = sum(count * of_part[name] for name, count in units.items() if name in of_part)
        if not -limit < total < limit:
            raise SchemaError(f"interval({', '.join(f'{name}={count}' for name, count in units.items())}) is too long")
        parts.append(total)
    return scalar_of(pa.MonthDayNano(parts))


def units_of(span: Any, what: str) -> dict[str, int]:
    """Return the counts of units that a text or a ``timedelta`` says. Raises: SchemaError where it says none."""
    if isinstance(span, timedelta):
        return {"microseconds": span // timedelta(microseconds=1)}
    said = f"{what}({span!r}): write a span such as '15 minutes', '1 month' or '1d12h'"
    if not isinstance(span, str):
        raise SchemaError(said)
    text = span.strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    known, found, at = {**MONTHS, **DAYS, **_NANOSECONDS}, dict[str, int](), 0
    while at < len(text.rstrip()):
        part = _PART.match(text, at)
        if part is None or (part[1] is None and found):
            raise SchemaError(said)
        name = part[2].lower()
        unit = next((one for one in (name, f"{name}s", _SHORT.get(name)) if one in known), None)
        if unit is None:
            raise SchemaError(f"{said}; there is no unit {part[2]!r} among {', '.join(known)}")
        found[unit] = found.get(unit, 0) + sign * int(part[1] or 1)
        at = part.end()
    if not found:
        raise SchemaError(said)
    return found


def width_of(span: Any, what: str) -> dict[str, int]:
    """Return the width of equal spans, in ``months``, ``days`` or ``nanoseconds``; weeks begin on Monday (``origin``).

    Raises: SchemaError for months beside days and the like, and for a width that is not above 0.
    """
    units = units_of(span, what)
    months, days, nanoseconds = (
        sum(count * of_part[name] for name, count in units.items() if name in of_part)
        for of_part in (MONTHS, DAYS, _NANOSECONDS)
    )
    if months and (days or nanoseconds):
        raise SchemaError(f"{what}({span!r}): months have no fixed length beside days and shorter units")
    if days and nanoseconds:
        days, nanoseconds = 0, days * 86400 * 10**9 + nanoseconds
    if min(months, days, nanoseconds) < 0 or not months + days + nanoseconds < 1 << 62:
        raise SchemaError(f"{what}({span!r}): the span is above 0 and below 146 years of nanoseconds")
    if days and set(units) == {"weeks"}:
        # 1970-01-05 is a Monday
        return {"days": days, "origin": 4}
    found = {name: count for name, count in (("months", months), ("days", days), ("nanoseconds", nanoseconds)) if count}
    if not found:
        raise SchemaError(f"{what}({span!r}): the span is above 0")
    return found
