"""Arrow values of Python's simple values, made from their bytes.

    scalar_of(value, data_type=None) -> pa.Scalar
    array_of(values, data_type=None) -> pa.Array
    no_values(data_type) -> pa.Array without values, kept
    with without_pandas(): ...     other libraries' constants are made here, too

``pa.scalar`` and ``pa.array`` look whether a value is one of pandas, and import pandas for that where it is installed,
which takes longer than the engine's own start. A value whose bytes are known needs no look: bool, int, float, str,
None, date, and as a scalar datetime without a zone, Decimal, pa.MonthDayNano. Everything else goes to ``pa.scalar`` or
``pa.array``, and so does a column that is long, where the look is little. Nulls are ``pa.nulls(count, data_type)``.
"""

from __future__ import annotations

import contextlib
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from engine.records.stored_types import stored_array, stored_type

_DAY: Final = date(1970, 1, 1)
_MOMENT: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_DIGITS_MAX: Final = 38
#: rows above which a column is left to Arrow, which converts a value in a tenth of the time
_ROWS_MAX: Final = 1 << 16
_OF_ARROW: Final = (pa.scalar, pa.array)
#: the code that ``array`` has for each type of integers
_INTEGERS: Final = {
    pa.int8(): "b", pa.int16(): "h", pa.int32(): "i", pa.int64(): "q",
    pa.uint8(): "B", pa.uint16(): "H", pa.uint32(): "I", pa.uint64(): "Q",
}  # fmt: skip


def scalar_of(value: Any, data_type: pa.DataType | None = None) -> pa.Scalar:
    """Return a scalar exactly as ``pa.scalar(value, data_type)`` does; what it raises is raised here too."""
    if value is None:
        return pa.nulls(1, data_type)[0]
    values = _value_buffers(value, data_type)
    if values is None and data_type is not None and stored_type(data_type) != data_type:
        return stored_array([value], data_type)[0]
    if values is None:
        return _OF_ARROW[0](value, data_type)
    plain_type, buffers = values
    return pa.Array.from_buffers(plain_type, 1, [None, *map(pa.py_buffer, buffers)], null_count=0)[0]


@contextlib.contextmanager
def without_pandas() -> Iterator[None]:
    """Keep ``pa.scalar``, and ``pa.array`` of one scalar, from looking for pandas meanwhile."""

    def scalar(value: Any, *types: Any, **others: Any) -> pa.Scalar:
        data_type = types[0] if types else others.pop("type", None)
        return _OF_ARROW[0](value, data_type, **others) if others else scalar_of(value, data_type)

    def array(values: Any, *types: Any, **others: Any) -> pa.Array:
        one = values[0] if isinstance(values, list) and len(values) == 1 else None
        if isinstance(one, pa.Scalar) and types == (one.type,) and not others:
            return pa.repeat(one, 1)
        return _OF_ARROW[1](values, *types, **others)

    pa.scalar, pa.array = scalar, array
    try:
        yield
    finally:
        pa.scalar, pa.array = _OF_ARROW


@lru_cache(maxsize=1024)
def no_values(data_type: pa.DataType) -> pa.Array:
    """Return an array without values, such as what tells of which type a function's result is."""
    return pa.nulls(0, data_type)


def _value_buffers(value: Any, data_type: pa.DataType | None) -> tuple[pa.DataType, list[bytes]] | None:
    """Return type and buffers of one value; None when it is not simple or the type is not its own."""
    kind = type(value)
    if kind is bool and data_type in (None, pa.bool_()):
        return pa.bool_(), [bytes([value])]
    if kind is int and (data_type is None or pa.types.is_integer(data_type)):
        return _integer_buffers(value, data_type or pa.int64())
    if kind is float and data_type in (None, pa.float64()):
        return pa.float64(), [struct.pack("=d", value)]
    if kind is date and data_type in (None, pa.date32()):
        return pa.date32(), [struct.pack("=i", (value - _DAY).days)]
    if kind is datetime and value.tzinfo is None and data_type in (None, pa.timestamp("us")):
        return pa.timestamp("us"), [struct.pack("=q", (value - _MOMENT) // _MICROSECOND)]
    if kind is Decimal and (data_type is None or pa.types.is_decimal(data_type)):
        return _decimal_buffers(value, data_type)
    if kind is pa.MonthDayNano and data_type in (None, pa.month_day_nano_interval()):
        return _interval_buffers(value)
    if kind is str and data_type in (None, pa.string(), pa.large_string()):
        try:
            text = value.encode()
        except UnicodeEncodeError:
            return None
        is_large = data_type == pa.large_string()
        return data_type or pa.string(), [struct.pack("=qq" if is_large else "=ii", 0, len(text)), text]
    return None


def _integer_buffers(value: int, data_type: pa.DataType) -> tuple[pa.DataType, list[bytes]] | None:
    is_signed = pa.types.is_signed_integer(data_type)
    try:
        return data_type, [value.to_bytes(data_type.bit_width // 8, sys.byteorder, signed=is_signed)]
    except OverflowError:
        return None


def _interval_buffers(value: pa.MonthDayNano) -> tuple[pa.DataType, list[bytes]] | None:
    try:
        return pa.month_day_nano_interval(), [struct.pack("=iiq", *value)]
    except struct.error:  # more than it has room for
        return None


def _decimal_buffers(value: Decimal, data_type: pa.DataType | None) -> tuple[pa.DataType, list[bytes]] | None:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > _DIGITS_MAX:  # no number, or far from one
        return None
    if data_type is None:
        precision = max(len(digits), -exponent) if exponent < 0 else len(digits) + exponent
        if precision > _DIGITS_MAX:
            return None
        data_type = pa.decimal128(precision, max(0, -exponent))
    shift = exponent + data_type.scale
    unscaled = int("".join(map(str, digits))) * 10 ** max(0, shift)
    if shift < 0 or unscaled >= 10**data_type.precision:  # digits that it has no room for
        return None
    number = -unscaled if sign else unscaled
    return data_type, [number.to_bytes(data_type.byte_width, sys.byteorder, signed=True)]


def array_of(values: Sequence[Any], data_type: pa.DataType | None = None) -> pa.Array:
    """Return an array exactly as ``pa.array(values, data_type, from_pandas=False)`` does, and raise what it raises.

    Of extension types within others pyarrow makes none: ``stored_array`` does.
    """
    if data_type is not None and stored_type(data_type) != data_type:
        return stored_array(values, data_type)
    if len(values) <= _ROWS_MAX and "pandas" not in sys.modules:
        kinds = set(map(type, values)) - {type(None)}
        if not kinds:
            return pa.nulls(len(values), data_type)
        plain = _plain_array(values, kinds.pop(), data_type) if len(kinds) == 1 else None
        if plain is not None:
            return plain
    return pa.array(values, data_type, from_pandas=False)


def _plain_array(values: Sequence[Any], kind: type, data_type: pa.DataType | None) -> pa.Array | None:
    """Return an array of values that are all of a kind, or None; None when kind or type is not simple."""
    present = [value is not None for value in values]
    try:
        if kind is bool and data_type in (None, pa.bool_()):
            plain_type, buffers = pa.bool_(), [_bits(values)]
        elif kind is int and (data_type is None or pa.types.is_integer(data_type)):
            plain_type = data_type or pa.int64()
            buffers = [array(_INTEGERS[plain_type], [value or 0 for value in values]).tobytes()]
        elif kind is date and data_type in (None, pa.date32()):
            plain_type = pa.date32()
            buffers = [array("i", [0 if value is None else (value - _DAY).days for value in values]).tobytes()]
        elif kind is float and data_type in (None, pa.float64()):
            plain_type = pa.float64()
            buffers = [array("d", [0.0 if value is None else value for value in values]).tobytes()]
        elif kind is str and data_type in (None, pa.string()):
            texts = [b"" if value is None else value.encode() for value in values]
            ends = array("i", accumulate(map(len, texts), initial=0))
            plain_type, buffers = pa.string(), [ends.tobytes(), b"".join(texts)]
        else:
            return None
    except (OverflowError, UnicodeEncodeError):
        return None
    validity = None if all(present) else pa.py_buffer(_bits(present))
    return pa.Array.from_buffers(plain_type, len(values), [validity, *map(pa.py_buffer, buffers)])


def _bits(flags: Sequence[bool | None]) -> bytes:
    """Return flags as bits, the first one in the lowest bit of the first byte."""
    digits = "".join("1" if flag else "0" for flag in reversed(flags))
    return int(digits, 2).to_bytes((len(flags) + 7) // 8, "little")
