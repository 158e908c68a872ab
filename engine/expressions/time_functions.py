"""Functions of dates and times: what ``col("x").dt`` offers.

Parts are int64; those of a timestamp with a zone are of its local time, by the tz database, in every year. A date's
hour, minute and second are 0. ``weekday`` is 0 on Monday, ``week`` is the ISO week. ``truncate`` goes down to the begin
of a unit and keeps the type; a week begins on Monday (moments.py says how hours that occur twice or never count).

Held by: tests/expressions/test_time_zones.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options
from engine.expressions.moments import begin_of, local_times, zone_of
from engine.expressions.time_zones import UnknownZoneError
from engine.records.arrow_functions import pc

TRUNCATE_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
_DATE_UNITS = ("year", "quarter", "month", "week", "day")


def _moment_type(operand: Operand) -> pa.DataType | None:
    if pa.types.is_null(operand.type):
        return pa.timestamp("us")
    if not (pa.types.is_timestamp(operand.type) or pa.types.is_date(operand.type)):
        raise NoMatchError("it works on dates and timestamps; cast to pa.date32() or pa.timestamp('us') first")
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
        return Binding(_part(kernel), (_moment_type(operands[0]),))

    return bind


def time_part(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a part of the day; times have it, too."""
    kernel = getattr(pc, name)

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = operands[0].type
        if pa.types.is_time(data_type):
            return Binding(kernel, (None,))
        wanted = pa.timestamp("ms") if pa.types.is_date(data_type) else _moment_type(operands[0])
        return Binding(_part(kernel), (wanted,))

    return bind


def bind_truncate(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the begin of the option ``unit``."""
    unit = options.get("unit")
    if unit not in TRUNCATE_UNITS:
        raise NoMatchError(f"truncate to {unit!r}: choose one of {', '.join(TRUNCATE_UNITS)}")
    wanted = _moment_type(operands[0])
    if pa.types.is_date(operands[0].type) and unit not in _DATE_UNITS:
        return Binding(lambda moment: moment, (None,))
    return Binding(_of_array(lambda moments: begin_of(moments, unit)), (wanted,), can_raise=True)
