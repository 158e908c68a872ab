"""The header of a Parquet page, in Thrift's compact protocol.

    field     4 bits step to the next number │ 4 bits kind │ value          0 ends a struct
    value     integers as zigzag varints, a struct as its fields; what is not looked for is passed over

    PageHeader    1 kind   2 size   3 compressed   4 checksum
                  5 data page         (1 values   2 encoding   3 encoding of levels)
                  7 dictionary        (1 values   2 encoding)
                  8 data page, new    (1 values  2 nulls  3 rows  4 encoding  5, 6 bytes of levels  7 is compressed)

Source: Apache Thrift, "Thrift compact protocol encoding"; parquet-format, PageHeader.
Held by: tests/parquet/test_pages.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    DEPTH_MAX = 16
    IS_TRUE = 1
    IS_FALSE = 2
    IS_DOUBLE = 7
    IS_BINARY = 8
    IS_LIST = 9
    IS_SET = 10
    IS_STRUCT = 12

cdef struct Cursor:
    const uint8_t* data
    int64_t size
    int64_t at                  # beyond size: the bytes end before the header does, or it is none


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
    if kind >= IS_TRUE and kind <= 3:
        pass_over(cursor, 1)
    elif kind >= 4 and kind <= 6:
        next_varint(cursor)
    elif kind == IS_DOUBLE:
        pass_over(cursor, 8)
    elif kind == IS_BINARY:
        pass_over(cursor, next_varint(cursor))
    elif (kind == IS_LIST or kind == IS_SET) and depth < DEPTH_MAX:
        head = next_byte(cursor)
        count = head >> 4 if head >> 4 != 15 else next_varint(cursor)
        while count > 0 and cursor.at <= cursor.size:
            skip_value(cursor, head & 15, depth + 1)
            count -= 1
    elif kind == IS_STRUCT and depth < DEPTH_MAX:
        read_struct(cursor, NULL, depth + 1, 0)
    else:
        cursor.at = cursor.size + 1


cdef void set_number(PageHeader* header, int64_t owner, int64_t field, int64_t number) noexcept nogil:
    """Note a number of the header itself (owner 0), or of the struct about its kind that is field `owner` of it."""
    if owner == 0:
        if field == 1:
            header.kind = number
        elif field == 2:
            header.size = number
        elif field == 3:
            header.compressed = number
        elif field == 4:
            header.has_checksum, header.checksum = True, <uint32_t>number
    elif field == 1:
        header.values = number
    elif owner == 8:
        if field == 4:
            header.encoding = number
        elif field == 5:
            header.level_bytes = number
        elif field == 6:
            header.repeat_bytes = number
    elif field == 2:
        header.encoding = number
    elif field == 3 and owner == 5:
        header.level_encoding = number


cdef void read_struct(Cursor* cursor, PageHeader* header, int32_t depth, int64_t owner) noexcept nogil:
    """Read the fields of a struct, which is field `owner` of the header where that is not NULL."""
    cdef int64_t field = 0
    cdef int64_t number
    cdef int32_t kind
    cdef uint8_t head = next_byte(cursor)
    while head != 0 and cursor.at <= cursor.size:
        field = field + (head >> 4) if head >> 4 else next_number(cursor)
        kind = head & 15
        if kind == IS_STRUCT and header != NULL and depth == 0 and (field == 5 or field == 7 or field == 8):
            read_struct(cursor, header, 1, field)
        elif kind >= 4 and kind <= 6:
            number = next_number(cursor)
            if header != NULL:
                set_number(header, owner, field, number)
        elif kind == IS_TRUE or kind == IS_FALSE:           # a bool's kind is its value
            if header != NULL and owner == 8 and field == 7:
                header.is_compressed = kind == IS_TRUE
        else:
            skip_value(cursor, kind, depth)
        head = next_byte(cursor)


cdef int64_t parse_page_header(const uint8_t* data, int64_t size, PageHeader* header) noexcept nogil:
    cdef Cursor cursor
    cursor.data, cursor.size, cursor.at = data, size, 0
    header.kind = header.size = header.compressed = header.level_bytes = header.repeat_bytes = 0
    header.encoding, header.level_encoding = ENCODING_PLAIN, ENCODING_RLE
    header.values = VALUES_UNKNOWN
    header.is_compressed, header.has_checksum = True, False
    if size <= 0:
        return 0
    read_struct(&cursor, header, 0, 0)
    return cursor.at if cursor.at <= cursor.size else 0
