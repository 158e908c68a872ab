"""Bloom filters of Parquet: whether a column of a row group may have one of some values.

    header │ block 0 │ block 1 │ ...         a block: eight words of 32 bits, of which a value sets one bit each
    value ─► XXH64 ─► upper half: which block      lower half × eight odd numbers ─► which bit of each word

Of a filter the header and one block for each value are read.

Raises: ValueError for a filter of another kind, OSError.
Source: parquet-format, "Split Block Bloom Filters".
Held by: tests/parquet/test_page_bounds.py
"""

import os

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.expressions.digest_kernels cimport drey_xxh64
from engine.parquet.compact_protocol cimport IS_STRUCT, Cursor, is_number, next_field, next_number, skip_field

cdef enum:
    HEADER_BYTES = 128
    BLOCK_BYTES = 32
    FILTER_BYTES_MAX = 128 << 20

cdef uint32_t[8] SALTS = [
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
]


cdef bint is_first_member(Cursor* cursor) noexcept:
    """Read a union: whether it is its first member, which has no fields that count."""
    cdef int64_t field = 0
    cdef int32_t kind = next_field(cursor, &field)
    cdef bint is_first = kind == IS_STRUCT and field == 1
    while kind:
        skip_field(cursor, kind)
        kind = next_field(cursor, &field)
    return is_first


cdef int64_t parse_header(const uint8_t[::1] data, int64_t* size) except -1:
    """Return the length of a header, and of the filter behind it."""
    cdef Cursor cursor
    cdef int64_t field = 0
    cdef int32_t kind
    cdef int32_t known = 0
    cursor.data, cursor.size, cursor.at = &data[0], data.shape[0], 0
    kind = next_field(&cursor, &field)
    while kind:
        if field == 1 and is_number(kind):
            size[0] = next_number(&cursor)
        elif 2 <= field <= 4 and kind == IS_STRUCT:      # blocks, XXH64, not compressed
            known += is_first_member(&cursor)
        else:
            skip_field(&cursor, kind)
        kind = next_field(&cursor, &field)
    if cursor.at > cursor.size or known != 3:
        raise ValueError("a Bloom filter of a kind that is not known")
    if size[0] < BLOCK_BYTES or size[0] > FILTER_BYTES_MAX or size[0] % BLOCK_BYTES:
        raise ValueError(f"a Bloom filter of {size[0]} bytes")
    return cursor.at


cdef bint is_in_block(const uint8_t[::1] block, uint32_t key) noexcept:
    cdef int32_t index, bit
    for index in range(8):
        bit = <int32_t>((key * SALTS[index]) >> 27)
        if not (block[4 * index + (bit >> 3)] >> (bit & 7)) & 1:
            return False
    return True


def may_be_in(file, int64_t position, list values not None):
    """Return whether one of some values, each the bytes of a plain one, may be in the filter at a byte of a file."""
    cdef int64_t size = 0
    cdef uint64_t hashed
    cdef int64_t begin, number
    header = file.read_at(position, HEADER_BYTES)
    if len(header) < 8:
        raise ValueError("a Bloom filter behind the end of its file")
    begin = position + parse_header(header, &size)
    for value in values:
        hashed = drey_xxh64(<const uint8_t*><const char*>value, len(value), 0)
        number = <int64_t>(((hashed >> 32) * <uint64_t>(size // BLOCK_BYTES)) >> 32)
        block = file.read_at(begin + number * BLOCK_BYTES, BLOCK_BYTES)
        if len(block) < BLOCK_BYTES or is_in_block(block, <uint32_t>hashed):
            return True
    return False
