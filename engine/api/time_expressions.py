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
        """Return the year."""
        return self._value.call("dt_year")

    def quarter(self) -> ExprT:
        """Return the quarter, 1 to 4."""
        return self._value.call("dt_quarter")

    def month(self) -> ExprT:
        """Return the month, 1 to 12."""
        return self._value.call("dt_month")

    def week(self) -> ExprT:
        """Return the ISO week, 1 to 53."""
        return self._value.call("dt_week")

    def day(self) -> ExprT:
        """Return the day of the month, 1 to 31."""
        return self._value.call("dt_day")

    def weekday(self) -> ExprT:
        """Return the day of the week, 0 on Monday to 6."""
        return self._value.call("dt_weekday")

    def ordinal_day(self) -> ExprT:
        """Return the day of the year, 1 to 366."""
        return self._value.call("dt_ordinal_day")

    def hour(self) -> ExprT:
        """Return the hour, 0 to 23."""
        return self._value.call("dt_hour")

    def minute(self) -> ExprT:
        """Return the minute, 0 to 59."""
        return self._value.call("dt_minute")

    def second(self) -> ExprT:
        """Return the second, 0 to 59."""
        return self._value.call("dt_second")

    def millisecond(self) -> ExprT:
        """Return the millisecond within the second."""
        return self._value.call("dt_millisecond")

    def microsecond(self) -> ExprT:
        """Return the microsecond within the millisecond."""
        return self._value.call("dt_microsecond")

    def truncate(self, unit: str) -> ExprT:
        """Return the start of its year, quarter, month, week (Monday), day, hour, minute or second."""
        if unit not in TRUNCATE_UNITS:
            raise SchemaError(f"dt.truncate({unit!r}): choose one of {', '.join(TRUNCATE_UNITS)}")
        return self._value.call("dt_truncate", unit=unit)
