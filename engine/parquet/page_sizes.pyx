"""What the headers of a Parquet column's pages say of sizes, looked at before memory is taken for it.

    page_sizes(descriptor, position, end, value_count, size_max, expansion) ──► PageSizes

    header ─► sizes ─► sound? ─► the next header lies behind the page ...      until the column's values are there

A page is read into memory of the size that its header names, before its bytes show whether that is right; a flipped bit
in it is a gigabyte. Of each page the first bytes are read, and parsed without the GIL: some 3 us a page.

    field     4 bits step to the next number │ 4 bits kind │ value          0 ends a struct
    value     integers as zigzag varints, a struct as its fields; what is no number is passed over

Limits: a header that does not end within HEADER_BYTES_MAX, or is none at all, is left to Arrow.
Source: Apache Thrift, "Thrift compact protocol encoding"; parquet-format, PageHeader.
Held by: tests/parquet/test_pages.py
"""

from typing import NamedTuple

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from posix.unistd cimport pread

cdef enum:
    HEADER_BYTES = 512
    HEADER_BYTES_MAX = 16 << 10
    DEPTH_MAX = 16
    KIND_DICTIONARY = 2
    VALUES_UNKNOWN = -1
    EXPANSION_ADDED = 64        # bytes of a frame around what is compressed

cdef struct Cursor:
    const uint8_t* data
    int64_t size
    int64_t at                  # beyond size: the bytes end before the header does, or it is none

cdef struct Sizes:
    int64_t kind
    int64_t size
    int64_t compressed
    int64_t values


cdef inline uint8_t next_byte(Cursor* cursor) noexcept nogil:
    cursor.at += 1
    return cursor.data[cursor.at - 1] if cursor.at <= cursor.size else 0


cdef inline uint64_t next_varint(Cursor* cursor) noexcept nogil:
    cdef uint64_t value = 0
    cdef int32_t shift = 0
    cdef uint8_t byte = 0x80
    while byte & 0x80 and shift < 64:
        byte = next_byte(cursor)
        value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
    return value


cdef inline int64_t next_number(Cursor* cursor) noexcept nogil:
    cdef uint64_t value = next_varint(cursor)
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)


cdef inline void pass_over(Cursor* cursor, uint64_t size) noexcept nogil:
    cursor.at = cursor.size + 1 if size > <uint64_t>cursor.size else cursor.at + <int64_t>size


cdef void skip_value(Cursor* cursor, int32_t kind, int32_t depth) noexcept nogil:
    """Pass over a value of a field or of a list."""
    cdef uint8_t head
    cdef uint64_t count
    if kind == 1 or kind == 2 or kind == 3:
        pass_over(cursor, 1)
    elif kind >= 4 and kind <= 6:
        next_varint(cursor)
    elif kind == 7:
        pass_over(cursor, 8)
    elif kind == 8:
        pass_over(cursor, next_varint(cursor))
    elif (kind == 9 or kind == 10) and depth < DEPTH_MAX:
        head = next_byte(cursor)
        count = head >> 4 if head >> 4 != 15 else next_varint(cursor)
        while count > 0 and cursor.at <= cursor.size:
            skip_value(cursor, head & 15, depth + 1)
            count -= 1
    elif kind == 12 and depth < DEPTH_MAX:
        read_struct(cursor, NULL, depth + 1)
    else:
        cursor.at = cursor.size + 1


cdef void read_struct(Cursor* cursor, Sizes* sizes, int32_t depth) noexcept nogil:
    """Read the fields of a struct: the page header's into sizes, of the struct about its kind the count of values."""
    cdef int64_t field = 0
    cdef int64_t number
    cdef int32_t kind
    cdef uint8_t head = next_byte(cursor)
    while head != 0 and cursor.at <= cursor.size:
        field = field + (head >> 4) if head >> 4 else next_number(cursor)
        kind = head & 15
        if kind == 12 and sizes != NULL and depth == 0 and (field == 5 or field == 7 or field == 8):
            read_struct(cursor, sizes, 1)
        elif kind >= 4 and kind <= 6:
            number = next_number(cursor)
            if sizes != NULL and depth == 1 and field == 1:
                sizes.values = number
            elif sizes != NULL and depth == 0 and field == 1:
                sizes.kind = number
            elif sizes != NULL and depth == 0 and field == 2:
                sizes.size = number
            elif sizes != NULL and depth == 0 and field == 3:
                sizes.compressed = number
        elif kind != 1 and kind != 2:               # a bool's kind is its value
            skip_value(cursor, kind, depth)
        head = next_byte(cursor)


cdef int64_t read_header(int descriptor, int64_t position, uint8_t* memory, int64_t room, Sizes* sizes) noexcept nogil:
    """Read a header; returns how many bytes it has, 0 when it does not end within the room."""
    cdef Cursor cursor
    cursor.size = pread(descriptor, memory, <size_t>room, position)
    cursor.data = memory
    cursor.at = 0
    sizes.kind = sizes.size = sizes.compressed = 0
    sizes.values = VALUES_UNKNOWN
    if cursor.size <= 0:
        return 0
    read_struct(&cursor, sizes, 0)
    return cursor.at if cursor.at <= cursor.size else 0


class PageSizes(NamedTuple):
    """The largest page, as it is and compressed, and the dictionary of a column; or what cannot be right."""

    page_bytes: int
    compressed_bytes: int
    dictionary_bytes: int
    dictionary_values: int
    is_complete: bool            # False: a header could not be read, and those behind it neither
    position: int                # where the last header that was read begins
    bad_size: str                # which of its sizes cannot be right, "": all are sound
    bad_count: int


def page_sizes(int descriptor, int64_t position, int64_t end, int64_t value_count, int64_t size_max,
               int64_t expansion):
    """Return the sizes of a column's pages, up to the first that cannot be right.

    Args:
        position, end: of the column's pages in the file, bytes.
        value_count: of the column; pages behind the last value are not looked at.
        size_max: no page of the column has more bytes.
        expansion: nor so many times its compressed ones and EXPANSION_ADDED more, 0: the codec knows no such limit.
    """
    cdef uint8_t[HEADER_BYTES] near
    cdef uint8_t* memory = NULL
    cdef Sizes sizes
    cdef int64_t header = 0
    cdef const char* what = b""
    cdef int64_t found = 0
    cdef int64_t next_position = position
    cdef int64_t page = 0
    cdef int64_t compressed = 0
    cdef int64_t dictionary = 0
    cdef int64_t dictionary_values = 0
    cdef bint is_complete = True
    try:
        with nogil:
            while value_count > 0 and next_position < end:
                position = next_position
                header = read_header(descriptor, position, near, HEADER_BYTES, &sizes)
                if header == 0:
                    if memory == NULL:
                        memory = <uint8_t*>malloc(HEADER_BYTES_MAX)
                    if memory != NULL:
                        header = read_header(descriptor, position, memory, HEADER_BYTES_MAX, &sizes)
                if header == 0:
                    is_complete = False
                    break
                if sizes.compressed < 0 or sizes.compressed > end - position - header:
                    what, found = b"compressed bytes", sizes.compressed
                    break
                if sizes.size < 0 or sizes.size > size_max or (
                        expansion > 0 and sizes.size // expansion > sizes.compressed + EXPANSION_ADDED):
                    what, found = b"bytes", sizes.size
                    break
                if sizes.kind == KIND_DICTIONARY:
                    # Each of its values takes a byte at least, and 16 in memory.
                    if sizes.values > sizes.size:
                        what, found = b"values", sizes.values
                        break
                    dictionary, dictionary_values = sizes.size, sizes.values
                else:
                    page = max(page, sizes.size)
                    if sizes.values > 0:
                        value_count -= sizes.values
                compressed = max(compressed, sizes.compressed)
                next_position = position + header + sizes.compressed
    finally:
        free(memory)
    return PageSizes(page, compressed, dictionary, dictionary_values, bool(is_complete), position, what.decode(), found)
