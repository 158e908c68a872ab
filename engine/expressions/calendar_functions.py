"""Moving times on the calendar and measuring between them: ``interval``, ``timedelta``, ``.dt.diff``.

interval(months=, days=, ...)    months and days are the calendar's: the same time of day, the month's last day where
                                 it has no such day (Jan 31 and a month is Feb 29), whatever clocks do in between
timedelta                        is elapsed time: a day is 24 hours; of a date a date, where it is whole days
diff                             whole units cut toward zero: years to days by local time, hours and shorter elapsed

    local time ──► day, time of day ──► day + months, then + days ──► local time ──► moment of the zone ──► + the rest

Held by: tests/expressions/test_calendar_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.expressions.argument_kinds import common
from engine.expressions.arithmetic import bind_add, bind_subtract, floor_divide_integers
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array
from engine.expressions.calendar_kernels import add_months, month_places
from engine.expressions.calendar_units import DAYS, DIFF_UNITS, ELAPSED, MONTHS, PER_SECOND
from engine.expressions.moments import zone_of
from engine.expressions.number_functions import of_array
from engine.expressions.time_zones import UnknownZoneError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import span_remedy

_INT64: Final = pa.int64()
_DAY: Final = 86400


def _number(value: int) -> pa.Scalar:
    return scalar_of(value, _INT64)


def _quotients(values: pa.Array, divisor: int) -> pa.Array:
    return values if divisor == 1 else floor_divide_integers(values, _number(divisor))


def check_moment(data_type: pa.DataType) -> None:
    """Raise NoMatchError where a type is neither a date nor a timestamp of a known zone."""
    if not (pa.types.is_date(data_type) or pa.types.is_timestamp(data_type)):
        remedy = span_remedy(data_type) or "cast to pa.date32() or pa.timestamp('us') first"
        raise NoMatchError(f"it works on dates and timestamps; {remedy}")
    try:
        zone_of(data_type)
    except UnknownZoneError as error:
        raise NoMatchError(str(error)) from error


def ticks_per_second(data_type: pa.DataType) -> int:
    """Return the number of units a second has; of dates in days that of their milliseconds."""
    return 10**3 if pa.types.is_date(data_type) else PER_SECOND[data_type.unit]


def local_parts(moments: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Return local days as int64, and the time of day in the unit of the type; None for dates."""
    if pa.types.is_date32(moments.type):
        return pc.cast(moments.view(pa.int32()), _INT64), None
    numbers, per_second = moments.view(_INT64), ticks_per_second(moments.type)
    zone = zone_of(moments.type)
    local = numbers if zone is None else pc.add_checked(numbers, zone.offsets(numbers, per_second))
    days = _quotients(local, _DAY * per_second)
    return days, pc.subtract(local, pc.multiply(days, _DAY * per_second))


def moments_of(days: pa.Array, rest: pa.Array | None, data_type: pa.DataType) -> pa.Array:
    """Return moments of local days and times; ArrowInvalid where the type has no such moment."""
    if rest is None:
        return pc.cast(days, pa.int32()).view(data_type)
    per_second = ticks_per_second(data_type)
    local = pc.add_checked(pc.multiply_checked(days, _DAY * per_second), rest)
    zone = zone_of(data_type)
    if zone is None:
        return local.view(data_type)
    seconds = _quotients(local, per_second)
    whole = pc.multiply(seconds, per_second)
    found = zone.instants(whole, per_second)
    found = pc.add_checked(found, pc.subtract(local, whole))
    return pc.if_else(pc.is_valid(local), found, scalar_of(None, _INT64)).view(data_type)


def _as_new_days(days: pa.Array, months: int) -> pa.Array:
    found = add_months(days, pa.repeat(_number(months), len(days)))
    return pc.if_else(pc.is_valid(days), found, scalar_of(None, _INT64)) if days.null_count else found


def bind_interval(kernel: Any, moved: Operand, by: Operand) -> Binding:
    """Bind a date or timestamp moved by an interval of the calendar, forward for ``add_checked``, else backward."""
    if pa.types.is_null(moved.type):
        moved = Operand(pa.timestamp("us"), moved.evaluate)
    check_moment(moved.type)
    if by.constant is None or not by.constant.is_valid:
        raise NoMatchError("an interval is a constant: interval(months=1)")
    sign = 1 if kernel is pc.add_checked else -1
    months, days, nanoseconds = (sign * part for part in by.constant.as_py())
    data_type = moved.type
    if pa.types.is_date(data_type) and nanoseconds:
        data_type = pa.timestamp("ns" if nanoseconds % 1000 else "us")
    elif nanoseconds % (10**9 // ticks_per_second(data_type)):
        data_type = pa.timestamp("ns" if nanoseconds % 1000 else "us", data_type.tz)
    ticks = 0 if pa.types.is_date(data_type) else nanoseconds // (10**9 // ticks_per_second(data_type))

    def moved_by(values: pa.Array) -> pa.Array:
        found = values
        if months or days:
            own_days, rest = local_parts(values)
            if months:
                own_days = _as_new_days(own_days, months)
            found = moments_of(pc.add(own_days, days), rest, values.type)
        return pc.add_checked(found.view(_INT64), ticks).view(data_type) if ticks else found

    operands = (data_type, None)
    return Binding(lambda values, _by: of_array(moved_by)(values), operands, can_raise=True)


def bind_whole_days(kernel: Any, days: int) -> Binding:
    """Bind a date moved by whole days, which is a date."""
    sign = 1 if kernel is pc.add_checked else -1

    def moved(values: pa.Array) -> pa.Array:
        if pa.types.is_date32(values.type):
            return pc.cast(pc.add(pc.cast(values.view(pa.int32()), _INT64), sign * days), pa.int32()).view(values.type)
        return pc.add_checked(values.view(_INT64), sign * days * _DAY * 1000).view(values.type)

    return Binding(lambda values, _days: of_array(moved)(values), (None, None), can_raise=True)


def summing(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of ``add`` or ``subtract``: on the calendar, or else as arithmetic."""
    kernel, otherwise = (pc.add_checked, bind_add) if name == "add" else (pc.subtract_checked, bind_subtract)

    def bind(operands: Sequence[Operand], options: Options) -> Binding:
        left, right = operands
        if pa.types.is_interval(left.type) and name == "add":
            moved = bind_interval(kernel, right, left)
            return Binding(lambda one, other: moved.kernel(other, one), moved.argument_types[::-1], moved.can_raise)
        if pa.types.is_interval(right.type):
            return bind_interval(kernel, left, right)
        if pa.types.is_date(left.type) and pa.types.is_duration(right.type) and right.constant is not None:
            by = pc.cast(right.constant, pa.duration("us"), safe=False).as_py()
            if by is not None and not by.seconds and not by.microseconds:
                return bind_whole_days(kernel, by.days)
        return otherwise(operands, options)

    return bind


def bind_diff(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the whole units of the option ``unit`` from the second moment to the first."""
    unit = str(options.get("unit"))
    if unit not in DIFF_UNITS:
        raise NoMatchError(f"diff in {unit!r}: choose one of {', '.join(DIFF_UNITS)}")
    data_type = common(operands)
    if pa.types.is_null(data_type):
        data_type = pa.timestamp("us")
    check_moment(data_type)

    def between(one: Datum, other: Datum) -> Datum:
        is_scalar = isinstance(one, pa.Scalar) and isinstance(other, pa.Scalar)
        count = len(next((each for each in (one, other) if not isinstance(each, pa.Scalar)), [None]))
        found = _whole_units(as_array(one, count), as_array(other, count), unit)
        return found[0] if is_scalar else found

    return Binding(between, (data_type, data_type), can_raise=True)


def _whole_units(one: pa.Array, other: pa.Array, unit: str) -> pa.Array:
    if unit in ELAPSED:
        seconds, per = ELAPSED[unit]
        ticks = ticks_per_second(one.type)
        if pa.types.is_date32(one.type):
            return pc.multiply_checked(pc.subtract(*map(_day_numbers, (one, other))), _DAY * per // seconds)
        elapsed = pc.subtract_checked(one.view(_INT64), other.view(_INT64))
        if per > ticks:
            return pc.multiply_checked(elapsed, per // ticks)
        return pc.divide(elapsed, seconds * ticks // per)
    (days, rest), (other_days, other_rest) = local_parts(one), local_parts(other)
    if unit in DAYS:
        whole = pc.subtract(days, other_days)
        behind, divisor = rest, DAYS[unit]
        other_behind = other_rest
    else:
        valid = pc.and_(pc.is_valid(days), pc.is_valid(other_days))
        (months, places), (other_months, other_places) = month_places(days), month_places(other_days)
        whole = pc.if_else(valid, pc.subtract(months, other_months), scalar_of(None, _INT64))
        day_ticks = _DAY * ticks_per_second(one.type)
        behind, other_behind = (
            places if of_day is None else pc.add(pc.multiply(places, day_ticks), of_day)
            for places, of_day in ((places, rest), (other_places, other_rest))
        )
        divisor = MONTHS[unit]
    if behind is not None:
        too_early = pc.and_(pc.greater(whole, 0), pc.less(behind, other_behind))
        too_late = pc.and_(pc.less(whole, 0), pc.greater(behind, other_behind))
        whole = pc.add(pc.subtract(whole, pc.cast(too_early, _INT64)), pc.cast(too_late, _INT64))
    return pc.divide(whole, divisor)


def _day_numbers(dates: pa.Array) -> pa.Array:
    return pc.cast(dates.view(pa.int32()), _INT64)
