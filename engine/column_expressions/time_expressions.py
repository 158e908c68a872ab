"""``col("x").dt``: functions of dates and times. Parts are int64, in local time where there is a zone.

Held by: tests/expressions/test_time_zones.py
"""

from __future__ import annotations

from typing import Any, Generic

from engine.column_expressions.intervals import interval
from engine.column_expressions.other_names import ON_TIMES, HasOtherNames
from engine.column_expressions.string_expressions import ExprT
from engine.errors import SchemaError
from engine.expressions.calendar_functions import DIFF_UNITS
from engine.expressions.time_functions import TRUNCATE_UNITS


class TimeExpressions(HasOtherNames, Generic[ExprT]):
    """Functions of a date or timestamp; null gives null."""

    _kind = ".dt"
    _other_names = ON_TIMES

    def __init__(self, value: ExprT) -> None:
        self._value = value

    def year(self) -> ExprT:
        """Return the year.

        >>> values(col("x").dt.year(), x=[datetime.date(2024, 2, 29)])
        [2024]
        """
        return self._value.call("dt_year")

    def quarter(self) -> ExprT:
        """Return the quarter, 1 to 4.

        >>> values(col("x").dt.quarter(), x=[datetime.date(2024, 2, 29)])
        [1]
        """
        return self._value.call("dt_quarter")

    def month(self) -> ExprT:
        """Return the month, 1 to 12.

        >>> values(col("x").dt.month(), x=[datetime.date(2024, 2, 29)])
        [2]
        """
        return self._value.call("dt_month")

    def week(self) -> ExprT:
        """Return the ISO week, 1 to 53.

        >>> values(col("x").dt.week(), x=[datetime.date(2024, 12, 30)])
        [1]
        """
        return self._value.call("dt_week")

    def day(self) -> ExprT:
        """Return the day of the month, 1 to 31.

        >>> values(col("x").dt.day(), x=[datetime.date(2024, 2, 29)])
        [29]
        """
        return self._value.call("dt_day")

    def weekday(self) -> ExprT:
        """Return the day of the week, 0 on Monday to 6.

        >>> values(col("x").dt.weekday(), x=[datetime.date(2024, 2, 29)])
        [3]
        """
        return self._value.call("dt_weekday")

    def ordinal_day(self) -> ExprT:
        """Return the day of the year, 1 to 366.

        >>> values(col("x").dt.ordinal_day(), x=[datetime.date(2024, 2, 29)])
        [60]
        """
        return self._value.call("dt_ordinal_day")

    def hour(self) -> ExprT:
        """Return the hour, 0 to 23.

        >>> values(col("x").dt.hour(), x=[datetime.datetime(2024, 2, 29, 13, 5)])
        [13]
        """
        return self._value.call("dt_hour")

    def minute(self) -> ExprT:
        """Return the minute, 0 to 59.

        >>> values(col("x").dt.minute(), x=[datetime.datetime(2024, 2, 29, 13, 5)])
        [5]
        """
        return self._value.call("dt_minute")

    def second(self) -> ExprT:
        """Return the second, 0 to 59.

        >>> values(col("x").dt.second(), x=[datetime.datetime(2024, 2, 29, 13, 5, 7)])
        [7]
        """
        return self._value.call("dt_second")

    def millisecond(self) -> ExprT:
        """Return the millisecond within the second.

        >>> values(col("x").dt.millisecond(), x=[datetime.datetime(2024, 1, 1, 0, 0, 0, 123456)])
        [123]
        """
        return self._value.call("dt_millisecond")

    def microsecond(self) -> ExprT:
        """Return the microsecond within the millisecond.

        >>> values(col("x").dt.microsecond(), x=[datetime.datetime(2024, 1, 1, 0, 0, 0, 123456)])
        [456]
        """
        return self._value.call("dt_microsecond")

    def truncate(self, unit: str) -> ExprT:
        """Return the start of its year, quarter, month, week (Monday), day, hour, minute or second.

        >>> values(col("x").dt.truncate("month"), x=[datetime.date(2024, 2, 29)])
        [datetime.date(2024, 2, 1)]
        """
        if unit not in TRUNCATE_UNITS:
            raise SchemaError(f"dt.truncate({unit!r}): choose one of {', '.join(TRUNCATE_UNITS)}")
        return self._value.call("dt_truncate", unit=unit)

    def day_of_year(self) -> ExprT:
        """Return the day of the year, 1 to 366.

        >>> values(col("x").dt.day_of_year(), x=[datetime.date(2024, 2, 29)])
        [60]
        """
        return self._value.call("dt_day_of_year")

    def iso_year(self) -> ExprT:
        """Return the year that the ISO week belongs to.

        >>> values(col("x").dt.iso_year(), x=[datetime.date(2024, 12, 30)])
        [2025]
        """
        return self._value.call("dt_iso_year")

    def first_day(self) -> ExprT:
        """Return the first day of the month, a date.

        >>> values(col("x").dt.first_day(), x=[datetime.date(2024, 2, 29)])
        [datetime.date(2024, 2, 1)]
        """
        return self._value.call("dt_first_day")

    def last_day(self) -> ExprT:
        """Return the last day of the month, a date.

        >>> values(col("x").dt.last_day(), x=[datetime.date(2024, 2, 1)])
        [datetime.date(2024, 2, 29)]
        """
        return self._value.call("dt_last_day")

    def month_name(self) -> ExprT:
        """Return the English name of the month.

        >>> values(col("x").dt.month_name(), x=[datetime.date(2024, 2, 29)])
        ['February']
        """
        return self._value.call("dt_month_name")

    def day_name(self) -> ExprT:
        """Return the English name of the day of the week.

        >>> values(col("x").dt.day_name(), x=[datetime.date(2024, 2, 29)])
        ['Thursday']
        """
        return self._value.call("dt_day_name")

    def date(self) -> ExprT:
        """Return the local date.

        >>> values(col("x").dt.date(), x=[datetime.datetime(2024, 2, 29, 13, 5)])
        [datetime.date(2024, 2, 29)]
        """
        return self._value.call("dt_date")

    def time(self) -> ExprT:
        """Return the local time of day.

        >>> values(col("x").dt.time(), x=[datetime.datetime(2024, 2, 29, 13, 5)])
        [datetime.time(13, 5)]
        """
        return self._value.call("dt_time")

    def epoch(self, unit: str = "s") -> ExprT:
        """Return the time since 1970 in s, ms, us or ns, rounded down; without a zone it counts as UTC.

        >>> values(col("x").dt.epoch("ms"), x=[datetime.datetime(1970, 1, 2)])
        [86400000]
        """
        return self._value.call("dt_epoch", unit=unit)

    def strftime(self, format: str) -> ExprT:  # noqa: A002 - as in Python
        """Format by Python's directives, ``%Y-%m-%d %H:%M:%S.%f``, also a time of day; names are English.

        What is no directive is an error when the plan is made.

        >>> values(col("x").dt.strftime("%-d.%-m.%Y, %a"), x=[datetime.date(2024, 2, 9)])
        ['9.2.2024, Fri']
        """
        if not isinstance(format, str):
            raise SchemaError(f"dt.strftime({format!r}): the format is a string such as '%Y-%m-%d'")
        return self._value.call("dt_strftime", format=format)

    def with_timezone(self, timezone: str | None) -> ExprT:
        """Return the moment at which clocks of a zone show this local time; None takes the zone away.

        An hour that occurs twice is the first one; one that clocks skip is when they go on.

        >>> values(col("x").dt.with_timezone("Europe/Berlin").dt.epoch(), x=[datetime.datetime(1970, 1, 1, 1)])
        [0]
        """
        return self._value.call("dt_with_timezone", timezone=timezone)

    def to_timezone(self, timezone: str) -> ExprT:
        """Convert to another time zone; the timestamp must have one.

        >>> columns = {"x": [datetime.datetime(2024, 1, 1)]}
        >>> values(col("x").dt.with_timezone("UTC").dt.to_timezone("Asia/Tokyo").dt.hour(), **columns)
        [9]
        """
        return self._value.call("dt_to_timezone", timezone=timezone)

    def add(self, **units: int) -> ExprT:
        """Add units of the calendar, as ``interval`` has them.

        >>> values(col("x").dt.add(months=1), x=[datetime.date(2024, 1, 31)])
        [datetime.date(2024, 2, 29)]
        """
        return self._value.call("add", interval(**units))

    def diff(self, other: Any, unit: str) -> ExprT:
        """Return the whole units from another moment to it, cut toward zero.

        Units are years, quarters, months, weeks, days, hours, minutes, seconds, milliseconds and microseconds; "day"
        is days.

        >>> values(col("x").dt.diff(col("y"), "months"), x=[datetime.date(2024, 3, 1)], y=[datetime.date(2024, 1, 31)])
        [1]
        """
        if f"{unit}s" in DIFF_UNITS:
            unit = f"{unit}s"
        if unit not in DIFF_UNITS:
            raise SchemaError(f"dt.diff(unit={unit!r}): choose one of {', '.join(DIFF_UNITS)}")
        return self._value.call("dt_diff", other, unit=unit)
