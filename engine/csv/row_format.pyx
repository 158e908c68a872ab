"""Rows as CSV text: columns are joined line by line, quoting only what must be quoted, numbers written as digits.

    RowFormatter(column_count, delimiter, decimal=46, null_text=b"")
        .format(columns, row_count) -> memoryview    the rows; valid up to the next call
                                    -> None          column ``refused_column`` holds a double that needs more than
                                                     digits and a point (1e300, 0.1 + 0.2): pass it as text

    null -> nothing      '' -> ""      a value with delimiter, quote, \\n or \\r -> "...", its quotes doubled

So a null and an empty string stay apart, as RFC 4180 leaves open and this engine's reader tells them. A null may be
another text instead, which is quoted where it is a value. TEXT columns are Arrow string or binary arrays (32 bit
offsets); the kinds of numbers take arrays of just that type; everything else was turned into text before. ``Quoting``
says for each column whether its values are in quotes where they must be, always or never; a null never is.

Worst case of a text, all bytes quotes: two bytes for each, and three for each field; that much room is kept from call
to call and grows. A formatter is used by one thread.

Held by: tests/csv/test_writer.py
"""

cimport cython
from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport (int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
                          uintptr_t)
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memcpy

from engine.csv.number_text cimport NUMBER_TEXT_MAX, put_double, put_unsigned
from engine.csv.text_copy cimport COPY_SLACK, copy_unquoted, put_quoted

cpdef enum FieldKind:
    TEXT = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    DOUBLE = 9

cpdef enum Quoting:
    MINIMAL = 0
    ALWAYS = 1
    NEVER = 2

cdef struct Style:
    uint8_t delimiter
    uint8_t decimal
    int64_t null_size
    const uint8_t* null_text

cdef struct FieldColumn:
    int32_t kind                 # FieldKind
    int32_t quoting              # Quoting
    bint is_plain                # in the usual style: quotes where they must be, a point, nulls without a text
    int64_t offset               # logical index of row 0
    const uint8_t* validity      # NULL: no nulls
    const int32_t* offsets       # of text
    const uint8_t* data          # text, or numbers
    const uint8_t* data_end


cdef inline uint8_t* put_signed(uint8_t* out, int64_t value) noexcept nogil:
    if value >= 0:
        return put_unsigned(out, <uint64_t>value)
    out[0] = 45
    return put_unsigned(out + 1, 0 - <uint64_t>value)


# The end of what was written, or NULL: a double of the column needs more than digits and a point.
cdef inline uint8_t* put_number(uint8_t* out, const FieldColumn* column, int64_t index) noexcept nogil:
    cdef int32_t kind = column.kind
    if kind == DOUBLE:
        return put_double(out, (<const double*>column.data)[index])
    if kind == INT32:
        return put_signed(out, (<const int32_t*>column.data)[index])
    if kind == INT64:
        return put_signed(out, (<const int64_t*>column.data)[index])
    if kind == INT16:
        return put_signed(out, (<const int16_t*>column.data)[index])
    if kind == INT8:
        return put_signed(out, (<const int8_t*>column.data)[index])
    if kind == UINT64:
        return put_unsigned(out, (<const uint64_t*>column.data)[index])
    if kind == UINT32:
        return put_unsigned(out, (<const uint32_t*>column.data)[index])
    if kind == UINT16:
        return put_unsigned(out, (<const uint16_t*>column.data)[index])
    return put_unsigned(out, column.data[index])


# A text of the usual style. A null is copied as a text without bytes: whether one comes next is as good as random.
cdef inline uint8_t* put_text(uint8_t* out, const FieldColumn* column, int64_t index, bint is_value,
                              uint8_t delimiter) noexcept nogil:
    cdef const uint8_t* text = column.data + column.offsets[index]
    cdef int64_t size = (column.offsets[index + 1] - column.offsets[index]) * <int64_t>is_value
    if copy_unquoted(out, text, size, column.data_end, delimiter) and not ((size == 0) & is_value):
        return out + size
    return put_quoted(out, text, size, column.data_end)


cdef uint8_t* put_styled_text(uint8_t* out, const FieldColumn* column, int64_t index,
                              const Style* style) noexcept nogil:
    cdef const uint8_t* text = column.data + column.offsets[index]
    cdef int64_t size = column.offsets[index + 1] - column.offsets[index]
    if column.quoting == NEVER:
        memcpy(out, text, size)
        return out + size
    if column.quoting == ALWAYS or (size == style.null_size and memcmp(text, style.null_text, size) == 0):
        return put_quoted(out, text, size, column.data_end)
    return put_text(out, column, index, True, style.delimiter)


cdef uint8_t* put_styled_number(uint8_t* out, const FieldColumn* column, int64_t index,
                                const Style* style) noexcept nogil:
    cdef bint is_quoted = column.quoting == ALWAYS
    cdef uint8_t* end
    cdef uint8_t* point
    out[0] = 34
    out += is_quoted
    end = put_number(out, column, index)
    if end == NULL:
        return NULL
    point = <uint8_t*>memchr(out, 46, end - out)
    if point != NULL:
        point[0] = style.decimal
    end[0] = 34
    return end + is_quoted


# Caller guarantees room at out. Returns the bytes written, or -1 - column for a refused double.
cdef int64_t put_rows(uint8_t* out, const FieldColumn* columns, int64_t column_count, int64_t row_count,
                      const Style* style) noexcept nogil:
    cdef int64_t row_index, column_index, index
    cdef bint is_value
    cdef const FieldColumn* column
    cdef uint8_t* begin = out
    for row_index in range(row_count):
        for column_index in range(column_count):
            column = &columns[column_index]
            index = column.offset + row_index
            is_value = column.validity == NULL or (column.validity[index >> 3] >> (index & 7)) & 1
            if column.is_plain and column.kind == TEXT:
                out = put_text(out, column, index, is_value, style.delimiter)
            elif not is_value:
                memcpy(out, style.null_text, style.null_size)
                out += style.null_size
            elif column.is_plain:
                out = put_number(out, column, index)
            elif column.kind == TEXT:
                out = put_styled_text(out, column, index, style)
            else:
                out = put_styled_number(out, column, index, style)
            if out == NULL:
                return -1 - column_index
            out[0] = style.delimiter
            out += 1
        (out - 1)[0] = 10
    return out - begin


@cython.final
cdef class RowFormatter:
    """Formats rows of ``column_count`` columns, at least one.

    ``delimiter`` and ``decimal`` are ASCII bytes, of which no number has the first; ``null_text`` stands for nulls.
    """

    cdef FieldColumn* _columns
    cdef uint8_t* _room
    cdef int64_t _room_bytes
    cdef int64_t _column_count
    cdef Style _style
    cdef bytes _null_text
    cdef readonly int64_t refused_column

    def __cinit__(self, int64_t column_count, int delimiter, int decimal=46, bytes null_text=b""):
        if column_count < 1:
            raise ValueError("rows without columns have no text")
        self._column_count = column_count
        self._null_text = null_text
        self._style = Style(<uint8_t>delimiter, <uint8_t>decimal, len(null_text), <const uint8_t*><char*>null_text)
        self.refused_column = -1
        self._columns = <FieldColumn*>calloc(column_count, sizeof(FieldColumn))
        if self._columns == NULL:
            raise MemoryError("no memory for the columns of a CSV file")

    def __dealloc__(self):
        free(self._columns)
        free(self._room)

    def format(self, list columns not None, int64_t row_count, list quoting=None):
        """Return ``row_count`` rows as bytes, each with ``\\n`` at its end; None: see ``refused_column``.

        ``columns``: (array, FieldKind) pairs, each array with ``row_count`` values; ``quoting``: of each, MINIMAL
        without it. The view dies with the next call.
        """
        cdef int64_t room = COPY_SLACK
        cdef int64_t index, size
        if len(columns) != self._column_count:
            raise ValueError(f"{len(columns)} columns, the file has {self._column_count}")
        for index in range(self._column_count):
            room += open_column(&self._columns[index], columns[index][0], columns[index][1], row_count)
            self._set_quoting(&self._columns[index], MINIMAL if quoting is None else quoting[index])
            room += row_count * (2 + self._style.null_size)
        self._make_room(room)
        with nogil:
            size = put_rows(self._room, self._columns, self._column_count, row_count, &self._style)
        if size < 0:
            self.refused_column = -1 - size
            return None
        return PyMemoryView_FromMemory(<char*>self._room, size, PyBUF_READ)

    cdef void _set_quoting(self, FieldColumn* column, int32_t quoting) noexcept:
        column.quoting = quoting
        column.is_plain = quoting == MINIMAL and self._style.null_size == 0 and self._style.decimal == 46

    cdef int _make_room(self, int64_t size_bytes) except -1:
        if size_bytes <= self._room_bytes:
            return 0
        free(self._room)
        self._room_bytes = 0
        self._room = <uint8_t*>malloc(size_bytes)
        if self._room == NULL:
            raise MemoryError(f"no memory for a CSV block of {size_bytes} bytes")
        self._room_bytes = size_bytes
        return 0


# Fill a view of an Arrow array that the caller keeps alive; return the bytes that its text may take, separators too.
cdef int64_t open_column(FieldColumn* view, object array, int32_t kind, int64_t row_count) except -1:
    cdef list buffers = array.buffers()
    cdef object data = buffers[len(buffers) - 1]
    if len(array) != row_count:
        raise ValueError(f"a column of {len(array)} values among rows: {row_count}")
    view.kind = kind
    view.offset = array.offset
    view.validity = NULL
    view.data = view.data_end = NULL
    if buffers[0] is not None and array.null_count:
        view.validity = <const uint8_t*><uintptr_t>buffers[0].address
    if data is not None:
        view.data = <const uint8_t*><uintptr_t>data.address
        view.data_end = view.data + <int64_t>data.size
    if kind != TEXT or row_count == 0:
        return row_count * (NUMBER_TEXT_MAX + 1)
    view.offsets = <const int32_t*><uintptr_t>buffers[1].address
    return 2 * (view.offsets[view.offset + row_count] - view.offsets[view.offset]) + 3 * row_count
