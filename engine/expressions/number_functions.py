"""Functions of numbers that Arrow has not as they are meant here; the others are rows of the table.

round       to the nearest decimal, halves away from zero, as DuckDB; digits may be negative. Of a float what counts is
            the value that it has: 2.675 is a little less and becomes 2.67, as in Python. Others take the digits that it
            is shown with (Spark: 2.68), or multiply first (Polars)
floor ceil trunc
            integers are themselves. Decimals have the digits behind the point that were asked for, and one more before
            it, which 99.5 needs
sign        -1, 0 or 1: of floats a float, and NaN of NaN
clip        a bound that is left out does not bound; NaN stays
cbrt        the C library's, exact where the root is whole

Held by: tests/expressions/test_number_functions.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import common, number, type_of_kind
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, cast_decimals
from engine.expressions.common_type import DECIMAL_DIGITS_MAX
from engine.expressions.decimal_widths import WIDE_DIGITS_MAX, rounded_type
from engine.expressions.number_kernels import bit_counts, cube_roots, rounded
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: digits beyond which no float changes
_DIGITS_MAX: Final = 300
_FACTORS: Final = {"degrees": 180.0 / math.pi, "radians": math.pi / 180.0}


def of_array(function: Callable[[pa.Array], Datum]) -> Callable[[Datum], Datum]:
    """Return a function of arrays as one of constants too."""

    def of_datum(datum: Datum) -> Datum:
        if not isinstance(datum, pa.Scalar):
            return function(datum)
        return function(pa.repeat(datum, 1) if datum.is_valid else pa.nulls(1, datum.type))[0]

    return of_datum


def bind_round(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind rounding to the option ``digits``: halves away from zero, or ``to_even``."""
    digits = max(-_DIGITS_MAX, min(_DIGITS_MAX, int(options.get("digits") or 0)))
    data_type = number(operands[0].type)
    mode = "half_to_even" if options.get("to_even") else "half_towards_infinity"

    def by_arrow(values: Datum) -> Datum:
        return pc.round(values, ndigits=digits, round_mode=mode)

    if pa.types.is_decimal(data_type):
        return _of_decimals(by_arrow, data_type, digits) if digits < data_type.scale else _of_itself(data_type)
    if options.get("to_even"):
        if digits and pa.types.is_floating(data_type):
            raise NoMatchError(
                "halves to the even digit are told exactly of whole numbers and decimals; cast to pa.decimal128(18, 4)"
                " or the like first"
            )
        return Binding(by_arrow, (data_type,), can_raise=not pa.types.is_floating(data_type))
    if not pa.types.is_floating(data_type):
        return Binding(by_arrow, (data_type,), can_raise=True)
    floats = of_array(lambda values: rounded(values, digits))
    if data_type == pa.float64():
        return Binding(floats, (data_type,))
    return Binding(lambda values: pc.cast(floats(pc.cast(values, pa.float64())), data_type, safe=False), (data_type,))


def rounding(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of ``floor``, ``ceil`` or ``trunc``."""
    kernel = getattr(pc, name)

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = number(operands[0].type)
        if pa.types.is_floating(data_type):
            return Binding(kernel, (data_type,))
        if pa.types.is_integer(data_type) or data_type.scale <= 0:
            return _of_itself(data_type)
        return _of_decimals(kernel, data_type, 0)

    return bind


def _of_decimals(kernel: Callable[[Datum], Datum], data_type: pa.DataType, digits: int) -> Binding:
    """Bind what rounds decimals to fewer digits behind the point, or to some before it.

    Arrow's own kernels turn a value without room for the digit that it carries over into 0, and forget to say so where
    another one follows.
    """
    made, scale = rounded_type(data_type, digits), data_type.scale
    if -digits > data_type.precision - scale:
        zero, null = scalar_of(0, made), scalar_of(None, made)
        return Binding(lambda values: pc.if_else(pc.is_valid(values), zero, null), (data_type,))
    is_wide = max(data_type.precision, scale - digits) >= DECIMAL_DIGITS_MAX
    roomy = pa.decimal256(WIDE_DIGITS_MAX, scale) if is_wide else pa.decimal128(DECIMAL_DIGITS_MAX, scale)
    return Binding(lambda values: cast_decimals(kernel(pc.cast(values, roomy)), made), (data_type,), can_raise=True)


def _of_itself(data_type: pa.DataType) -> Binding:
    return Binding(lambda values: values, (data_type,))


def bind_sign(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind -1, 0 or 1."""
    data_type = number(operands[0].type)
    if pa.types.is_floating(data_type):
        return Binding(pc.sign, (data_type,))
    return Binding(lambda values: pc.cast(pc.sign(values), pa.int64()), (data_type,))


def bind_clip(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the nearest value between two bounds; a bound that is null by its type is none."""
    for operand in operands:
        number(operand.type)
    data_type = number(common(operands))
    has_lower, has_upper = (not pa.types.is_null(bound.type) for bound in operands[1:])

    def clipped(values: Datum, lower: Datum, upper: Datum) -> Datum:
        if has_lower:
            values = pc.if_else(pc.less(values, lower), lower, values)
        return pc.if_else(pc.greater(values, upper), upper, values) if has_upper else values

    return Binding(clipped, (data_type,) * 3)


def bind_cbrt(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the cube root."""
    data_type = type_of_kind("float", operands[0].type) or operands[0].type
    if data_type == pa.float64():
        return Binding(of_array(cube_roots), (data_type,))
    roots = of_array(lambda values: pc.cast(cube_roots(pc.cast(values, pa.float64())), data_type, safe=False))
    return Binding(roots, (data_type,))


def bind_bit_count(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind how many of an integer's 64 bits are set."""
    return Binding(of_array(bit_counts), (type_of_kind("integer", operands[0].type),))


def times(unit: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of angles in another unit."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = type_of_kind("float", operands[0].type) or operands[0].type
        factor = pa.scalar(_FACTORS[unit], data_type)
        return Binding(lambda values: pc.multiply(values, factor), (data_type,))

    return bind
