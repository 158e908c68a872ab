"""Begins of spans of several units: ``truncate("15 minutes")``, ``truncate("2 weeks")``.

One option says the width of the spans, ``origin`` where one of them begins, in the same unit:

    months=3          months from 1970-01, as numbers of 12 a year from the year 0; spans begin with first days
    days=14           local days from 1970-01-01
    nanoseconds=...   the time that clocks show, from 1970-01-01T00:00; a span keeps the offset of its zone where it can

    moment ──► local day, time of day ──► floor ──► local time ──► moment of the zone

Held by: tests/expressions/test_time_buckets.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.expressions.arithmetic import floor_divide_integers
from engine.expressions.binding import Binding, NoMatchError, Options
from engine.expressions.calendar_functions import local_parts, moments_of, ticks_per_second
from engine.expressions.calendar_kernels import add_months, month_places
from engine.expressions.moments import zone_of
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64: Final = pa.int64()
_DAY: Final = 86400
_DAY_NANOSECONDS: Final = _DAY * 10**9
_MONTHS_ORIGIN: Final = 1970 * 12
WIDTHS: Final = ("months", "days", "nanoseconds")


def bind_buckets(data_type: pa.DataType, wanted: pa.DataType | None, options: Options) -> Binding:
    """Bind the begin of the span that a moment lies in."""
    (unit,) = (name for name in WIDTHS if options.get(name) is not None)
    width, origin = int(options[unit] or 0), int(options.get("origin") or (_MONTHS_ORIGIN if unit == "months" else 0))
    if width <= 0:
        raise NoMatchError(f"spans of {width} {unit}: the number is above 0")
    if unit == "months":
        return Binding(of_array(lambda moments: _of_months(moments, width, origin)), (wanted,), can_raise=True)
    if unit == "days":
        return Binding(of_array(lambda moments: _of_days(moments, width, origin)), (wanted,), can_raise=True)
    if pa.types.is_date(data_type):
        if _DAY_NANOSECONDS % width or origin % width:
            raise NoMatchError("spans that do not begin with days have no date: cast to pa.timestamp('us') first")
        return Binding(lambda moments: moments, (wanted,))
    tick = 10**9 // ticks_per_second(data_type)
    if tick % width == 0 and origin % tick == 0:
        return Binding(lambda moments: moments, (wanted,))
    if width % tick or origin % tick:
        raise NoMatchError(f"spans of {width} nanoseconds do not fit {data_type}: cast to pa.timestamp('ns') first")
    kernel = of_array(lambda moments: _of_ticks(moments, width // tick, origin // tick))
    return Binding(kernel, (wanted,), can_raise=True)


def _floors(numbers: pa.Array, width: int, origin: int) -> pa.Array:
    """Return the greatest of origin + k * width that is not above each number."""
    past = pc.subtract_checked(numbers, scalar_of(origin % width, _INT64))
    return pc.add(
        pc.multiply_checked(floor_divide_integers(past, scalar_of(width, _INT64)), width),
        scalar_of(origin % width, _INT64),
    )


def _begins(days: pa.Array, rest: pa.Array | None, like: pa.Array) -> pa.Array:
    """Return the first moments of local days, null where others are."""
    days = pc.if_else(pc.is_valid(like), days, scalar_of(None, _INT64)) if like.null_count else days
    return moments_of(days, None if rest is None else pc.multiply(rest, 0), like.type)


def _of_months(moments: pa.Array, width: int, origin: int) -> pa.Array:
    days, rest = local_parts(moments)
    months, places = month_places(days)
    moved = pc.subtract(_floors(months, width, origin), months)
    return _begins(add_months(pc.subtract(_plain(days), places), moved), rest, moments)


def _plain(days: pa.Array) -> pa.Array:
    """Return days without nulls, which kernels want."""
    return pc.fill_null(days, 0) if days.null_count else days


def _of_days(moments: pa.Array, width: int, origin: int) -> pa.Array:
    days, rest = local_parts(moments)
    return _begins(_floors(days, width, origin), rest, moments)


def _of_ticks(moments: pa.Array, width: int, origin: int) -> pa.Array:
    numbers, zone = moments.view(_INT64), zone_of(moments.type)
    if zone is None:
        return _floors(numbers, width, origin).view(moments.type)
    per_second = ticks_per_second(moments.type)
    offsets = zone.offsets(numbers, per_second)
    floors = _floors(pc.add_checked(numbers, offsets), width, origin)
    found = pc.subtract(floors, offsets)
    same = pc.equal(zone.offsets(found, per_second), offsets)
    if pc.all(same).as_py() is False:
        seconds = pc.multiply(floor_divide_integers(floors, scalar_of(per_second, _INT64)), per_second)
        other = pc.add(zone.instants(seconds, per_second), pc.subtract(floors, seconds))
        found = pc.if_else(same, found, other)
    return pc.if_else(pc.is_valid(numbers), found, scalar_of(None, _INT64)).view(moments.type)
