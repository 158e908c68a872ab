"""Casts that Arrow lacks: integers by their value, dates and times of every year and zone.

decimal to float        the nearest one
integer to decimal      the value decides whether it fits, not the type
timestamp, date         to dates, times of day and text: of the local time by the tz database (moments.py);
                        text of a year beyond Arrow's is an error
text to integer         with a plus, too, as Arrow reads it for floats and decimals
text to date, timestamp with fewer digits, too: 2024-2-9 1:02:03, a year of less than four
text to time            9:05, 09:05:00.25: with as many digits after the point as the unit has
all else                Arrow's safe cast: what does not fit raises ArrowInvalid

``try_cast`` gives null in its place: a batch with a value that does not fit is halved until that is alone. What is
known not to fit is left out before: texts by their characters, floats that are no integers, times beyond the range of a
finer unit.

Held by: tests/expressions/test_time_zones.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from engine.expressions.argument_kinds import is_text
from engine.expressions.arithmetic import floor_divide_integers
from engine.expressions.binding import (
    UNFIT,
    Binding,
    Datum,
    NoMatchError,
    Operand,
    Options,
    cast_decimals,
    decimals_as_floats,
)
from engine.expressions.calendar_units import PER_SECOND
from engine.expressions.moments import CYCLE_YEARS, INT64_MAX, LIMIT_YEARS, local_times, zone_of
from engine.expressions.time_zones import UnknownZoneError
from engine.expressions.zone_offsets import CYCLE_SECONDS
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import no_values, scalar_of

#: precision of the widest decimal, decimal256
_DECIMAL_DIGITS_MAX = 76
_INT64 = pa.int64()
_CYCLE_DAYS = CYCLE_SECONDS // 86400
_DAY_MILLISECONDS = 86_400_000
_PLUS = ((r"^\+(\d+)$", r"\1"),)
#: texts of dates and times in which a zero is missing: before year, month, day, hour, minute, second
_FEW_DIGITS = (
    *((rf"^(\d{{{count}}}-)", r"0\1") for count in (1, 2, 3)),
    (r"^(\d{4}-)(\d-)", r"\10\2"),
    (r"^(\d{4}-\d\d-)(\d(?:[T ]|$))", r"\10\2"),
    (r"^(\d{4}-\d\d-\d\d[T ])(\d:)", r"\10\2"),
    (r"^(\d{4}-\d\d-\d\d[T ]\d\d:)(\d(?:\D|$))", r"\10\2"),
    (r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:)(\d(?:\D|$))", r"\10\2"),
)
#: digits behind the point of a second
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
#: texts that are times of day
_CLOCK = r"^([01]?\d|2[0-3]):[0-5]?\d(:[0-5]?\d(\.\d{1,DIGITS})?)?$"


def cast_kernel(source: pa.DataType, target: pa.DataType) -> Callable[[Datum], Datum]:
    """Return the cast from one type to another; UnknownZoneError where it needs a time zone that does not exist."""
    if pa.types.is_integer(source) and pa.types.is_decimal(target):
        # Arrow refuses a decimal that could not hold every integer of the type. Through the widest decimal, only the
        # values decide.
        wide = pa.decimal256(_DECIMAL_DIGITS_MAX, target.scale)
        return lambda datum: cast_decimals(pc.cast(datum, wide), target)
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        return lambda datum: cast_decimals(datum, target)
    if pa.types.is_decimal(source) and pa.types.is_floating(target):
        return lambda datum: decimals_as_floats(datum, target)
    if pa.types.is_timestamp(source) or pa.types.is_date(source):
        zone_of(source)
        if pa.types.is_date(target) and pa.types.is_timestamp(source):
            return _of_array(_to_date, target)
        if pa.types.is_time(target):
            return _of_array(_to_time, target)
        if pa.types.is_string(target) or pa.types.is_large_string(target):
            return _of_array(_to_text, target)
    if is_text(source) and pa.types.is_integer(target):
        return _or_rewritten(_PLUS, target)
    if is_text(source) and pa.types.is_time(target):
        return _of_array(_text_to_time, target)
    if is_text(source) and (pa.types.is_date(target) or pa.types.is_timestamp(target)):
        return _or_rewritten(_FEW_DIGITS, target)
    return lambda datum: pc.cast(datum, target)


def check_castable(source: pa.DataType, target: pa.DataType) -> None:
    """Raise an error of Arrow where no value of a type is one of the other."""
    if not (is_text(source) and pa.types.is_time(target)):
        pc.cast(no_values(source), target)


def _text_to_time(texts: pa.Array, target: pa.DataType) -> pa.Array:
    digits = _DIGITS[target.unit]
    pattern = _CLOCK.replace("DIGITS", str(digits)) if digits else _CLOCK.replace(r"(\.\d{1,DIGITS})?", "")
    wrong = pc.invert(pc.match_substring_regex(texts, pattern=pattern))
    if pc.any(wrong).as_py():
        first = texts.filter(wrong)[0].as_py()
        raise pa.ArrowInvalid(f"Failed to parse string: {first!r} as a scalar of type {target}")
    moments = pc.binary_join_element_wise("1970-01-01", texts.cast(pa.string()), " ")
    return pc.cast(_or_rewritten(_FEW_DIGITS, pa.timestamp(target.unit))(moments), target)


def _or_rewritten(patterns: Sequence[tuple[str, str]], target: pa.DataType) -> Callable[[Datum], Datum]:
    """Return a cast of texts that rewrites them where Arrow refuses one as it is."""

    def cast(texts: Datum) -> Datum:
        try:
            return pc.cast(texts, target)
        except pa.ArrowInvalid:
            for pattern, replacement in patterns:
                texts = pc.replace_substring_regex(texts, pattern=pattern, replacement=replacement)
            return pc.cast(texts, target)

    return cast


def _of_array(function: Callable[[pa.Array, pa.DataType], pa.Array], target: pa.DataType) -> Callable[[Datum], Datum]:
    def of_datum(datum: Datum) -> Datum:
        return function(pa.repeat(datum, 1), target)[0] if isinstance(datum, pa.Scalar) else function(datum, target)

    return of_datum


def _to_date(values: pa.Array, target: pa.DataType) -> pa.Array:
    local = local_times(values)
    days = pc.cast(local.values, pa.date32())
    if local.cycles is not None:
        near = pc.cast(days.view(pa.int32()), _INT64)
        far = pc.add(near, pc.multiply(local.cycles, _CYCLE_DAYS))
        if pa.types.is_date64(target):
            return pc.multiply_checked(far, _DAY_MILLISECONDS).view(target)
        days = pc.cast(far, pa.int32()).view(pa.date32())
    return pc.cast(days, target)


def _to_time(values: pa.Array, target: pa.DataType) -> pa.Array:
    return pc.cast(local_times(values).values, target)


def _to_text(values: pa.Array, target: pa.DataType) -> pa.Array:
    local = local_times(values)
    if local.cycles is not None and pc.any(pc.not_equal(local.cycles, 0)).as_py():
        years = local.part(pc.year)
        if pc.any(pc.greater(pc.abs(years), LIMIT_YEARS + CYCLE_YEARS)).as_py():
            raise pa.ArrowInvalid(f"a {values.type} so far from 1970 has no text: years go up to {LIMIT_YEARS}")
    if pa.types.is_date(values.type) or values.type.tz is None:
        return pc.cast(values, target)
    text = pc.cast(local.values, target)
    if local.offsets is None:
        suffix = scalar_of("Z", target)
    else:
        suffix = _offset_text(local.offsets, _per_minute(local.values.type.unit), target)
    return pc.binary_join_element_wise(text, suffix, scalar_of("", target))


def _per_minute(unit: str) -> int:
    return 60 * PER_SECOND[unit]


def _offset_text(offsets: pa.Array, per_minute: int, target: pa.DataType) -> pa.Array:
    """Return offsets as ``+0200``."""
    minutes = floor_divide_integers(pc.abs(offsets), scalar_of(per_minute, _INT64))
    hours = floor_divide_integers(minutes, scalar_of(60, _INT64))
    digits = pc.add(pc.multiply(hours, 100), pc.subtract(minutes, pc.multiply(hours, 60)))
    padded = pc.utf8_lpad(pc.cast(digits, target), width=4, padding="0")
    sign = pc.if_else(pc.less(offsets, 0), scalar_of("-", target), scalar_of("+", target))
    return pc.binary_join_element_wise(sign, padded, scalar_of("", target))


#: other texts are no value of the type, so they need not be tried
_POSSIBLE = (
    (pa.types.is_integer, "^[-+0-9a-fA-FxX]+$"),
    (pa.types.is_floating, "^[-+0-9.eEinfatyINFATY]+$"),
    (pa.types.is_decimal, "^[-+0-9.eE]+$"),
    (lambda target: pa.types.is_timestamp(target) and target.tz, "[T ][0-9:.]+(Z|[-+][0-9:]+)$"),
    (pa.types.is_timestamp, "^[-0-9]+([T ][0-9:.]+)?$"),
    (pa.types.is_temporal, "^[-+0-9:.TZ ]+$"),
)


def bind_try_cast(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the value as the type of the second argument, null where it does not fit."""
    source, target = operands[0].type, operands[1].type
    if source == target:
        return Binding(lambda values, _type: values, (None, None))
    try:
        check_castable(source, target)
        kernel = cast_kernel(source, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnknownZoneError) as error:
        what = f"{source} cannot be cast to {target}" if isinstance(error, pa.ArrowException) else str(error)
        raise NoMatchError(what) from None
    possible = tried_by(kernel, source, target)

    def of_datum(values: Datum, _type: Datum) -> Datum:
        return possible(pa.repeat(values, 1))[0] if isinstance(values, pa.Scalar) else possible(values)

    return Binding(of_datum, (None, None))


def tried_by(
    kernel: Callable[[Datum], Datum], source: pa.DataType, target: pa.DataType
) -> Callable[[pa.Array], pa.Array]:
    """Return a cast by a kernel that gives null for values that the kernel refuses."""
    pattern = next((pattern for is_of, pattern in _POSSIBLE if is_text(source) and is_of(target)), None)

    def tried(values: pa.Array) -> pa.Array:
        try:
            return kernel(values)
        except UNFIT:
            if len(values) == 1:
                return pa.nulls(1, target)
        half = len(values) // 2
        return pa.concat_arrays([tried(values.slice(0, half)), tried(values.slice(half))])

    def possible(values: pa.Array) -> pa.Array:
        try:
            return kernel(values)
        except UNFIT:
            fits = _within(values, target) if pattern is None else pc.match_substring_regex(values, pattern=pattern)
            return tried(values if fits is None else pc.if_else(fits, values, scalar_of(None, source)))

    return possible


def _within(values: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Return whether values are whole and within the range of the target; None where only the cast knows."""
    source = values.type
    if pa.types.is_floating(source) and pa.types.is_integer(target):
        numbers = pc.cast(values, pa.float64())
        is_signed = pa.types.is_signed_integer(target)
        bound = 2.0 ** (target.bit_width - is_signed)
        within = pc.and_(pc.greater_equal(numbers, -bound if is_signed else 0.0), pc.less(numbers, bound))
        return pc.and_(within, pc.equal(numbers, pc.trunc(numbers)))
    if not pa.types.is_temporal(source) or not (pa.types.is_timestamp(target) or pa.types.is_duration(target)):
        return None
    per_second = PER_SECOND[target.unit]
    if pa.types.is_date32(source):
        counts, factor = pc.cast(values.view(pa.int32()), _INT64), 86400 * per_second
    elif pa.types.is_date64(source):
        counts, factor = values.view(_INT64), per_second // 1000
    else:
        counts, factor = values.view(_INT64), per_second // PER_SECOND[source.unit]
    if factor <= 1:
        return None
    limit = INT64_MAX // factor
    return pc.and_(pc.greater_equal(counts, -limit), pc.less_equal(counts, limit))
