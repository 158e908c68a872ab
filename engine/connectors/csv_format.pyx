"""Rows as CSV text: columns of strings are joined line by line, quoting only what must be quoted.

    format_rows(columns, row_count, delimiter) -> bytes

    null -> nothing      '' -> ""      a value with delimiter, quote, \\n or \\r -> "...", its quotes doubled

So a null and an empty string stay apart, as RFC 4180 leaves open and this engine's reader tells them. ``columns`` are
Arrow string or binary arrays (32 bit offsets); everything else was turned into text before. Columns of numbers and
times need no quotes and skip the search (``is_plain``).

Worst case, all bytes quotes: two bytes for each, and three for each field; that much is taken and given back.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef struct TextColumn:
    const uint8_t* validity      # NULL: no nulls
    const int32_t* offsets
    const uint8_t* data
    int64_t offset               # logical index of row 0
    bint is_plain                # never needs quotes


cdef inline bint needs_quotes(const uint8_t* text, int64_t size, const uint8_t* special) noexcept nogil:
    cdef int64_t position
    for position in range(size):
        if special[text[position]]:
            return True
    return False


cdef inline uint8_t* put_quoted(uint8_t* out, const uint8_t* text, int64_t size) noexcept nogil:
    cdef int64_t position
    out[0] = 34
    out += 1
    for position in range(size):
        if text[position] == 34:
            out[0] = 34
            out += 1
        out[0] = text[position]
        out += 1
    out[0] = 34
    return out + 1


# Short fields are most: copy them by bytes, without a call.
cdef inline uint8_t* put_plain(uint8_t* out, const uint8_t* text, int64_t size) noexcept nogil:
    cdef int64_t position
    if size > 16:
        memcpy(out, text, size)
        return out + size
    for position in range(size):
        out[position] = text[position]
    return out + size


# Caller guarantees room for 2 * bytes + 3 * fields + rows at out. Returns the end of what was written.
cdef uint8_t* put_rows(uint8_t* out, const TextColumn* columns, int64_t column_count, int64_t row_count,
                       uint8_t delimiter, const uint8_t* special) noexcept nogil:
    cdef int64_t row_index, column_index, bit, begin, size
    cdef const TextColumn* column
    for row_index in range(row_count):
        for column_index in range(column_count):
            if column_index:
                out[0] = delimiter
                out += 1
            column = &columns[column_index]
            bit = column.offset + row_index
            if column.validity != NULL and not (column.validity[bit >> 3] >> (bit & 7)) & 1:
                continue
            begin = column.offsets[bit]
            size = column.offsets[bit + 1] - begin
            if not column.is_plain and (size == 0 or needs_quotes(column.data + begin, size, special)):
                out = put_quoted(out, column.data + begin, size)
            else:
                out = put_plain(out, column.data + begin, size)
        out[0] = 10
        out += 1
    return out


def format_rows(list columns not None, int64_t row_count, int delimiter):
    """Return rows as CSV bytes, each with ``\\n`` at its end.

    ``columns``: (array, is_plain) pairs; arrays of string or binary type with ``row_count`` values. ``delimiter``: an
    ASCII character that is neither quote nor line end.
    """
    cdef int64_t column_count = len(columns)
    cdef int64_t data_bytes = 0
    cdef int64_t index
    cdef uint8_t special[256]
    cdef TextColumn* views
    cdef uint8_t* begin
    cdef uint8_t* end
    cdef bytes result
    for index in range(256):
        special[index] = 0
    special[delimiter] = special[34] = special[10] = special[13] = 1
    views = <TextColumn*>malloc(max(1, column_count) * sizeof(TextColumn))
    if views == NULL:
        raise MemoryError("no memory for the columns of a CSV block")
    try:
        for index in range(column_count):
            data_bytes += open_column(&views[index], columns[index][0], columns[index][1], row_count)
        begin = <uint8_t*>malloc(2 * data_bytes + 3 * column_count * row_count + row_count + 1)
        if begin == NULL:
            raise MemoryError(f"no memory for a CSV block of {row_count} rows")
        with nogil:
            end = put_rows(begin, views, column_count, row_count, <uint8_t>delimiter, special)
        try:
            result = PyBytes_FromStringAndSize(<char*>begin, end - begin)
        finally:
            free(begin)
        return result
    finally:
        free(views)


# Fill a view of an Arrow array that the caller keeps alive; return the bytes of its values.
cdef int64_t open_column(TextColumn* view, object array, bint is_plain, int64_t row_count) except -1:
    cdef object validity, offsets, data
    if len(array) != row_count:
        raise ValueError(f"a column of {len(array)} values among rows: {row_count}")
    validity, offsets, data = array.buffers()
    view.offset = array.offset
    view.is_plain = is_plain
    view.validity = NULL
    view.data = NULL
    if validity is not None and array.null_count:
        view.validity = <const uint8_t*><uintptr_t>validity.address
    if row_count == 0:
        return 0
    view.offsets = <const int32_t*><uintptr_t>offsets.address
    if data is not None:
        view.data = <const uint8_t*><uintptr_t>data.address
    return view.offsets[view.offset + row_count] - view.offsets[view.offset]
