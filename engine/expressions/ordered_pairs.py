"""A key and a value as one binary value: the least pair has the least key, and of equal keys the least value.

    ordered_pair(key, value)              int64, double     ──► fixed-size binary: 8 bytes of the key, 8 of the value
                                          int64, string     ──► large binary: 8 bytes of the key, then the text
    paired_value(pair, null of a type)    the value again
    can_pair(key type, value type)        whether there are bytes for them

``min_by`` and ``max_by`` are the minimum of such pairs, a state of a group like any other; for ``max_by`` the bytes of
the key are inverted. A pair is null where its key or its value is null. Keys are numbers, bools and times up to 16
bytes, values these and texts. Order is that of keys everywhere: NaN is the greatest number, -0.0 is 0.0.

Held by: tests/expressions/test_ordered_pairs.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array
from engine.expressions.ordered_bytes import (
    KEY_FLOAT,
    SIGNED,
    UNSIGNED,
    VALUE_FLOAT,
    get_ordered,
    put_before,
    put_ordered,
    texts_behind,
)
from engine.records.arrow_functions import pc

_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


class _Number(msgspec.Struct, frozen=True):
    """The encoding of a number: the type that it is viewed or cast as, its bytes and their order."""

    type: pa.DataType
    width: int
    kind: int
    is_cast: bool = False


def _number(data_type: pa.DataType) -> _Number | None:
    """Return the encoding of a type's values as bytes; None where they have no fixed size."""
    types = pa.types
    if types.is_floating(data_type):
        return _Number(pa.float64(), 8, VALUE_FLOAT, not types.is_float64(data_type))
    if types.is_boolean(data_type):
        return _Number(pa.uint8(), 1, UNSIGNED, is_cast=True)
    if types.is_unsigned_integer(data_type):
        return _Number(data_type, data_type.bit_width // 8, UNSIGNED)
    is_time = types.is_date(data_type) or types.is_time(data_type) or types.is_timestamp(data_type)
    is_signed = types.is_signed_integer(data_type) or types.is_duration(data_type) or types.is_decimal128(data_type)
    return _Number(data_type, data_type.bit_width // 8, SIGNED) if is_time or is_signed else None


def can_pair(key: pa.DataType, value: pa.DataType) -> bool:
    """Whether values of these types have bytes that compare as they do."""
    return _number(key) is not None and (value in _TEXTS or _number(value) is not None)


def _put(values: pa.Array, number: _Number, kind: int, inverted: bool, out: pa.Buffer, stride: int, at: int) -> None:
    put_ordered(pc.cast(values, number.type) if number.is_cast else values, kind, inverted, out, stride, at)


def _with_nulls(pairs: pa.Array, key: pa.Array, value: pa.Array) -> pa.Array:
    """Return pairs, null where a part is null."""
    if not (key.null_count or value.null_count):
        return pairs
    _, *others = pairs.buffers()
    valid = _bits(pc.and_(pc.is_valid(key), pc.is_valid(value)))
    return pa.Array.from_buffers(pairs.type, len(pairs), [valid, *others])


def bind_ordered_pair(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind a pair of a key and a value; the option ``inverted`` makes the greatest key the least."""
    key_number, value_number = _number(operands[0].type), _number(operands[1].type)
    inverted = bool(options.get("inverted"))
    is_text = operands[1].type in _TEXTS
    if key_number is None or not (is_text or value_number):
        raise NoMatchError("keys are numbers, bools and times, values these and texts")
    first, head = key_number, key_number.width
    kind = KEY_FLOAT if first.kind == VALUE_FLOAT else first.kind

    def paired(keys: pa.Array, values: pa.Array) -> pa.Array:
        count = len(keys)
        stride = head if value_number is None else head + value_number.width
        words = pa.allocate_buffer(count * stride)
        if count:
            _put(keys, first, kind, inverted, words, stride, 0)
        if value_number is None:
            return _with_nulls(put_before(words, head, pc.cast(values, pa.large_binary())), keys, values)
        if count:
            _put(values, value_number, value_number.kind, False, words, stride, head)
        return _with_nulls(pa.Array.from_buffers(pa.binary(stride), count, [None, words], 0), keys, values)

    return Binding(_over_rows(paired), (None, None))


def _over_rows(kernel: Any) -> Any:
    """Return a kernel for arrays of one length as one for arrays and scalars."""

    def over(*data: Datum) -> Datum:
        lengths = [len(each) for each in data if not isinstance(each, pa.Scalar)]
        found = kernel(*(as_array(each, lengths[0] if lengths else 1) for each in data))
        return found if lengths else found[0]

    return over


def bind_paired_value(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the value of a pair, of the type of the second argument; ``head`` is the width of the key."""
    pair, target = operands[0].type, operands[1].type
    number, head = _number(target), int(options.get("head") or 0)
    if target in _TEXTS and pa.types.is_large_binary(pair):
        return Binding(lambda pairs, _type: _over_rows(lambda rows: _texts(rows, head, target))(pairs), (None, None))
    if number is None or not pa.types.is_fixed_size_binary(pair) or pair.byte_width != head + number.width:
        raise NoMatchError(f"no pair with a value of {target}")
    fixed = number

    def values(pairs: pa.Array) -> pa.Array:
        found = get_ordered(pairs, pair.byte_width, head, fixed.width, fixed.kind)
        array = pa.Array.from_buffers(fixed.type, len(pairs), [_valid_bits(pairs), found])
        return pc.cast(array, target) if fixed.is_cast else array

    return Binding(lambda pairs, _type: _over_rows(values)(pairs), (None, None))


def head_of(key: pa.DataType) -> int:
    """Return the number of bytes of a pair that are its key's."""
    number = _number(key)
    assert number is not None, "can_pair was asked"
    return number.width


def _valid_bits(values: pa.Array) -> pa.Buffer | None:
    """Return the validity of an array as if it had no offset."""
    return _bits(pc.is_valid(values)) if values.null_count else None


def _bits(bools: pa.Array) -> pa.Buffer:
    whole = bools if bools.offset == 0 else pa.concat_arrays([bools, bools.slice(0, 0)])
    return whole.buffers()[1]


def _texts(pairs: pa.Array, head: int, target: pa.DataType) -> pa.Array:
    offsets, texts = texts_behind(pairs, head)
    found = pa.Array.from_buffers(pa.large_binary(), len(pairs), [_valid_bits(pairs), offsets, texts])
    if target == pa.large_binary():
        return found
    if target == pa.large_string():
        return found.view(target)
    return pc.cast(found.view(pa.large_string()), target) if target == pa.string() else pc.cast(found, target)
