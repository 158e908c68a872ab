"""Moments as local times: what parts of dates, truncation and casts of dates and timestamps are made from.

    local_times(values) -> LocalTimes       parts(kernel), of any year and any zone
    begin_of(values, unit)                  the first moment of the unit that a moment lies in

    UTC ──► + offset of the zone (time_zones.py) ──► local time without a zone ──► Arrow's kernels
    beyond LIMIT_YEARS ──► as many times 400 years nearer, in which the calendar repeats, weekdays too

Arrow's kernels know years up to 32767, and zones up to the last change of clocks in the system's files.

``begin_of`` an hour or a minute keeps the offset, so each of two hours of the same name has its own begin. A day or
longer begins with the first moment of its local time; where clocks skip that, when the gap ends.

Held by: tests/expressions/test_time_zones.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

from engine.expressions.arithmetic import floor_divide_integers
from engine.expressions.calendar_units import PER_SECOND
from engine.expressions.time_zones import zone_offsets
from engine.expressions.zone_offsets import CYCLE_SECONDS, ZoneOffsets, beyond
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: years around 1970 in which Arrow's kernels are used
LIMIT_YEARS = 30_000
CYCLE_YEARS = 400
_CYCLE_DAYS = CYCLE_SECONDS // 86400
_YEAR_SECONDS = 31_556_952
_INT64 = pa.int64()
INT64_MAX = 2**63 - 1
#: limit beyond which nanoseconds, a year and some days from the end of their range, go as microseconds
_NANOSECONDS_LIMIT = INT64_MAX - 400 * 86400 * 10**9
#: units without a time zone: offsets are whole seconds, so shorter units begin at the same time everywhere
_ZONELESS_UNITS = ("second", "millisecond", "microsecond")
_OFFSET_KEPT_UNITS = ("hour", "minute")


class LocalTimes(msgspec.Struct, frozen=True):
    """Local times without a zone, within the years that Arrow knows."""

    values: Any
    #: periods of 400 years that each was moved by; None: none was
    cycles: Any
    #: offsets that were added to UTC, in the unit of the values; None: no zone
    offsets: Any

    def part(self, kernel: Callable[..., Any]) -> Any:
        """Return a part of the local times, as int64."""
        found = kernel(self.values)
        if self.cycles is None or kernel is not pc.year:
            return found
        return pc.add(found, pc.multiply(self.cycles, CYCLE_YEARS))


def zone_of(data_type: pa.DataType) -> ZoneOffsets | None:
    """Return the zone of a type, None for UTC and none; raises UnknownZoneError."""
    zone = data_type.tz if pa.types.is_timestamp(data_type) else None
    return None if zone in (None, "UTC") else zone_offsets(zone)


def local_times(values: pa.Array) -> LocalTimes:
    """Return dates or timestamps as local times."""
    if pa.types.is_date32(values.type):
        return _local_dates(values)
    zone, unit = zone_of(values.type), _unit_of(values.type)
    numbers = values.view(_INT64)
    is_far = beyond(numbers, _limit(unit))
    if is_far and unit == "ns":
        return local_times(_as_microseconds(values))
    per_second = PER_SECOND[unit]
    offsets = None if zone is None else zone.offsets(numbers, per_second)
    cycles = None
    if is_far:
        cycles = floor_divide_integers(numbers, scalar_of(CYCLE_SECONDS * per_second, _INT64))
        numbers = pc.subtract(numbers, pc.multiply(cycles, CYCLE_SECONDS * per_second))
    local = numbers if offsets is None else pc.add(numbers, offsets)
    return LocalTimes(local.view(pa.timestamp(unit)), cycles, offsets)


def _local_dates(values: pa.Array) -> LocalTimes:
    days = values.view(pa.int32())
    if not beyond(days, LIMIT_YEARS * 365):
        return LocalTimes(values, None, None)
    wide = pc.cast(days, _INT64)
    cycles = floor_divide_integers(wide, scalar_of(_CYCLE_DAYS, _INT64))
    near = pc.subtract(wide, pc.multiply(cycles, _CYCLE_DAYS))
    return LocalTimes(pc.cast(near, pa.int32()).view(pa.date32()), cycles, None)


def _unit_of(data_type: pa.DataType) -> str:
    return "ms" if pa.types.is_date(data_type) else str(data_type.unit)


def _limit(unit: str) -> int:
    return _NANOSECONDS_LIMIT if unit == "ns" else LIMIT_YEARS * _YEAR_SECONDS * PER_SECOND[unit]


def _as_microseconds(values: pa.Array) -> pa.Array:
    number = floor_divide_integers(values.view(_INT64), scalar_of(1000, _INT64))
    return number.view(pa.timestamp("us", values.type.tz))


def begin_of(values: pa.Array, unit: str) -> pa.Array:
    """Return the first moment of the unit that each lies in; ArrowInvalid where the type has no such moment."""
    data_type = values.type
    if pa.types.is_date32(data_type):
        local = _local_dates(values)
        days = pc.cast(pc.floor_temporal(local.values, unit=unit).view(pa.int32()), _INT64)
        if local.cycles is not None:
            days = pc.add(days, pc.multiply(local.cycles, _CYCLE_DAYS))
        return pc.cast(days, pa.int32()).view(data_type)
    numbers = values.view(_INT64)
    own_unit = _unit_of(data_type)
    if own_unit == "ns" and beyond(numbers, _NANOSECONDS_LIMIT):
        return pc.cast(begin_of(_as_microseconds(values), unit), data_type)
    if unit in _ZONELESS_UNITS:
        return _begin_below_a_minute(numbers, own_unit, unit).view(data_type)
    per_second = PER_SECOND[own_unit]
    local = local_times(values)
    floors = pc.floor_temporal(local.values, unit=unit).view(_INT64)
    if local.cycles is not None:
        floors = pc.add_checked(floors, pc.multiply_checked(local.cycles, CYCLE_SECONDS * per_second))
    zone = zone_of(data_type)
    found = floors if zone is None else _moments_of(floors, local.offsets, unit, zone, per_second)
    if local.cycles is not None and pc.any(pc.greater(found, numbers)).as_py():
        raise pa.ArrowInvalid(f"the {unit} begins before the first moment of {data_type}")
    return found.view(data_type)


def _begin_below_a_minute(numbers: pa.Array, own_unit: str, unit: str) -> pa.Array:
    step = PER_SECOND[own_unit] // {"second": 1, "millisecond": 10**3, "microsecond": 10**6}[unit]
    if step <= 1:
        return numbers
    return pc.multiply_checked(floor_divide_integers(numbers, scalar_of(step, _INT64)), step)


def _moments_of(floors: pa.Array, offsets: pa.Array, unit: str, zone: ZoneOffsets, per_second: int) -> pa.Array:
    """Return the moments of begins in local time."""
    valid = pc.is_valid(floors)
    if unit in _OFFSET_KEPT_UNITS:
        found = pc.subtract(floors, offsets)
        same = pc.equal(zone.offsets(found, per_second), offsets)
        if not pc.all(same).as_py():
            found = pc.if_else(same, found, zone.instants(floors, per_second))
    else:
        found = zone.instants(floors, per_second)
    return found if floors.null_count == 0 else pc.if_else(valid, found, scalar_of(None, _INT64))
