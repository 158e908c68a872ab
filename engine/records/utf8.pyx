"""Whether the values of a string column are UTF-8, all in one pass over their bytes.

    bytes   value │ value │ value ...     no byte from 0x80 on: they are, wherever one ends
            else: the whole is UTF-8, and no value begins within a character

Arrow's kernels and Python believe strings. Rows that others damaged must not become such ones.

Limits: strings of columns that are not nested are taken as they come: Parquet does not look at them either.

Source: Unicode standard, table 3-7 (well-formed byte sequences).
Held by: tests/property/test_damaged_bytes.py
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef uint64_t HIGH_BITS = 0x8080808080808080U

cdef enum:
    BLOCK = 4096            # bytes between two looks whether all were ASCII: the loop inside has no branch


cdef int64_t _ascii_end(const uint8_t* bytes, int64_t size) noexcept nogil:
    """Return the number of bytes that are ASCII for sure: size, or up to a block less than there are."""
    cdef int64_t begin = 0
    cdef int64_t position, end
    cdef uint64_t seen = 0
    cdef uint64_t word
    while begin < size:
        end = min(size, begin + BLOCK)
        for position in range(begin, end - 7, 8):
            memcpy(&word, bytes + position, 8)
            seen |= word
        for position in range(begin + ((end - begin) & ~7), end):
            seen |= bytes[position]
        if seen & HIGH_BITS:
            return begin
        begin = end
    return size


cdef inline bint _follows(uint8_t byte) noexcept nogil:
    return byte & 0xC0 == 0x80


cdef bint _is_utf8(const uint8_t* bytes, int64_t size) noexcept nogil:
    cdef int64_t position = 0
    cdef int64_t look = 0           # from here on eight bytes are looked at together
    cdef int64_t count
    cdef uint8_t first, second
    cdef uint64_t word
    while position < size:
        if position >= look and position + 8 <= size:
            memcpy(&word, bytes + position, 8)
            look = position + 8
            if word & HIGH_BITS == 0:
                position = look
                continue
        first = bytes[position]
        if first < 0x80:
            position += 1
            continue
        count = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        if first < 0xC2 or first > 0xF4 or position + count > size:
            return False
        second = bytes[position + 1]
        if not _follows(second):
            return False
        if count > 2:
            if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F) or (
                    first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
                return False
            if not _follows(bytes[position + 2]) or (count > 3 and not _follows(bytes[position + 3])):
                return False
        position += count
    return True


cdef bint are_utf8(const uint8_t* bytes, int64_t size, const int64_t* ends, int64_t count) noexcept nogil:
    cdef int64_t known = _ascii_end(bytes, size)
    cdef int64_t index
    if known == size:
        return True
    if not _is_utf8(bytes + known, size - known):
        return False
    for index in range(count):
        if ends[index] < size and _follows(bytes[ends[index]]):
            return False
    return True
