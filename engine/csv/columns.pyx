"""Blocks of ordinary CSV straight into Arrow columns; whatever is not ordinary is left to Arrow's parser.

    parses_natively(type)              strings, signed integers, doubles, dates
    ColumnParser(file_schema, columns, delimiter, quote, empty_is_null)
        .parse(data, rows_max) -> batches of at most rows_max rows, of even size
                               -> None: not ordinary, nothing was done

    data ──index_fields──► ends of fields ──column by column──► offsets and bytes, numbers, validity ──► RecordBatch

Ordinary is: each record has exactly the file's columns, quotes stand around whole fields, lines end with ``\\n`` or
``\\r\\n`` and none is empty, integers are digits and a minus that fit their type, strings are UTF-8. A column with
doubles of more than fifteen digits, or with exponents, is read as text and cast by Arrow, as dates are. So what this
module returns is what Arrow's CSV reader would have returned, only sooner; where it would raise, this module returns
None and lets it.

The index of fields is kept from call to call. Used by one thread; kernels run without the GIL.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import pyarrow as pa

from engine.records.arrow_functions import pc

from engine.csv.field_index cimport INDEXES_FIELDS, FieldIndex, copy_field, index_fields
from engine.csv.field_numbers cimport parse_decimal, parse_integer, put_integer

cdef enum ColumnKind:
    TEXT = 0
    CAST_TEXT = 1                # read as text, cast by Arrow
    DOUBLE = 2
    INTEGER = 3

cdef enum:
    COPY_SLACK = 16

cdef object STRING = pa.string()
cdef dict KINDS = {
    pa.string(): TEXT, pa.date32(): CAST_TEXT, pa.float64(): DOUBLE,
    pa.int8(): INTEGER, pa.int16(): INTEGER, pa.int32(): INTEGER, pa.int64(): INTEGER,
}

# The fields of one column in a run of rows.
cdef struct ColumnRun:
    const uint8_t* data
    const uint8_t* data_end
    const int32_t* ends          # of the first row's field in this column; ends[-1] is valid
    int64_t stride               # columns of the file
    int64_t row_count
    int32_t quote
    bint is_last                 # of the record: a return may stand before the newline
    bint empty_is_null
    uint8_t* validity            # all zero at the begin
    int64_t null_count

cdef struct Field:
    const uint8_t* text
    int64_t size
    bint is_quoted


# False: a quoted field goes on after its closing quote.
cdef inline bint next_field(const ColumnRun* run, int64_t row_index, Field* field) noexcept nogil:
    cdef const int32_t* end = run.ends + row_index * run.stride
    field.text = run.data + (end - 1)[0] + 1
    field.size = run.data + end[0] - field.text
    if run.is_last and field.size and field.text[field.size - 1] == 13:
        field.size -= 1
    field.is_quoted = field.size > 0 and field.text[0] == run.quote
    if field.is_quoted:
        if field.size < 2 or field.text[field.size - 1] != run.quote:
            return False
        field.text += 1
        field.size -= 2
    return True


cdef inline bint is_null(ColumnRun* run, int64_t row_index, const Field* field) noexcept nogil:
    if field.size == 0 and not field.is_quoted and run.empty_is_null:
        run.null_count += 1
        return True
    run.validity[row_index >> 3] |= <uint8_t>(1 << (row_index & 7))
    return False


cdef int64_t text_bytes(const ColumnRun* run) noexcept nogil:
    cdef int64_t total = 0
    cdef int64_t row_index
    cdef const int32_t* end
    for row_index in range(run.row_count):
        end = run.ends + row_index * run.stride
        total += end[0] - (end - 1)[0]
    return total


# Copy with "" made "; -1: a quote stands alone.
cdef int64_t copy_doubled(uint8_t* out, const Field* field, int32_t quote) noexcept nogil:
    cdef int64_t position = 0
    cdef int64_t size = 0
    while position < field.size:
        if field.text[position] == quote:
            position += 1
            if position == field.size or field.text[position] != quote:
                return -1
        out[size] = field.text[position]
        size += 1
        position += 1
    return size


cdef bint read_text(ColumnRun* run, int32_t* offsets, uint8_t* out) noexcept nogil:
    cdef Field field
    cdef int64_t row_index
    cdef int64_t used = 0
    cdef int64_t size
    offsets[0] = 0
    for row_index in range(run.row_count):
        if not next_field(run, row_index, &field):
            return False
        if not is_null(run, row_index, &field):
            size = field.size
            if not copy_field(out + used, field.text, size, run.data_end, run.quote):
                size = copy_doubled(out + used, &field, run.quote)
                if size < 0:
                    return False
            used += size
        offsets[row_index + 1] = <int32_t>used
    return True


cdef bint read_integers(ColumnRun* run, uint8_t* out, int32_t width) noexcept nogil:
    cdef Field field
    cdef int64_t row_index
    cdef int64_t value
    cdef int64_t bound = <int64_t>(<uint64_t>1 << (8 * width - 1)) if width < 8 else 0
    for row_index in range(run.row_count):
        if not next_field(run, row_index, &field):
            return False
        value = 0
        if not is_null(run, row_index, &field):
            if not parse_integer(field.text, field.size, run.data_end, &value):
                return False
            if width < 8 and not -bound <= value < bound:
                return False
        put_integer(out, row_index, width, value)
    return True


cdef bint read_doubles(ColumnRun* run, double* out) noexcept nogil:
    cdef Field field
    cdef int64_t row_index
    for row_index in range(run.row_count):
        if not next_field(run, row_index, &field):
            return False
        out[row_index] = 0
        if is_null(run, row_index, &field):
            continue
        if not parse_decimal(field.text, field.size, run.data_end, &out[row_index]):
            return False
    return True


def parses_natively(data_type):
    """Return whether columns of an Arrow type can be read here."""
    return INDEXES_FIELDS and data_type in KINDS


@cython.final
cdef class ColumnParser:
    """Parses blocks of files of one schema, of at least two columns; ``columns`` are the names wanted, in order.

    Every wanted type must be one of ``parses_natively``. ``empty_is_null``: an unquoted empty field is null.
    """

    cdef FieldIndex _index
    cdef int32_t* _ends                  # capacity entries; the first is the -1 before the first field
    cdef int64_t _capacity
    cdef int64_t _stride
    cdef int32_t _delimiter
    cdef int32_t _quote
    cdef bint _empty_is_null
    cdef object _schema
    cdef list _wanted                    # (column of the file, kind, type)

    def __cinit__(self, file_schema not None, list columns not None, int32_t delimiter, int32_t quote,
                  bint empty_is_null):
        if len(file_schema) < 2:
            raise ValueError("files of one column are not read here")
        self._stride = len(file_schema)
        self._delimiter = delimiter
        self._quote = quote
        self._empty_is_null = empty_is_null
        self._schema = pa.schema([file_schema.field(name) for name in columns])
        self._wanted = [(file_schema.get_field_index(field.name), KINDS[field.type], field.type)
                        for field in self._schema]

    def __dealloc__(self):
        free(self._ends)

    def parse(self, const uint8_t[::1] data not None, int64_t rows_max):
        """Return batches of whole records, or None where Arrow's parser is wanted; ``data`` is not empty."""
        cdef int64_t size = data.shape[0]
        cdef int64_t row_count, step, first
        cdef int status
        if size == 0 or size >= 1 << 30:
            return None
        self._make_room(size + 65)
        with nogil:
            status = index_fields(&data[0], size, self._delimiter, self._quote, &self._index)
        row_count = self._index.newlines
        if status or not self._is_rectangle(&data[0], size):
            return None
        step = (row_count + rows_max - 1) // rows_max
        step = (row_count + step - 1) // step
        batches = []
        for first in range(0, row_count, step):
            batch = self._batch(&data[0], size, first, min(step, row_count - first))
            if batch is None:
                return None
            batches.append(batch)
        return batches

    cdef int _make_room(self, int64_t capacity) except -1:
        if capacity > self._capacity:
            free(self._ends)
            self._capacity = 0
            self._ends = <int32_t*>malloc(capacity * sizeof(int32_t))
            if self._ends == NULL:
                raise MemoryError(f"no memory for the fields of a CSV block of {capacity} bytes")
            self._capacity = capacity
            self._ends[0] = -1
        self._index.ends = self._ends + 1
        return 0

    # Every record has as many fields as the file has columns: as many newlines as there should be, each where one
    # should be, and no return anywhere else than before them.
    cdef bint _is_rectangle(self, const uint8_t* data, int64_t size) noexcept nogil:
        cdef int64_t returns = 0
        cdef int64_t row_index, end
        if self._index.count != self._index.newlines * self._stride:
            return False
        for row_index in range(self._index.newlines):
            end = self._index.ends[(row_index + 1) * self._stride - 1]
            if end != size and data[end] != 10:
                return False
            if end and data[end - 1] == 13:
                returns += 1
        return returns == self._index.returns

    cdef object _batch(self, const uint8_t* data, int64_t size, int64_t first, int64_t row_count):
        cdef ColumnRun run
        cdef int64_t column
        cdef list arrays = []
        run.data = data
        run.data_end = data + size
        run.stride = self._stride
        run.row_count = row_count
        run.quote = self._quote
        run.empty_is_null = self._empty_is_null
        for column, kind, data_type in self._wanted:
            run.ends = self._index.ends + first * self._stride + column
            run.is_last = column == self._stride - 1
            array = self._array(&run, kind, data_type)
            if array is None:
                return None
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    cdef object _array(self, ColumnRun* run, int32_t kind, object data_type):
        cdef object validity = pa.allocate_buffer((run.row_count + 7) // 8)
        cdef object values
        cdef int32_t width
        cdef bint done
        cdef uint8_t* out
        run.validity = <uint8_t*><uintptr_t>validity.address
        run.null_count = 0
        memset(run.validity, 0, (run.row_count + 7) // 8)
        if kind <= CAST_TEXT:
            return self._text_array(run, validity, data_type)
        width = data_type.byte_width
        values = pa.allocate_buffer(run.row_count * width)
        out = <uint8_t*><uintptr_t>values.address
        with nogil:
            done = read_doubles(run, <double*>out) if kind == DOUBLE else read_integers(run, out, width)
        if done:
            return pa.Array.from_buffers(data_type, run.row_count, [validity if run.null_count else None, values],
                                         run.null_count)
        return self._array(run, CAST_TEXT, data_type) if kind == DOUBLE else None

    cdef object _text_array(self, ColumnRun* run, object validity, object data_type):
        cdef object offsets = pa.allocate_buffer((run.row_count + 1) * sizeof(int32_t))
        cdef object text = pa.allocate_buffer(text_bytes(run) + COPY_SLACK)
        cdef int32_t* offset_values = <int32_t*><uintptr_t>offsets.address
        cdef uint8_t* out = <uint8_t*><uintptr_t>text.address
        cdef bint done
        with nogil:
            done = read_text(run, offset_values, out)
        if not done:
            return None
        array = pa.Array.from_buffers(STRING, run.row_count, [validity if run.null_count else None, offsets, text],
                                      run.null_count)
        try:
            if self._index.has_high_bytes:
                array.validate(full=True)
            return array if data_type == STRING else pc.cast(array, data_type)
        except pa.ArrowInvalid:
            return None
