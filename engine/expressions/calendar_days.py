"""Dates and times from their parts, the next day of a name, and business days.

A business day is a day of the week that is worked, and none of the holidays. Options: ``week``, seven digits from
Monday on, 1 where it is worked; ``holidays``, days since 1970 parted by commas; ``roll``, where a day that is none
goes before it is moved: ``raise``, ``forward`` or ``backward``.

Held by: tests/expressions/test_calendar_days.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from engine.expressions.argument_kinds import common, type_of_kind
from engine.expressions.arithmetic import floor_divide_integers
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.calendar_functions import check_moment, local_parts, moments_of
from engine.expressions.calendar_kernels import business_counts, business_marks, days_of_dates, moved_by_business_days
from engine.expressions.nested_functions import over_rows
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64: Final = pa.int64()
_DAY: Final = 86400
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ROLLS: Final = ("raise", "forward", "backward")
_MICROSECONDS: Final = 10**6


def _integers(operands: Sequence[Operand]) -> tuple[pa.DataType | None, ...]:
    return tuple(type_of_kind("integer", one.type) for one in operands)


def _all_valid(columns: Sequence[pa.Array]) -> pa.Array:
    found = pc.is_valid(columns[0])
    for one in columns[1:]:
        found = pc.and_(found, pc.is_valid(one))
    return found


def _days(parts: Sequence[pa.Array]) -> pa.Array:
    """Return the days of years, months and days; ArrowInvalid where there is no such date."""
    is_valid = _all_valid(parts)
    days, fits = days_of_dates(*(pc.fill_null(one, 1) for one in parts))
    wrong = pc.and_(pc.equal(fits, 0), is_valid)
    if pc.any(wrong).as_py():
        at = pc.index(wrong, True).as_py()
        raise pa.ArrowInvalid("there is no such date: {}-{}-{}".format(*(one[at].as_py() for one in parts)))
    return pc.if_else(is_valid, days, scalar_of(None, _INT64))


def bind_make_date(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the date of a year, a month and a day."""

    def dates(*parts: pa.Array) -> pa.Array:
        return pc.cast(_days(parts), pa.int32()).view(pa.date32())

    return Binding(over_rows(dates), _integers(operands), can_raise=True)


def _time_of_day(hour: pa.Array, minute: pa.Array, second: pa.Array) -> pa.Array:
    """Return microseconds of the day; ArrowInvalid where clocks have no such time."""
    for part, most, name in ((hour, 23, "hour"), (minute, 59, "minute"), (second, 59.9999995, "second")):
        wrong = pc.or_(pc.less(part, 0), pc.greater_equal(part, most) if name == "second" else pc.greater(part, most))
        wrong = pc.or_(wrong, pc.is_nan(part)) if name == "second" else wrong
        if pc.any(wrong).as_py():
            raise pa.ArrowInvalid(f"there is no {name} {part[pc.index(wrong, True).as_py()].as_py()}")
    micros = pc.cast(pc.round(pc.multiply(second, float(_MICROSECONDS))), _INT64)
    minutes = pc.add(pc.multiply(hour, 60), minute)
    return pc.add(pc.multiply(minutes, 60 * _MICROSECONDS), micros)


def bind_make_time(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the time of day of an hour, a minute and seconds, which may have a fraction."""

    def times(*parts: pa.Array) -> pa.Array:
        return _time_of_day(*parts).view(pa.time64("us"))

    type_of_kind("number", operands[2].type)
    return Binding(over_rows(times), (*_integers(operands[:2]), pa.float64()), can_raise=True)


def bind_make_timestamp(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the timestamp of a date's and a time's parts."""
    type_of_kind("number", operands[5].type)

    def moments(*parts: pa.Array) -> pa.Array:
        whole = pc.multiply_checked(_days(parts[:3]), _DAY * _MICROSECONDS)
        return pc.add_checked(whole, _time_of_day(*parts[3:])).view(pa.timestamp("us"))

    return Binding(over_rows(moments), (*_integers(operands[:5]), pa.float64()), can_raise=True)


def _checked(operand: Operand) -> pa.DataType | None:
    """Return the type that a moment is cast to, None: as it is."""
    if pa.types.is_null(operand.type):
        return pa.date32()
    check_moment(operand.type)
    return None


def bind_next_day(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the first day of the option ``weekday``, 0 on Monday, behind a moment's day."""
    wanted = int(options.get("weekday") or 0)

    def following(moments: pa.Array) -> pa.Array:
        days, _ = local_parts(moments)
        past = pc.subtract(days, wanted - 3 - 7 * 10**6)
        since = pc.subtract(past, pc.multiply(floor_divide_integers(past, scalar_of(7)), 7))
        return pc.cast(pc.add(days, pc.subtract(7, since)), pa.int32()).view(pa.date32())

    return Binding(of_array(following), (_checked(operands[0]),), can_raise=True)


def _week(options: Options) -> tuple[int, pa.Array]:
    """Return the worked days of a week as bits, from Monday on, and the holidays among them in order."""
    week, written = str(options.get("week") or "1111100"), str(options.get("holidays") or "")
    if len(week) != 7 or week.strip("01") or "1" not in week:
        raise NoMatchError(f"the week {week!r}: seven digits from Monday on, 1 where a day is worked, at least one")
    days = sorted({int(one) for one in written.split(",") if one})
    worked = [day for day in days if week[(day + 3) % 7] == "1"]
    return sum(1 << at for at, one in enumerate(week) if one == "1"), pa.array(worked, _INT64)


def bind_is_business_day(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind whether a day is a business day."""
    week, holidays = _week(options)

    def marks(moments: pa.Array) -> pa.Array:
        days, _ = local_parts(moments)
        found = pc.equal(business_marks(pc.fill_null(days, 0), week, holidays), 1)
        return pc.if_else(pc.is_valid(days), found, scalar_of(None, pa.bool_()))

    return Binding(of_array(marks), (_checked(operands[0]),))


def bind_add_business_days(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind a moment moved by business days; the time of day stays."""
    week, holidays = _week(options)
    roll = str(options.get("roll") or "raise")
    if roll not in ROLLS:
        raise NoMatchError(f"roll={roll!r}: choose one of {', '.join(ROLLS)}")

    def moved(moments: pa.Array, counts: pa.Array) -> pa.Array:
        days, rest = local_parts(moments)
        is_valid = _all_valid((days, counts))
        days = pc.if_else(is_valid, days, 0)
        if roll == "raise":
            wrong = pc.and_(is_valid, pc.equal(business_marks(days, week, holidays), 0))
            if pc.any(wrong).as_py():
                raise pa.ArrowInvalid("it is no business day; write roll='forward' or roll='backward'")
        if pc.any(pc.greater(pc.abs(pc.if_else(is_valid, counts, 0)), 2**31)).as_py():
            raise pa.ArrowInvalid("more than 2147483648 business days")
        found = moved_by_business_days(days, pc.if_else(is_valid, counts, 0), week, holidays, roll == "forward")
        return moments_of(pc.if_else(is_valid, found, scalar_of(None, _INT64)), rest, moments.type)

    return Binding(over_rows(moved), (_checked(operands[0]), type_of_kind("integer", operands[1].type)), can_raise=True)


def bind_business_day_count(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the number of business days from the second moment, which counts, to the first one, which does not."""
    week, holidays = _week(options)
    data_type: Any = common(operands)
    data_type = pa.date32() if pa.types.is_null(data_type) else data_type
    check_moment(data_type)

    def counted(end: pa.Array, begin: pa.Array) -> pa.Array:
        days = [local_parts(one)[0] for one in (begin, end)]
        is_valid = _all_valid(days)
        begins, ends = (pc.fill_null(one, 0) for one in days)
        found = business_counts(begins, ends, week, holidays)
        return pc.if_else(is_valid, found, scalar_of(None, _INT64))

    return Binding(over_rows(counted), (data_type, data_type))
