"""Units of times: parts of a second in a timestamp, months and days of the calendar, elapsed time. Pure.

    MONTHS DAYS ELAPSED     words of intervals and differences with what each is worth
    PER_SECOND              s ms us ns: the units of Arrow's timestamps and durations

Held by: tests/expressions/test_calendar_functions.py
"""

from __future__ import annotations

from typing import Final

#: ticks in a second, by the unit of a timestamp
PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: months in a unit of the calendar
MONTHS: Final = {"years": 12, "quarters": 3, "months": 1}
#: days in a unit of the calendar
DAYS: Final = {"weeks": 7, "days": 1}
#: seconds in a unit of elapsed time, and units in a second
ELAPSED: Final = {
    "hours": (3600, 1),
    "minutes": (60, 1),
    "seconds": (1, 1),
    "milliseconds": (1, 10**3),
    "microseconds": (1, 10**6),
    "nanoseconds": (1, 10**9),
}
#: units that a difference of times can have
DIFF_UNITS: Final = (*MONTHS, *DAYS, *ELAPSED)
#: limit of months and days in an interval, so that no sum of days overflows
LIMIT: Final = 1 << 31
