"""Sums, products, whole quotients and remainders of decimals: exact, in as many digits as ``decimal_widths`` gives.

    both sides as decimals ──► Arrow's kernel                     where it holds every result
                          └──► the same in 256 bits ──► 38 digits  where it does not: a value that has more is an error
                                                                   which shows it

An integer beside a decimal is a decimal; division is float64 (arithmetic.py).

Held by: tests/expressions/test_decimal_arithmetic.py
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from engine.expressions.binding import Binding, Datum, as_array, cast_decimals, unfit_decimal
from engine.expressions.decimal_kernels import quotients, remainders
from engine.expressions.decimal_widths import (
    WIDE_DIGITS_MAX,
    decimal_type,
    exact_product,
    exact_sum,
    product_type,
    quotient_type,
    remainder_type,
    sum_type,
)
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_EXACT: Final = decimal.Context(prec=2 * WIDE_DIGITS_MAX + 2)
_OF_PYTHON: Final = {
    pc.add_checked: _EXACT.add,
    pc.subtract_checked: _EXACT.subtract,
    pc.multiply_checked: _EXACT.multiply,
}


def bind_decimals(kernel: Callable[..., Datum], left: pa.DataType, right: pa.DataType) -> Binding:
    """Bind Arrow's checked kernel that adds, subtracts or multiplies decimals."""
    types = left, right
    is_product = kernel is pc.multiply_checked
    (precision, _), result = (
        (exact_product(*types), product_type(*types)) if is_product else (exact_sum(*types), sum_type(*types))
    )
    if result.precision == precision:
        width = pa.decimal256 if pa.types.is_decimal256(result) else pa.decimal128
        own = tuple(width(each.precision, each.scale) for each in types)
        return Binding(kernel, own, can_raise=True)
    return Binding(lambda one, other: _within(kernel, result, one, other), _own_types(*types), can_raise=True)


def _within(kernel: Callable[..., Datum], result: pa.DataType, left: Datum, right: Datum) -> Datum:
    """Return results that may need more digits than their type has; a row that Arrow has no room for is Python's."""
    try:
        return pc.cast(_exact(kernel, left, right, result.scale), result)
    except pa.ArrowInvalid:
        count = max([len(each) for each in (left, right) if not isinstance(each, pa.Scalar)], default=0)
    if count <= 1:
        pair = [(each if isinstance(each, pa.Scalar) else each[0]).as_py() for each in (left, right)]
        found = scalar_of(None, result) if None in pair else _as_scalar(_OF_PYTHON[kernel](*pair), result)
        return as_array(found, 1) if count else found
    one, other, half = as_array(left, count), as_array(right, count), count // 2
    parts = ((0, half), (half,))
    return pa.concat_arrays([_within(kernel, result, one.slice(*part), other.slice(*part)) for part in parts])


def _as_scalar(value: decimal.Decimal, result: pa.DataType) -> pa.Scalar:
    # Arrow makes 0 of some values that have far more digits behind the point.
    found = _EXACT.quantize(value, decimal.Decimal((0, (1,), -result.scale)))
    if found != value or abs(found) >= decimal.Decimal((0, (1,), result.precision - result.scale)):
        raise unfit_decimal(value, result)
    return pa.scalar(found, result)


def _exact(kernel: Callable[..., Datum], left: Datum, right: Datum, scale: int) -> Datum:
    """Return results in 256 bits; ArrowInvalid where that is not enough."""
    if kernel is not pc.multiply_checked:
        wide = pa.decimal256(WIDE_DIGITS_MAX - 1, scale)
        return kernel(pc.cast(left, wide), pc.cast(right, wide))
    digits = [each.type.precision for each in (left, right)]
    if sum(digits) >= WIDE_DIGITS_MAX:  # those that there are
        digits = [_most_digits(each) for each in (left, right)]
    wide_types = [pa.decimal256(most, each.type.scale) for each, most in zip((left, right), digits, strict=True)]
    return kernel(*(pc.cast(each, wide) for each, wide in zip((left, right), wide_types, strict=True)))


def _most_digits(values: Datum) -> int:
    """Return the number of digits the largest of some values has."""
    bounds = [values] if isinstance(values, pa.Scalar) else pc.min_max(values).values()
    return max(len(each.as_py().as_tuple().digits) if each.is_valid else 1 for each in bounds)


def bind_remainder(left: pa.DataType, right: pa.DataType) -> Binding:
    """Bind the floored remainder of decimals."""
    return _bind_division(remainders, remainder_type(left, right), left, right)


def bind_quotient(left: pa.DataType, right: pa.DataType) -> Binding:
    """Bind the floored quotient of decimals."""
    return _bind_division(quotients, quotient_type(left, right), left, right)


def _bind_division(
    divided: Callable[[pa.Array, pa.Array], pa.Array], result: pa.DataType, left: pa.DataType, right: pa.DataType
) -> Binding:
    aligned = pa.decimal256(WIDE_DIGITS_MAX, max(left.scale, right.scale))

    def divide(one: Datum, other: Datum) -> Datum:
        is_scalar = isinstance(one, pa.Scalar) and isinstance(other, pa.Scalar)
        count = 1 if is_scalar else max(len(each) for each in (one, other) if not isinstance(each, pa.Scalar))
        found = divided(*(pc.cast(as_array(each, count), aligned) for each in (one, other)))
        fitting = cast_decimals(found, result)
        return fitting[0] if is_scalar else fitting

    return Binding(divide, _own_types(left, right), can_raise=True)


def _own_types(*types: pa.DataType) -> tuple[pa.DataType, ...]:
    """Return types of so many digits in 128 bits, or in 256 where these are more than 38."""
    return tuple(decimal_type(each.precision, each.scale) for each in types)
