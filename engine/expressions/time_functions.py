"""Functions of dates and times: what ``col("x").dt`` offers.

Parts are int64; those of a timestamp with a zone are of its local time, by the tz database, in every year. A date's
hour, minute and second are 0. ``weekday`` is 0 on Monday, ``week`` is the ISO week. ``truncate`` goes down to the begin
of a unit and keeps the type; a week begins on Monday (moments.py says how hours that occur twice or never count).

Held by: tests/expressions/test_time_zones.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from engine.expressions.arithmetic import floor_divide_integers
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options
from engine.expressions.calendar_functions import local_parts, moments_of, ticks_per_second
from engine.expressions.calendar_kernels import add_months, month_places
from engine.expressions.calendar_units import PER_SECOND
from engine.expressions.casting import cast_kernel
from engine.expressions.moments import begin_of, local_times, zone_of
from engine.expressions.time_buckets import WIDTHS, bind_buckets
from engine.expressions.time_zones import UnknownZoneError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import span_remedy

TRUNCATE_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DATE_UNITS = ("year", "quarter", "month", "week", "day")


def moment_type(operand: Operand) -> pa.DataType | None:
    """Return the type that an operand is cast to, None for dates and timestamps; NoMatchError for anything else."""
    if pa.types.is_null(operand.type):
        return pa.timestamp("us")
    if not (pa.types.is_timestamp(operand.type) or pa.types.is_date(operand.type)):
        remedy = span_remedy(operand.type) or "cast to pa.date32() or pa.timestamp('us') first"
        raise NoMatchError(f"it works on dates and timestamps; {remedy}")
    try:
        zone_of(operand.type)
    except UnknownZoneError as error:
        raise NoMatchError(str(error)) from error
    return None


def _of_array(function: Callable[[pa.Array], Datum]) -> Callable[[Datum], Datum]:
    """Return a function of arrays as one of constants too."""

    def of_datum(moment: Datum) -> Datum:
        return function(pa.repeat(moment, 1))[0] if isinstance(moment, pa.Scalar) else function(moment)

    return of_datum


def _part(kernel: Callable[..., Datum]) -> Callable[[Datum], Datum]:
    return _of_array(lambda moments: local_times(moments).part(kernel))


def date_part(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a part of the date, by Arrow's name of it."""
    kernel = getattr(pc, name)

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        return Binding(_part(kernel), (moment_type(operands[0]),))

    return bind


def time_part(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a part of the day; times have it, too."""
    kernel = getattr(pc, name)

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = operands[0].type
        if pa.types.is_time(data_type):
            return Binding(kernel, (None,))
        wanted = pa.timestamp("ms") if pa.types.is_date(data_type) else moment_type(operands[0])
        return Binding(_part(kernel), (wanted,))

    return bind


def bind_truncate(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the begin of the option ``unit``, or of spans as ``time_buckets`` has them."""
    unit = options.get("unit")
    if unit is None and any(name in options for name in WIDTHS):
        wanted = moment_type(operands[0])
        return bind_buckets(wanted or operands[0].type, wanted, options)
    if unit not in TRUNCATE_UNITS:
        raise NoMatchError(f"truncate to {unit!r}: choose one of {', '.join(TRUNCATE_UNITS)}")
    wanted = moment_type(operands[0])
    if pa.types.is_date(operands[0].type) and unit not in _DATE_UNITS:
        return Binding(lambda moment: moment, (None,))
    return Binding(_of_array(lambda moments: begin_of(moments, unit)), (wanted,), can_raise=True)


def month_end(end: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of the first or last day of the month, a date."""

    def day(moments: pa.Array) -> pa.Array:
        days, _ = local_parts(moments)
        _, places = month_places(days)
        first = pc.subtract(days, places)  # null stays
        if end == "last":
            following = add_months(first, pa.repeat(scalar_of(1), len(first)))
            first = pc.if_else(pc.is_valid(first), pc.subtract(following, 1), scalar_of(None, pa.int64()))
        return pc.cast(first, pa.int32()).view(pa.date32())

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        return Binding(_of_array(day), (moment_type(operands[0]),), can_raise=True)

    return bind


def names(part: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of the English name of the month, or of the day of the week."""
    known = pa.array(_MONTH_NAMES if part == "month" else _DAY_NAMES)
    numbers = _part(pc.month if part == "month" else pc.day_of_week)
    first = 1 if part == "month" else 0

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        kernel = _of_array(lambda moments: pc.take(known, pc.subtract(numbers(moments), first)))
        return Binding(kernel, (moment_type(operands[0]),))

    return bind


def bind_epoch(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the time since 1970 in the option ``unit``, rounded down; a time without a zone counts as UTC."""
    per = PER_SECOND.get(str(options.get("unit")))
    if per is None:
        raise NoMatchError(f"epoch in {options.get('unit')!r}: choose one of {', '.join(PER_SECOND)}")
    wanted = moment_type(operands[0])
    data_type = wanted or operands[0].type

    def since(moments: pa.Array) -> pa.Array:
        if pa.types.is_date32(data_type):
            return pc.multiply_checked(pc.cast(moments.view(pa.int32()), pa.int64()), 86400 * per)
        ticks, numbers = ticks_per_second(data_type), moments.view(pa.int64())
        if per >= ticks:
            return pc.multiply_checked(numbers, per // ticks)
        return floor_divide_integers(numbers, scalar_of(ticks // per))

    return Binding(_of_array(since), (wanted,), can_raise=True)


def casting_to(kind: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of the local date, or the time of day."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        wanted = moment_type(operands[0])
        data_type = wanted or operands[0].type
        if pa.types.is_date32(data_type):
            data_type = wanted = pa.date32() if kind == "date" else pa.timestamp("us")
        target = pa.date32() if kind == "date" else pa.time64("ns" if str(data_type).find("[ns") > 0 else "us")
        if data_type == target:
            return Binding(lambda moments: moments, (wanted,))
        return Binding(cast_kernel(data_type, target), (wanted,), can_raise=True)

    return bind


def _zoned(operands: Sequence[Operand], options: Options) -> tuple[pa.DataType, pa.DataType]:
    """Return the timestamp's type, and the same one of the option ``timezone``."""
    data_type = pa.timestamp("us") if pa.types.is_null(operands[0].type) else operands[0].type
    if not pa.types.is_timestamp(data_type):
        raise NoMatchError("time zones are those of timestamps; cast to pa.timestamp('us') first")
    target = pa.timestamp(data_type.unit, options.get("timezone"))
    try:
        zone_of(data_type), zone_of(target)
    except UnknownZoneError as error:
        raise NoMatchError(str(error)) from error
    return data_type, target


def bind_with_timezone(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the moment that clocks of the option ``timezone`` show the same local time at; None: no zone."""
    data_type, target = _zoned(operands, options)
    kernel = _of_array(lambda moments: moments_of(*local_parts(moments), target))
    return Binding(kernel, (data_type,), can_raise=True)


def bind_to_timezone(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the same moment in another zone."""
    data_type, target = _zoned(operands, options)
    if data_type.tz is None or target.tz is None:
        raise NoMatchError("a time without a zone is no point in time: set its zone with with_timezone(tz)")
    return Binding(lambda moments: pc.cast(moments, target), (data_type,))
