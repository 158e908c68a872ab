"""The header of a Parquet page.

    PageHeader    1 kind   2 size   3 compressed   4 checksum
                  5 data page         (1 values   2 encoding   3 encoding of levels)
                  7 dictionary        (1 values   2 encoding)
                  8 data page, new    (1 values  2 nulls  3 rows  4 encoding  5, 6 bytes of levels  7 is compressed)

Source: parquet-format, PageHeader; in Thrift's compact protocol (``compact_protocol``).
Held by: tests/parquet/test_pages.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from engine.parquet.compact_protocol cimport (
    IS_STRUCT,
    IS_TRUE,
    Cursor,
    is_number,
    next_field,
    next_number,
    skip_field,
)


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


cdef void read_struct(Cursor* cursor, PageHeader* header, int64_t owner) noexcept nogil:
    """Read the fields of the header (owner 0), or of the struct about its kind that is field `owner` of it."""
    cdef int64_t field = 0
    cdef int32_t kind = next_field(cursor, &field)
    while kind:
        if kind == IS_STRUCT and owner == 0 and (field == 5 or field == 7 or field == 8):
            read_struct(cursor, header, field)
        elif is_number(kind):
            set_number(header, owner, field, next_number(cursor))
        else:
            if owner == 8 and field == 7:
                header.is_compressed = kind == IS_TRUE
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)


cdef int64_t parse_page_header(const uint8_t* data, int64_t size, PageHeader* header) noexcept nogil:
    cdef Cursor cursor
    cursor.data, cursor.size, cursor.at = data, size, 0
    header.kind = header.size = header.compressed = header.level_bytes = header.repeat_bytes = 0
    header.encoding, header.level_encoding = ENCODING_PLAIN, ENCODING_RLE
    header.values = VALUES_UNKNOWN
    header.is_compressed, header.has_checksum = True, False
    if size <= 0:
        return 0
    read_struct(&cursor, header, 0)
    return cursor.at if cursor.at <= cursor.size else 0
