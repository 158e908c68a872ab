"""``col("x").dt``: functions of dates and times. Parts are int64, in local time where there is a zone.

Held by: tests/expressions/test_time_zones.py
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic

from engine.column_expressions.intervals import interval, units_of, width_of
from engine.column_expressions.other_names import ON_TIMES, HasOtherNames
from engine.column_expressions.string_expressions import ExprT
from engine.errors import SchemaError
from engine.expressions.calendar_days import ROLLS, WEEKDAYS
from engine.expressions.calendar_units import DIFF_UNITS
from engine.expressions.time_functions import TRUNCATE_UNITS

if TYPE_CHECKING:
    from engine.choices import BusinessDayRoll, DiffUnit, TimeUnit

_WEEK: Final = (True, True, True, True, True, False, False)
_EPOCH: Final = datetime.datetime(1970, 1, 1)


def _business(what: str, holidays: Iterable[Any], week: Sequence[bool]) -> dict[str, Any]:
    """Return the options of business days. Raises: SchemaError."""
    days = set()
    for one in [holidays] if isinstance(holidays, str | datetime.date) else holidays:
        try:
            day = datetime.date.fromisoformat(one) if isinstance(one, str) else one
            days.add((datetime.date(day.year, day.month, day.day) - _EPOCH.date()).days)
        except (AttributeError, ValueError):
            raise SchemaError(f"{what}: the holiday {one!r} is no date; write datetime.date(2024, 12, 25)") from None
    marks = ["1" if one else "0" for one in week]
    if len(marks) != 7 or "1" not in marks:
        raise SchemaError(f"{what}(week={week!r}): seven bools from Monday on, at least one of them true")
    return {"week": "".join(marks), "holidays": ",".join(map(str, sorted(days)))}


def origin_in(origin: Any, width: dict[str, int], what: str) -> int:
    """Return a moment without a zone in the unit of a width of spans. Raises: SchemaError."""
    if not isinstance(origin, datetime.date) or getattr(origin, "tzinfo", None) is not None:
        raise SchemaError(f"{what}(origin={origin!r}): a date, or a datetime without a zone")
    moment = datetime.datetime.combine(origin, getattr(origin, "time", datetime.time)())
    if "months" in width:
        if moment != datetime.datetime(origin.year, origin.month, 1):
            raise SchemaError(f"{what}(origin={origin!r}): spans of months begin with the first day of a month")
        return origin.year * 12 + origin.month - 1
    if "days" in width:
        if moment != datetime.datetime.combine(origin, datetime.time()):
            raise SchemaError(f"{what}(origin={origin!r}): spans of days begin at midnight; write '24 hours'")
        return (moment - _EPOCH).days
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1) * 1000


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

    def truncate(self, every: Any, origin: Any = None) -> ExprT:
        """Return the start of its year, quarter, month, week (Monday), day, hour, minute or second, or of "15 minutes".

        Spans of several units, also "1h30m" or a ``timedelta``, are counted from 1970-01-01 of the clock, weeks from
        1970-01-05, a Monday; or from ``origin``, a date or a ``datetime`` without a zone.

        >>> values(col("x").dt.truncate("month"), x=[datetime.date(2024, 2, 29)])
        [datetime.date(2024, 2, 1)]
        >>> values(col("x").dt.truncate("15 minutes"), x=[datetime.datetime(2024, 2, 29, 13, 44)])
        [datetime.datetime(2024, 2, 29, 13, 30)]
        """
        if every in TRUNCATE_UNITS and origin is None:
            return self._value.call("dt_truncate", unit=every)
        width = width_of(every, "dt.truncate")
        if origin is not None:
            width["origin"] = origin_in(origin, width, "dt.truncate")
        return self._value.call("dt_truncate", **width)

    def offset_by(self, span: Any) -> ExprT:
        """Add a span of the calendar that a text says: ``"1 month"``, ``"-2d"``, ``"1y6mo"``.

        >>> values(col("x").dt.offset_by("1 month"), x=[datetime.date(2024, 1, 31)])
        [datetime.date(2024, 2, 29)]
        """
        return self.add(**units_of(span, "dt.offset_by"))

    def next_day(self, weekday: str) -> ExprT:
        """Return the next day of that name behind its day, a date: "Monday", or "mon".

        >>> values(col("x").dt.next_day("thursday"), x=[datetime.date(2024, 2, 29)])
        [datetime.date(2024, 3, 7)]
        """
        found = [
            at for at, name in enumerate(WEEKDAYS) if len(str(weekday)) > 1 and name.startswith(str(weekday).lower())
        ]
        if len(found) != 1:
            raise SchemaError(f"dt.next_day({weekday!r}): choose one of {', '.join(WEEKDAYS)}")
        return self._value.call("dt_next_day", weekday=found[0])

    def is_business_day(self, holidays: Iterable[Any] = (), week: Sequence[bool] = _WEEK) -> ExprT:
        """Whether it is a day of the week that is worked, and none of the holidays.

        week: whether each day is worked, from Monday on.

        >>> values(col("x").dt.is_business_day(), x=[datetime.date(2024, 3, 1), datetime.date(2024, 3, 2)])
        [True, False]
        """
        return self._value.call("dt_is_business_day", **_business("dt.is_business_day", holidays, week))

    def add_business_days(
        self, count: Any, holidays: Iterable[Any] = (), week: Sequence[bool] = _WEEK, roll: BusinessDayRoll = "raise"
    ) -> ExprT:
        """Move it by business days, back where the count is negative; the time of day stays.

        roll: what is done first with a day that is no business day: "raise" fails the job, "forward" and "backward" go
        to the next one that is. holidays, week: as in ``is_business_day``.

        >>> values(col("x").dt.add_business_days(1, holidays=["2024-03-04"]), x=[datetime.date(2024, 3, 1)])
        [datetime.date(2024, 3, 5)]
        """
        if roll not in ROLLS:
            raise SchemaError(f"dt.add_business_days(roll={roll!r}): choose one of {', '.join(ROLLS)}")
        options = _business("dt.add_business_days", holidays, week)
        return self._value.call("dt_add_business_days", count, roll=roll, **options)

    def business_day_count(self, begin: Any, holidays: Iterable[Any] = (), week: Sequence[bool] = _WEEK) -> ExprT:
        """Return the business days from another moment, which counts, to this one, which does not; negative backward.

        >>> begin = datetime.date(2024, 3, 1)
        >>> values(col("x").dt.business_day_count(begin), x=[datetime.date(2024, 3, 5)])
        [2]
        """
        options = _business("dt.business_day_count", holidays, week)
        return self._value.call("dt_business_day_count", begin, **options)

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

    def epoch(self, unit: TimeUnit = "s") -> ExprT:
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

    def diff(self, other: Any, unit: DiffUnit) -> ExprT:
        """Return the whole units from another moment to it, cut toward zero.

        Units are years, quarters, months, weeks, days, hours, minutes, seconds, milliseconds and microseconds; "day"
        is days.

        >>> values(col("x").dt.diff(col("y"), "months"), x=[datetime.date(2024, 3, 1)], y=[datetime.date(2024, 1, 31)])
        [1]
        """
        word = f"{unit}s" if f"{unit}s" in DIFF_UNITS else unit
        if word not in DIFF_UNITS:
            raise SchemaError(f"dt.diff(unit={unit!r}): choose one of {', '.join(DIFF_UNITS)}")
        return self._value.call("dt_diff", other, unit=word)
