"""Values of a Parquet page whose lengths, or what they share with the value before, come first.

    delta_numbers(stream, count_max)    ──► the numbers of DELTA_BINARY_PACKED, which is what lengths are written in
    lengths_first(stream, count)        ──► (size, what reads it) of each value of DELTA_LENGTH_BYTE_ARRAY
    shared_fronts(stream, count)        ──► the same of DELTA_BYTE_ARRAY

    lengths first   lengths │ value value value ...
    shared fronts   bytes of the value before, of each │ lengths of the rest │ rest rest rest ...

Each value is read when it is asked for, in order, and before the next one is. Of the value before only what the next
one shares with it is kept.

Limits: a page whose first value shares bytes with the page before, as very old writers did, is an error.
Source: parquet-format, Encodings.md; Arrow's DeltaByteArrayDecoder.
Held by: tests/parquet/test_wide_columns.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from engine.parquet.pages import PageStream, packed_numbers

#: bytes of a value, and what reads it
Reader = tuple[int, Callable[[memoryview], None]]

_BLOCK_VALUES_MAX: Final = 1 << 20
_PART_VALUES: Final = 32
_WIDTH_MAX: Final = 64
_VARINT_BITS: Final = 70


def delta_numbers(stream: PageStream, count_max: int) -> list[int]:
    """Return the numbers, at most so many; pa.ArrowInvalid where they are damaged."""
    block, parts, count, number = (_varint(stream) for _ in range(4))
    if not 0 < parts <= block <= _BLOCK_VALUES_MAX or block % (parts * _PART_VALUES):
        raise pa.ArrowInvalid(f"a page has lengths in blocks of {block} in {parts} parts")
    if count > count_max:
        raise pa.ArrowInvalid(f"a page of {count_max} values has {count} lengths")
    number = _signed(number)
    numbers = [number][:count]
    while len(numbers) < count:
        least = _signed(_varint(stream))
        for width in stream.read(parts):
            left = count - len(numbers)
            if not left:
                break  # widths of parts that are not there
            if width > _WIDTH_MAX:
                raise pa.ArrowInvalid(f"a page has lengths of {width} bits")
            data = stream.read(block // parts * width // 8)
            for delta in packed_numbers(data, 0, width, min(left, block // parts)):
                number += least + delta
                numbers.append(number)
    return numbers


def lengths_first(stream: PageStream, count: int) -> Iterator[Reader]:
    """Yield the values of a page."""
    lengths = delta_numbers(stream, count)
    _check(stream, lengths, count)
    for length in lengths:
        yield length, stream.readinto


def shared_fronts(stream: PageStream, count: int) -> Iterator[Reader]:
    """Yield the values of a page; each is to be read before the next is asked for."""
    shared = delta_numbers(stream, count)
    rests = delta_numbers(stream, count)
    _check(stream, rests, count)
    _check(None, shared, count)
    sizes = [0, *(front + rest for front, rest in zip(shared, rests, strict=True))]
    if any(front > before for front, before in zip(shared, sizes, strict=False)):
        raise pa.ArrowInvalid("a value shares more bytes than the value before has")
    front = b""
    for index, kept in enumerate((*shared[1:], 0)):

        def read(view: memoryview, kept: int = kept) -> None:
            nonlocal front
            view[: len(front)] = front
            stream.readinto(view[len(front) :])
            front = bytes(view[:kept])

        yield sizes[index + 1], read


def _check(stream: PageStream | None, lengths: list[int], count: int) -> None:
    """Compare what lengths say with what there is."""
    if len(lengths) != count or min(lengths, default=0) < 0:
        raise pa.ArrowInvalid(f"a page of {count} values has {len(lengths)} lengths, or negative ones")
    if stream is not None and sum(lengths) > stream.left_bytes:
        raise pa.ArrowInvalid(f"values of {sum(lengths)} bytes in a page that has {stream.left_bytes} left")


def _varint(stream: PageStream) -> int:
    number = 0
    for shift in range(0, _VARINT_BITS, 7):
        byte = stream.read(1)[0]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
    raise pa.ArrowInvalid("a number of a page does not end")


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
