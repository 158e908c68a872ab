"""Hashes, digests and encodings of values.

hash64(a, b, ...)    XXH64 with seed 42, the hash of each value the seed of the next, as Spark's xxhash64. It is part of
                     the contract: the same on every machine and in every release. The type counts:

                         bool, int8 to int32, uint8, uint16, date      4 bytes, little-endian
                         int64, uint32, uint64, times, durations       8 bytes; timestamps in microseconds
                         float, double                                 their bits; -0.0 as 0.0, one NaN
                         decimals of 18 digits or less                 their digits as int64; longer ones are refused
                         string, binary                                their bytes, whatever the width of offsets

                     null leaves the hash as it is; lists, maps and structs are refused.
md5 sha1 sha256 ...  of the bytes of a text or binary value, as hex digits in lower case; crc32 as int64
encode, decode       hex (lower case) and base64 (with padding); utf-8 from and to binary

Held by: tests/expressions/test_digest_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import is_text, type_of_kind
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array
from engine.expressions.byte_transforms import checksums, fold_bytes, fold_words, transform
from engine.expressions.common_type import is_fixed_bytes
from engine.expressions.number_functions import of_array
from engine.expressions.text_distances import jaro, levenshtein
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_SEED: Final = 42
_INT64: Final = pa.int64()
_ENCODINGS: Final = ("hex", "base64", "utf-8")


def as_bytes(values: pa.Array) -> pa.Array:
    """Return texts and bytes as a binary array."""
    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    return pc.cast(values, pa.large_binary() if is_large else pa.binary())


def _words(values: pa.Array) -> pa.Array:
    """Return values of fixed width as the int32 or int64 that is hashed."""
    types, data_type = pa.types, values.type
    if types.is_floating(data_type):
        wide = pc.cast(values, pa.float32()) if types.is_float16(data_type) else values
        plain = pc.if_else(pc.is_nan(wide), pa.scalar(float("nan"), wide.type), pc.add(wide, pa.scalar(0.0, wide.type)))
        return plain.view(pa.int32() if types.is_float32(wide.type) else _INT64)
    if types.is_date32(data_type):
        return values.view(pa.int32())
    if types.is_date64(data_type):
        return pc.cast(values, pa.date32()).view(pa.int32())
    if types.is_timestamp(data_type):
        return pc.cast(values, pa.timestamp("us", data_type.tz), safe=False).view(_INT64)
    if types.is_duration(data_type):
        return values.view(_INT64)
    if types.is_time(data_type):
        return pc.cast(values, pa.time64("us"), safe=False).view(_INT64)
    if types.is_decimal(data_type):
        scaled = pc.cast(values, pa.decimal128(18, data_type.scale))
        return pc.cast(pc.multiply(scaled, pa.scalar(10**data_type.scale, pa.decimal128(19, 0))), _INT64, safe=False)
    if types.is_boolean(data_type) or data_type in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()):
        return pc.cast(values, pa.int32())
    return pc.cast(values, _INT64, safe=False)


def _check_hashable(data_type: pa.DataType) -> None:
    types = pa.types
    is_known = types.is_primitive(data_type) or types.is_null(data_type) or is_text(data_type)
    is_bytes = types.is_binary(data_type) or types.is_large_binary(data_type) or is_fixed_bytes(data_type)
    if types.is_decimal(data_type):
        if data_type.precision > 18 or data_type.scale < 0:
            raise NoMatchError("decimals of more than 18 digits have no hash: cast to a string or a shorter one")
    elif not (is_known or is_bytes) or types.is_interval(data_type):
        raise NoMatchError("lists, maps and structs have no hash: hash their fields, or a text of them")


def bind_hash64(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the hash of all values of a row."""
    for operand in operands:
        _check_hashable(operand.type)

    def hashed(*data: Datum) -> Datum:
        arrays = [each for each in data if not isinstance(each, pa.Scalar)]
        count = len(arrays[0]) if arrays else 1
        hashes = pa.repeat(scalar_of(_SEED), count)
        for each in data:
            values = as_array(each, count)
            if pa.types.is_null(values.type) or not count:
                continue
            is_bytes = is_text(values.type) or pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
            if is_bytes or is_fixed_bytes(values.type):
                found = fold_bytes(as_bytes(values), hashes)
            else:
                found = fold_words(_words(values), hashes)
            hashes = pc.if_else(pc.is_valid(values), found, hashes) if values.null_count else found
        return hashes if arrays else hashes[0]

    return Binding(hashed, tuple(None for _ in operands))


def digest(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of md5, sha1, sha256 or sha512 as hex digits."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = type_of_kind("binary", operands[0].type) or operands[0].type
        kernel = of_array(lambda values: _texts(transform(as_bytes(values), name), pa.string()))
        return Binding(kernel, (data_type,))

    return bind


def bind_crc32(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the CRC-32 of the bytes of a value."""
    data_type = type_of_kind("binary", operands[0].type) or operands[0].type

    def sums(values: pa.Array) -> pa.Array:
        found = checksums(as_bytes(values))
        return pc.if_else(pc.is_valid(values), found, scalar_of(None, _INT64)) if values.null_count else found

    return Binding(of_array(sums), (data_type,))


def _texts(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return bytes as texts; ArrowInvalid where they are no UTF-8."""
    return pc.cast(values, data_type)


def _encoding(options: Options, what: str) -> str:
    encoding = str(options.get("encoding"))
    if encoding not in _ENCODINGS:
        raise NoMatchError(f"{what} {encoding!r}: choose one of {', '.join(_ENCODINGS)}")
    return encoding


def bind_encode(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind texts or bytes as hex or base64 digits, or as the bytes of UTF-8."""
    encoding = _encoding(options, "encode")
    data_type = type_of_kind("binary", operands[0].type) or operands[0].type
    if encoding == "utf-8":
        return Binding(of_array(as_bytes), (data_type,))
    return Binding(of_array(lambda values: _texts(transform(as_bytes(values), encoding), pa.string())), (data_type,))


def bind_decode(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind hex or base64 digits as the bytes they stand for, or bytes of UTF-8 as text."""
    encoding = _encoding(options, "decode")
    data_type = type_of_kind("binary", operands[0].type) or operands[0].type
    if encoding == "utf-8":
        return Binding(of_array(lambda values: _texts(as_bytes(values), pa.string())), (data_type,), can_raise=True)
    name = f"un{encoding}"
    kernel = of_array(lambda values: pc.cast(transform(as_bytes(values), name), pa.binary()))
    return Binding(kernel, (data_type,), can_raise=True)


def bind_url_encode(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind a text with what is no letter, digit or one of -._~ as %20 and the like."""
    data_type = type_of_kind("text", operands[0].type) or operands[0].type
    return Binding(of_array(lambda texts: _texts(transform(as_bytes(texts), "url_encode"), data_type)), (data_type,))


def bind_url_decode(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind a text with %20 and + as the characters they stand for."""
    data_type = type_of_kind("text", operands[0].type) or operands[0].type
    kernel = of_array(lambda texts: _texts(transform(as_bytes(texts), "url_decode"), data_type))
    return Binding(kernel, (data_type,), can_raise=True)


#: distances of two texts: the kernel, and the type of what it gives
_DISTANCES: Final = {
    "levenshtein": (levenshtein, _INT64),
    "jaro": (lambda one, other: jaro(one, other, 0.0), pa.float64()),
    "jaro_winkler": (lambda one, other: jaro(one, other, 0.1), pa.float64()),
}


def distance(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a distance of two texts."""
    kernel, made = _DISTANCES[name]

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        types = [type_of_kind("text", operand.type) or operand.type for operand in operands]

        def distances(one: Datum, other: Datum) -> Datum:
            arrays = [each for each in (one, other) if not isinstance(each, pa.Scalar)]
            count = len(arrays[0]) if arrays else 1
            left, right = (as_array(each, count) for each in (one, other))
            valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
            found = pc.if_else(valid, kernel(as_bytes(left), as_bytes(right)), scalar_of(None, made))
            return found if arrays else found[0]

        return Binding(distances, tuple(types))

    return bind
