"""Lowering of numbers, dates and times: arithmetic, widening, casts, parts of dates.

    integers, times    int64, each step checked
    decimals           unscaled; operands of + and - are brought to one scale by a product with a power of ten; results
                       that may have more than 38 digits are looked at
    floats             double; a float32 result is rounded after each step, which is what single precision gives
    casts              the value, and a step that requires that it fits; where it does not, Arrow has the word

Dates, times and timestamps become finer by a product; dates, parts of the day and begins of units come from timestamps
without zone, or in UTC, by floored quotients.

Held by: tests/expressions/test_program_builder.py
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from engine.expressions.binding import EXACT_INTEGER, EXACT_POWER, Operand
from engine.expressions.calendar_units import PER_SECOND
from engine.expressions.common_type import DECIMAL_DIGITS_MAX
from engine.expressions.decimal_widths import decimal_of, exact_product, exact_sum
from engine.expressions.program_builder import Lowering, NoStepsError, ProgramBuilder, Register, kind_of
from engine.records.plain_scalars import scalar_of

_INT64 = pa.int64()
_DAY_SECONDS = 86_400
_UNIT_SECONDS = {"day": _DAY_SECONDS, "hour": 3600, "minute": 60, "second": 1}
#: limit below which every integer is exact, by type: float64 or float32
_EXACT_INTEGERS = {pa.float64(): EXACT_INTEGER, pa.float32(): 2**24}
#: days around 1970 in which Arrow's calendar and this one are used
_DAYS_LIMIT = 10_000_000


def _integer(builder: ProgramBuilder, value: int) -> Register:
    """Return the register of a whole number."""
    if -(2**63) <= value < 2**63:
        return builder.constant(scalar_of(value, _INT64))
    if abs(value) >= 10**DECIMAL_DIGITS_MAX:
        raise NoStepsError
    return builder.constant(scalar_of(Decimal(value), pa.decimal128(DECIMAL_DIGITS_MAX, 0)))


def _times(builder: ProgramBuilder, values: Register, factor: int, kind: str, guard: Register | None) -> Register:
    return values if factor == 1 else builder.step("multiply", kind, (values, _integer(builder, factor)), guard)


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))


def _scaled(
    builder: ProgramBuilder, values: Register, source: pa.DataType, target: pa.DataType, guard: Register | None
) -> Register:
    """Return integers or decimals as decimals of no fewer digits after the point."""
    digits = target.scale - (source.scale if pa.types.is_decimal(source) else 0)
    if digits < 0:
        raise NoStepsError
    return _times(builder, values, 10**digits, "decimal", guard)


def _single(builder: ProgramBuilder, values: Register, data_type: pa.DataType) -> Register:
    return builder.step("single", "float", (values,)) if data_type == pa.float32() else values


def _arithmetic(name: str) -> Lowering:
    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        parts = operand.form.operands
        if not all(_is_number(part.type) for part in parts):
            raise NoStepsError
        left, right = (builder.lower(part, guard) for part in parts)
        if not pa.types.is_decimal(operand.type):
            kind = kind_of(operand.type)
            assert kind is not None
            return _single(builder, builder.step(name, kind, (left, right), guard), operand.type)
        scales = [part.type.scale if pa.types.is_decimal(part.type) else 0 for part in parts]
        if operand.type.scale != (sum(scales) if name == "multiply" else max(scales)):
            raise NoStepsError
        if name != "multiply":
            left = _scaled(builder, left, parts[0].type, operand.type, guard)
            right = _scaled(builder, right, parts[1].type, operand.type, guard)
        result = builder.step(name, "decimal", (left, right), guard)
        exact = (exact_product if name == "multiply" else exact_sum)(*map(decimal_of, parts))
        if exact[0] > operand.type.precision == DECIMAL_DIGITS_MAX:
            builder.step("fits", "bits", (result,), guard)
        return result

    return lower


def _division(name: str) -> Lowering:
    """Return the lowering of ``//`` and ``%``, of integers only."""

    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        if not all(pa.types.is_integer(part.type) for part in operand.form.operands):
            raise NoStepsError
        parts = [builder.lower(part, guard) for part in operand.form.operands]
        return builder.step(name, "integer", parts, guard)

    return lower


def _lower_divide(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    if operand.type != pa.float64() or not all(_is_number(part.type) for part in operand.form.operands):
        raise NoStepsError
    return builder.step("divide", "float", [builder.lower(part, guard) for part in operand.form.operands])


def _lower_negate(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    values = builder.lower(operand.form.operands[0], guard)
    if values.kind == "float":
        return builder.step("multiply", "float", (values, builder.constant(scalar_of(-1.0, pa.float64()))))
    kind = "decimal" if pa.types.is_decimal(operand.type) else "integer"
    return builder.step("subtract", kind, (_integer(builder, 0), values), guard)


def _ticks_per_day(data_type: pa.DataType) -> int:
    """Return the number of units of a type in a day."""
    if pa.types.is_date32(data_type):
        return 1
    unit = "ms" if pa.types.is_date64(data_type) else data_type.unit
    return _DAY_SECONDS * PER_SECOND[unit]


def _finer(
    builder: ProgramBuilder, values: Register, source: pa.DataType, target: pa.DataType, guard: Register | None
) -> Register:
    """Return dates, times, timestamps or durations in a unit that is no coarser."""
    factor, rest = divmod(_ticks_per_day(target), _ticks_per_day(source))
    if rest or not factor:
        raise NoStepsError
    return _times(builder, values, factor, "integer", guard)


def _decimal_as_float(
    builder: ProgramBuilder, values: Register, source: pa.DataType, guard: Register | None
) -> Register:
    """Return decimals as float64 (``decimals_as_floats``): whole numbers divided by a power of ten."""
    if not 0 <= source.scale <= EXACT_POWER:
        raise NoStepsError
    limit = _EXACT_INTEGERS[pa.float64()]
    small = builder.step("narrow", "integer", (_require_between(builder, values, -limit, limit, guard),))
    whole = builder.step("to_float", "float", (small,))
    power = builder.constant(scalar_of(float(10**source.scale), pa.float64()))
    return whole if source.scale == 0 else builder.step("divide", "float", (whole, power))


def _lower_widen(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    (part,) = operand.form.operands
    source, target = part.type, operand.type
    values = builder.lower(part, guard)
    if pa.types.is_decimal(target) and (pa.types.is_integer(source) or pa.types.is_decimal(source)):
        values = _scaled(builder, values, source, target, guard)
        if pa.types.is_decimal(source) and target.precision - target.scale < source.precision - source.scale:
            builder.step("fits", "bits", (values,), guard)
        return values
    if pa.types.is_temporal(source) and pa.types.is_temporal(target):
        return _finer(builder, values, source, target, guard)
    if pa.types.is_integer(source) and pa.types.is_integer(target):
        return values
    if values.kind == kind_of(target) and (values.kind == "text" or target == pa.float64()):
        return values
    if pa.types.is_integer(source) and target == pa.float64():
        return builder.step("to_float", "float", (values,))
    if pa.types.is_decimal(source) and target == pa.float64():
        return _decimal_as_float(builder, values, source, guard)
    raise NoStepsError


def _require_between(
    builder: ProgramBuilder, values: Register, least: int, most: int, guard: Register | None
) -> Register:
    """Return values all of which must lie in a range."""
    above = builder.step("less_equal", "bits", (_integer(builder, least), values))
    below = builder.step("less_equal", "bits", (values, _integer(builder, most)))
    builder.step("require", "bits", (builder.step("and", "bits", (above, below)),), guard)
    return values


def _require_fit(
    builder: ProgramBuilder, values: Register, source: pa.DataType, target: pa.DataType, guard: Register | None
) -> Register:
    """Return integers, all of which must fit into an integer type."""
    bits = target.bit_width
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if _is_signed(target) else (0, 2**bits - 1)
    if pa.types.is_integer(source) and source.bit_width <= bits and _is_signed(source) == _is_signed(target):
        return values
    return _require_between(builder, values, least, most, guard)


def _is_signed(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(data_type))


def _exact_quotient(builder: ProgramBuilder, values: Register, divisor: int, guard: Register | None) -> Register:
    """Return values divided by what must divide all of them."""
    if divisor == 1:
        return values
    quotients = builder.step("floor_divide", "decimal", (values, _integer(builder, divisor)), guard)
    product = _times(builder, quotients, divisor, "decimal", guard)
    builder.step("require", "bits", (builder.step("equal", "bits", (product, values)),), guard)
    return quotients


def _cast_to_integer(
    builder: ProgramBuilder, values: Register, source: pa.DataType, target: pa.DataType, guard: Register | None
) -> Register:
    if pa.types.is_boolean(source):
        return builder.step("spread", "integer", (values,))
    if pa.types.is_decimal(source) and source.scale >= 0:
        whole = _exact_quotient(builder, values, 10**source.scale, guard)
        return _require_fit(builder, builder.step("narrow", "integer", (whole,)), source, target, guard)
    if values.kind == "float":
        whole = builder.step("to_integer", "integer", (values,))
        back = builder.step("to_float", "float", (whole,))
        builder.step("require", "bits", (builder.step("equal", "bits", (back, values)),), guard)
        return _require_fit(builder, whole, source, target, guard)
    if pa.types.is_integer(source):
        return _require_fit(builder, values, source, target, guard)
    raise NoStepsError


def _cast_to_float(
    builder: ProgramBuilder, values: Register, source: pa.DataType, target: pa.DataType, guard: Register | None
) -> Register:
    if values.kind == "float":
        return values if source == pa.float32() else _single(builder, values, target)
    if pa.types.is_decimal(source) and target == pa.float64():
        return _decimal_as_float(builder, values, source, guard)
    if pa.types.is_integer(source):
        limit = _EXACT_INTEGERS[target]
        return builder.step("to_float", "float", (_require_between(builder, values, -limit, limit, guard),))
    raise NoStepsError


def _cast_to_decimal(
    builder: ProgramBuilder, values: Register, source: pa.DataType, target: pa.DataType, guard: Register | None
) -> Register:
    if not (pa.types.is_integer(source) or pa.types.is_decimal(source)):
        raise NoStepsError
    scale = source.scale if pa.types.is_decimal(source) else 0
    if target.scale >= scale:
        values = _scaled(builder, values, source, target, guard)
    else:
        values = _exact_quotient(builder, values, 10 ** (scale - target.scale), guard)
    if pa.types.is_decimal(source) and target.precision - target.scale >= source.precision - scale:
        return values
    most = 10 ** min(target.precision, DECIMAL_DIGITS_MAX) - 1
    return _require_between(builder, values, -most, most, guard)


def _days(builder: ProgramBuilder, values: Register, data_type: pa.DataType, guard: Register | None) -> Register:
    """Return the days since 1970 of dates, and of timestamps without zone."""
    if pa.types.is_date32(data_type):
        return values
    if pa.types.is_date64(data_type) or (pa.types.is_timestamp(data_type) and data_type.tz in (None, "UTC")):
        return builder.step("floor_divide", "integer", (values, _integer(builder, _ticks_per_day(data_type))), guard)
    raise NoStepsError


def _cast_of_time(
    builder: ProgramBuilder, values: Register, source: pa.DataType, target: pa.DataType, guard: Register | None
) -> Register:
    if pa.types.is_date32(target):
        days = _days(builder, values, source, guard)
        return _require_between(builder, days, -_DAYS_LIMIT, _DAYS_LIMIT, guard)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and source.tz == target.tz:
        return _finer(builder, values, source, target, guard)
    if pa.types.is_date(source) and pa.types.is_timestamp(target) and target.tz is None:
        return _finer(builder, values, source, target, guard)
    raise NoStepsError


def _lower_cast(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    (part,) = operand.form.operands
    target = operand.type
    values = builder.lower(part, guard)
    if pa.types.is_temporal(part.type) and pa.types.is_temporal(target):
        return _cast_of_time(builder, values, part.type, target, guard)
    if pa.types.is_integer(target):
        return _cast_to_integer(builder, values, part.type, target, guard)
    if pa.types.is_floating(target):
        return _cast_to_float(builder, values, part.type, target, guard)
    if pa.types.is_decimal(target):
        return _cast_to_decimal(builder, values, part.type, target, guard)
    raise NoStepsError


def _date_part(name: str) -> Lowering:
    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        (moment,) = operand.form.operands
        values = builder.lower(moment, guard)
        return builder.step(name, "integer", (_days(builder, values, moment.type, guard),), guard)

    return lower


def _lower_quarter(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    months = _date_part("month")(builder, operand, guard)
    shifted = builder.step("add", "integer", (months, _integer(builder, 2)), guard)
    return builder.step("floor_divide", "integer", (shifted, _integer(builder, 3)), guard)


def _time_part(unit_seconds: int, count: int) -> Lowering:
    """Return the lowering of a part of the day: so many seconds each, so many of them in the next part."""

    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        (moment,) = operand.form.operands
        ticks = _ticks_of_moment(moment.type) * unit_seconds
        values = builder.lower(moment, guard)
        units = builder.step("floor_divide", "integer", (values, _integer(builder, ticks)), guard)
        return builder.step("modulo", "integer", (units, _integer(builder, count)), guard)

    return lower


def _ticks_of_moment(data_type: pa.DataType) -> int:
    """Return the units in a second of a timestamp whose local time needs no zone."""
    if not pa.types.is_timestamp(data_type) or data_type.tz not in (None, "UTC"):
        raise NoStepsError
    return PER_SECOND[data_type.unit]


def _lower_truncate(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    (moment,) = operand.form.operands
    seconds = _UNIT_SECONDS.get(str(operand.form.options.get("unit")))
    if seconds is None:
        raise NoStepsError
    ticks = _integer(builder, _ticks_of_moment(moment.type) * seconds)
    values = builder.lower(moment, guard)
    return builder.step(
        "multiply", "integer", (builder.step("floor_divide", "integer", (values, ticks), guard), ticks), guard
    )


NUMBER_LOWERINGS: dict[str, Lowering] = {
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "floor_divide": _division("floor_divide"),
    "modulo": _division("modulo"),
    "divide": _lower_divide,
    "negate": _lower_negate,
    "widen": _lower_widen,
    "cast": _lower_cast,
    "dt_year": _date_part("year"),
    "dt_month": _date_part("month"),
    "dt_day": _date_part("day"),
    "dt_quarter": _lower_quarter,
    "dt_hour": _time_part(3600, 24),
    "dt_minute": _time_part(60, 60),
    "dt_second": _time_part(1, 60),
    "dt_truncate": _lower_truncate,
}
