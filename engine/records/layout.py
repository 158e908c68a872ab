"""The binary row: how a record lies in memory, on disk and on the wire.

    0        4            4 + null bytes     slots (widest alignment first)        fixed_size            size
    +--------+-----------+------+-----------+------------------------------+------+---------------------+------+
    | size   | null bits | zero | 8-aligned | 4-aligned | 2-aligned | 1    | zero | variable values     | zero |
    | uint32 | bit = 1:  |      | slots     | slots     | slots     |      |      | in column order,    |      |
    |        | null      |      |           |           |           |      |      | packed              |      |
    +--------+-----------+------+-----------+------------------------------+------+---------------------+------+

* Everything is little endian. ``size`` counts the whole row; it is a multiple of 8, and a row starts at an address
  that is a multiple of 8, so a page of rows is walked by adding sizes.
* Column c is null when bit c % 8 of byte 4 + c // 8 is 1. A null zeroes its slot. Padding is zero. So two rows of
  equal values are equal bytes (nested values apart), and up to 32 columns header and null bits are one word.
* Slots stand in the order of their alignment (8, 4, 2, 1; in one alignment, in column order), the first at a multiple
  of 8: no holes, and every value is aligned by nature.
* A fixed value fills its slot as Arrow holds it: integers, floats, dates, times, timestamps, durations of 1, 2, 4, 8
  bytes; decimals of 4, 8, 16, 32; fixed-size binary of its width; bool one byte, 0 or 1; null type no byte at all.
* A variable value (string, binary, their large forms, nested) has a slot of 8 bytes: uint32 offset from the row's
  start, uint32 length; the bytes lie in the variable part. An empty value keeps its offset, a null has 0 and 0.
* A nested value is its *body*; a sequence of n values is null bits (n, rounded up to bytes) and their body:

      body(list, map; n)         n x uint32 element counts, then sequence(element; sum of counts)
      body(fixed-size list; n)   sequence(element; n * list size)
      body(struct; n)            for each field: sequence(field; n)
      body(string, binary; n)    n x uint32 lengths, then the bytes
      body(bool; n)              n bits, rounded up to bytes
      body(fixed width; n)       n values; null ones are whatever Arrow held
      body(null type; n)         nothing

  and the value of a row is the body of one (n = 1): its own null is the row's null bit.

* A wide value may lie *outside* of the row: the top bit of its slot is set, and the variable part holds a reference of
  112 bytes in its place (``outside_values.pyx`` draws it). So the length of a value in a row is below 2 GiB.

The version is not in the row, nor beside it: TaskManagers exchange rows if they know one protocol, and a new layout
ends that (``engine.versions``). Any change of this page is a new version. Golden vectors, held by
``tests/records/test_layout.py``:

    (int64 7, string "EUR", int32 -1)
        size 40  nulls 0          int64             offset 32, len 3  int32     zero      "EUR"
        28000000 00000000 0700000000000000 2000000003000000 ffffffff 00000000 4555520000000000
    (int64 null, string "currency-long", int32 5)
        30000000 01000000 0000000000000000 200000000d000000 05000000 00000000 63757272656e6379 2d6c6f6e67000000

Limits: a row is below 4 GiB; its fixed part below 2 GiB.

Source: Flink's BinaryRowData is the reference; ours carries its size, packs narrow columns and has aligned slots.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import lru_cache

import msgspec

#: bytes of the size field at the start of a row, which the null bits follow
SIZE_FIELD_BYTES = 4
#: alignment of rows and pages, in address and in length
ROW_ALIGNMENT = 8
#: bytes of the slot of a variable value: offset, length
VARIABLE_SLOT_BYTES = 8


class Kind(enum.IntEnum):
    """The kind of a type, as kernels see it; the same numbers as ``Kind`` in arrow_batch.pxd."""

    NULL = 0
    BOOL = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT8 = 6
    UINT16 = 7
    UINT32 = 8
    UINT64 = 9
    FLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    DECIMAL128 = 13
    DECIMAL256 = 14
    FIXED_BYTES = 15
    BYTES = 16
    LARGE_BYTES = 17
    LIST = 18
    LARGE_LIST = 19
    FIXED_LIST = 20
    STRUCT = 21

    @property
    def is_variable(self) -> bool:
        """Whether the value lies in the variable part."""
        return self >= Kind.BYTES

    @property
    def is_nested(self) -> bool:
        """Whether values of this kind contain values."""
        return self >= Kind.LIST


class RowLayout(msgspec.Struct, frozen=True):
    """The layout of a row of one schema; offsets and widths in bytes, one entry for each column."""

    slots: tuple[int, ...]
    widths: tuple[int, ...]
    #: bytes before the variable part
    fixed_size: int
    #: bytes of the null bits
    null_bytes: int


def slot_alignment(width: int) -> int:
    """Return the alignment of a slot: the largest power of two that divides its width, at most 8."""
    return min(width & -width, ROW_ALIGNMENT) if width else 1


def round_up(size: int, alignment: int) -> int:
    """Return the smallest multiple of alignment that is not below size."""
    return (size + alignment - 1) // alignment * alignment


def row_layout(columns: Sequence[tuple[int, int]]) -> RowLayout:
    """Return the layout of rows whose columns have these (kind, width in bytes).

    Args:
        columns: kind as a number of ``Kind``; width of a value in bytes, ignored for variable kinds.
    """
    return _layout(tuple(columns))


@lru_cache(maxsize=1024)
def _layout(columns: tuple[tuple[int, int], ...]) -> RowLayout:
    widths = tuple(VARIABLE_SLOT_BYTES if Kind(kind).is_variable else width for kind, width in columns)
    null_bytes = (len(columns) + 7) // 8
    position = round_up(SIZE_FIELD_BYTES + null_bytes, ROW_ALIGNMENT)
    slots = [0] * len(columns)
    for index in sorted(range(len(columns)), key=lambda index: -slot_alignment(widths[index])):
        slots[index] = position
        position += widths[index]
    return RowLayout(tuple(slots), widths, round_up(position, ROW_ALIGNMENT), null_bytes)
