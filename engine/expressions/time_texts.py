"""Dates and timestamps as texts by a format, and from them: ``.dt.strftime("%-d.%-m.")``, ``.str.to_date("%d.%m.%Y")``.

    format ── time_directives ──► steps ──► MomentWriter    local times ──► texts
                                       └──► MomentReader    texts ──► microseconds since 1970, and which are right

What is read must be true: Feb 31 is no date, nor is a Monday that is a Tuesday. With ``%z`` it is a moment of UTC.
Written are local times; those without a zone have ``%z`` and ``%Z`` empty, as in Python. A time of day has the
directives of a time only.

Held by: tests/expressions/test_time_texts.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import text
from engine.expressions.arithmetic import floor_divide_integers
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.calendar_functions import ticks_per_second
from engine.expressions.calendar_units import PER_SECOND
from engine.expressions.moment_reader import MomentReader
from engine.expressions.moment_writer import MomentWriter
from engine.expressions.moments import zone_of
from engine.expressions.number_functions import of_array
from engine.expressions.time_directives import reading_steps, writing_steps
from engine.expressions.time_functions import moment_type
from engine.expressions.time_zones import zone_names, zone_offsets
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64: Final = pa.int64()
_DAY: Final = 86400
_SHOWN_MAX: Final = 80
#: parts of a time of day
_OF_TIMES: Final = ("literal", "hour", "half_hour", "half", "minute", "second", "fraction")


def _format_of(options: Options) -> str:
    written = str(options.get("format"))
    if any("\ud800" <= letter <= "\udfff" for letter in written):
        raise NoMatchError(f"the format {written!r} is no Unicode text")
    return written


def bind_strftime(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the text of a moment by the option ``format``."""
    written = _format_of(options)
    if not written:
        raise NoMatchError("the format of strftime is empty")
    steps = writing_steps(written)
    if "%" not in written:
        raise NoMatchError(f"the format {written!r} has no directive, such as %Y: yyyy-MM-dd is written %Y-%m-%d")
    if pa.types.is_time(operands[0].type):
        if any(step.part not in _OF_TIMES for step in steps):
            raise NoMatchError(f"the format {written!r} has more than the hour, minute and second of a time of day")
        wanted = None
    else:
        wanted = moment_type(operands[0])
    data_type = wanted or operands[0].type
    zone = data_type.tz if pa.types.is_timestamp(data_type) else None
    if zone is None:
        steps = [step for step in steps if step.part not in ("offset", "colon_offset", "zone")]
    writer = MomentWriter(steps)
    names = zone_names(zone) if any(step.part == "zone" for step in steps) else None

    def texts(moments: pa.Array) -> pa.Array:
        local, ticks_per_day, offsets = _local_ticks(moments)
        if names is None:
            return writer.write(local, ticks_per_day, offsets, None)
        if offsets is None:
            return writer.write(local, ticks_per_day, None, pa.repeat(names[0], len(local)))
        places = zone_offsets(zone).places(moments.view(_INT64), ticks_per_second(data_type))
        return writer.write(local, ticks_per_day, offsets, pc.take(names, places))

    return Binding(of_array(texts), (wanted,), can_raise=True)


def _local_ticks(moments: pa.Array) -> tuple[pa.Array, int, pa.Array | None]:
    """Return local times as int64, how many of their ticks a day has, and by how many they are ahead of UTC."""
    data_type = moments.type
    if pa.types.is_date32(data_type):
        return pc.cast(moments.view(pa.int32()), _INT64), 1, None
    if pa.types.is_time(data_type):
        is_narrow = data_type.bit_width == 32
        numbers = pc.cast(moments.view(pa.int32()), _INT64) if is_narrow else moments.view(_INT64)
        return numbers, _DAY * PER_SECOND[data_type.unit], None
    numbers, per_second = moments.view(_INT64), ticks_per_second(data_type)
    zone = zone_of(data_type)
    offsets = None if zone is None else zone.offsets(numbers, per_second)
    return numbers if offsets is None else pc.add_checked(numbers, offsets), _DAY * per_second, offsets


def parsing(kind: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of the ``date`` or the ``timestamp`` that a text is; options ``format`` and ``strict``."""

    def bind(operands: Sequence[Operand], options: Options) -> Binding:
        written, is_strict = _format_of(options), options.get("strict") is not False
        steps = reading_steps(written)
        has_offset = any(step.part == "offset" for step in steps)
        if has_offset and kind == "date":
            raise NoMatchError(f"the format {written!r} is one of a date with %z: use to_timestamp()")
        target = pa.timestamp("us", "UTC" if has_offset else None)
        data_type = text(operands[0].type)
        reader = MomentReader(steps)

        def parsed(texts: pa.Array) -> pa.Array:
            micros, is_right = reader.read(texts)
            if is_strict and micros.null_count > texts.null_count:
                raise pa.ArrowInvalid(_first_wrong(texts, is_right, written))
            if kind == "timestamp":
                return micros.view(target)
            days = floor_divide_integers(micros, scalar_of(_DAY * 10**6, _INT64))
            return pc.cast(days, pa.int32()).view(pa.date32())

        return Binding(of_array(parsed), (data_type,), can_raise=True)

    return bind


def _first_wrong(texts: pa.Array, is_right: pa.Array, written: str) -> str:
    wrong = pc.and_(pc.is_valid(texts), pc.invert(is_right))
    shown = pc.filter(texts, wrong)[0].as_py()
    return f"{shown[:_SHOWN_MAX]!r} is not of the format {written!r}"
