"""``col("x").dt``: functions of dates and times. Parts are int64, in local time where there is a zone.

Held by: tests/expressions/test_time_zones.py
"""

from __future__ import annotations

from typing import Generic

from engine.api.string_expressions import ExprT
from engine.errors import SchemaError
from engine.expressions.time_functions import TRUNCATE_UNITS


class TimeExpressions(Generic[ExprT]):
    """Functions of a date or timestamp; null gives null."""

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
