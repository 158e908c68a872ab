"""The common type of two or more: what join, union, is_in, comparisons and when/then widen to.

    integers            the wider; signed and unsigned: the smallest signed that holds both; int64 with uint64: decimal
    integer, float      double                    decimal, float      double
    decimals            enough digits before and after the point: 76 where values are compared, 38 in a result
    string, binary      the large form when one is large; different fixed sizes: binary
    date, timestamp     timestamp                 timestamps, times, durations: the finer unit
    null                the other

Everything else has a common type only with itself. A timestamp with a zone and one without have none: which moment
the second one means is not known.

Held by: tests/expressions/test_compile.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final

import pyarrow as pa

#: largest precision that Polars, DuckDB and Spark have
DECIMAL_DIGITS_MAX: Final = 38
_UNITS = ("s", "ms", "us", "ns")
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_DIGITS_OF_INTEGERS: Final = {pa.int64(): 19, pa.uint64(): 20}
_DIGITS_OF_SMALL_INTEGERS: Final = 10


def _is_string(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or is_fixed_bytes(data_type)


def is_fixed_bytes(data_type: pa.DataType) -> bool:
    """Return whether the type is fixed-size binary (decimals, which Arrow derives from it, are not)."""
    return bool(pa.types.is_fixed_size_binary(data_type) and not pa.types.is_decimal(data_type))


def _finer(left: str, right: str) -> str:
    return max(left, right, key=_UNITS.index)


def _common_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_signed_integer(left) == pa.types.is_signed_integer(right):
        return left if left.bit_width >= right.bit_width else right
    signed, unsigned = (left, right) if pa.types.is_signed_integer(left) else (right, left)
    bits = max(signed.bit_width, unsigned.bit_width * 2)
    return _SIGNED[bits] if bits <= 64 else pa.decimal128(20, 0)


def integer_digits(data_type: pa.DataType) -> int:
    """Return the number of digits an integer counts as beside a decimal: 10 up to 32 bits, 19 or 20 of 64."""
    return _DIGITS_OF_INTEGERS.get(data_type, _DIGITS_OF_SMALL_INTEGERS)


def _digits_of(data_type: pa.DataType) -> tuple[int, int]:
    """Return (digits before the point, digits after it) that hold a decimal or integer type."""
    if pa.types.is_decimal(data_type):
        return data_type.precision - data_type.scale, data_type.scale
    return integer_digits(data_type), 0


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    whole, scale = (max(pair) for pair in zip(_digits_of(left), _digits_of(right), strict=True))
    if whole + scale <= 38:
        return pa.decimal128(whole + scale, scale)
    return pa.decimal256(whole + scale, scale) if whole + scale <= 76 else None


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return _common_integer(left, right)
    if pa.types.is_floating(left) and pa.types.is_floating(right):
        return left if left.bit_width >= right.bit_width else right
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    return _common_decimal(left, right)


def _common_time(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pa.types.is_date(left) and pa.types.is_date(right):
        return pa.date64()
    if pa.types.is_date(left) or pa.types.is_date(right):
        moment = right if pa.types.is_date(left) else left
        return moment if pa.types.is_timestamp(moment) and moment.tz is None else None
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        if (left.tz is None) != (right.tz is None):
            return None
        return pa.timestamp(_finer(left.unit, right.unit), left.tz if left.tz == right.tz else "UTC")
    if pa.types.is_duration(left) and pa.types.is_duration(right):
        return pa.duration(_finer(left.unit, right.unit))
    if pa.types.is_time(left) and pa.types.is_time(right):
        unit = _finer(left.unit, right.unit)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    return None


def is_number(data_type: pa.DataType) -> bool:
    """Return whether values are integers, floats or decimals (bools are not numbers)."""
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type that both widen to, or None when there is none."""
    if left == right:
        return left
    if pa.types.is_null(left) or pa.types.is_null(right):
        return right if pa.types.is_null(left) else left
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if _is_string(left) and _is_string(right):
        return pa.large_string()
    if _is_bytes(left) and _is_bytes(right):
        large = pa.types.is_large_binary(left) or pa.types.is_large_binary(right)
        return pa.large_binary() if large else pa.binary()
    if pa.types.is_temporal(left) and pa.types.is_temporal(right):
        return _common_time(left, right)
    return None


def common_type_of(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """Return the common type of several (at least one), or None when there is none.

    What is compared is exact in it; a result of that type is one of ``result_type_of``.
    """

    def widen(left: pa.DataType | None, right: pa.DataType) -> pa.DataType | None:
        return None if left is None else common_type(left, right)

    first, *others = types
    return reduce(widen, others, first)


def result_type_of(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the common type of several as that of a result, or None: decimals have at most 38 digits, as others take.

    Those that have more already keep them. A value that needs more is an error where it is made.
    """
    found = common_type_of(types)
    if found is None or not pa.types.is_decimal(found) or found.precision <= DECIMAL_DIGITS_MAX:
        return found
    is_wide = any(pa.types.is_decimal(each) and each.precision > DECIMAL_DIGITS_MAX for each in types)
    return found if is_wide else pa.decimal128(DECIMAL_DIGITS_MAX, found.scale)
