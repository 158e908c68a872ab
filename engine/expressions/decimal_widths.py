"""Widths of decimals: results have at most 38 digits and are exact, or an error names the value.

    of an integer          int8 to int32: decimal(10, 0); int64: (19, 0); uint64: (20, 0); a constant: its own digits
    a + b, a - b           before the point one more than the wider, behind it as the longer      kept within 38
    a * b                  precisions and one more, scales together                               kept within 38
    a % b                  before the point as b, behind it as the longer                         kept within 38
    a // b                 before the point one more than a, and as b behind it; none behind it
    round(a, d)            before the point one more, behind it d, or 0
    floor(a), ceil(a)      before the point one more, none behind it
    a / b                  float64

    decimal(18, 2) * int64  ──► (38, 2)         (18, 4) * (18, 4) ──► (37, 8)         (38, 2) * (38, 2) ──► (38, 4)

Kept within 38: the scale stays, as in DuckDB, and a value that needs more digits is an error. A product keeps 18 digits
before the point: (38, 18) * (38, 18) is (38, 20), and a value with more than 20 digits behind the point is an error.
Spark has (38, 6) there and rounds, DuckDB (38, 36), in which 100 is an error.

What already has more than 38 digits (decimal256) is reckoned with up to 76 in the same way; a result that needs no
more than 38 has 38.

Source: Spark's DecimalPrecision (Hive's rules), DuckDB's decimal functions.

Held by: tests/integration/test_decimal_widths.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.expressions.binding import Operand
from engine.expressions.common_type import DECIMAL_DIGITS_MAX, integer_digits

#: largest precision of decimal256
WIDE_DIGITS_MAX: Final = 76
#: digits before the point that products keep at the expense of those behind it
_KEPT_WHOLE: Final = 18


def decimal_of(operand: Operand) -> pa.DataType:
    """Return the decimal type that an operand is in arithmetic: an integer constant has just its digits."""
    if pa.types.is_decimal(operand.type):
        return operand.type
    constant = operand.constant
    if constant is not None and constant.is_valid:
        return pa.decimal128(len(str(abs(constant.as_py()))), 0)
    return pa.decimal128(integer_digits(operand.type), 0)


def digits_max(*types: pa.DataType) -> int:
    """Return the number of digits a result over some types has at most."""
    return WIDE_DIGITS_MAX if any(each.precision > DECIMAL_DIGITS_MAX for each in types) else DECIMAL_DIGITS_MAX


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return the decimal type of so many digits, at most 76."""
    return (pa.decimal256 if precision > DECIMAL_DIGITS_MAX else pa.decimal128)(precision, scale)


def _within(precision: int, scale: int, most: int) -> pa.DataType:
    return decimal_type(min(precision, most), scale)


def exact_sum(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Return precision and scale that hold every sum and difference."""
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale


def exact_product(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Return precision and scale that hold every product."""
    return left.precision + right.precision + 1, left.scale + right.scale


def sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of sums and differences."""
    return _within(*exact_sum(left, right), digits_max(left, right))


def product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of products."""
    precision, scale = exact_product(left, right)
    most = digits_max(left, right)
    return _within(precision, scale if precision <= most else min(scale, most - _KEPT_WHOLE), most)


def remainder_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of floored remainders, which are nearer to 0 than the divisor."""
    scale = max(left.scale, right.scale)
    return _within(right.precision - right.scale + scale, scale, digits_max(left, right))


def quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of floored quotients, which are whole numbers."""
    return _within(max(1, left.precision - left.scale + 1) + right.scale, 0, digits_max(left, right))


def rounded_type(data_type: pa.DataType, digits: int) -> pa.DataType:
    """Return the type of values rounded to fewer digits behind the point, or to some before it."""
    scale = max(0, digits)
    return _within(max(1, data_type.precision - data_type.scale + 1) + scale, scale, digits_max(data_type))
