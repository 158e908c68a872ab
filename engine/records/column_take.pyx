"""ColumnTake: columns of fixed width by row, written into a batch in the making, all of them at once.

    take = ColumnTake(capacity)                     columns at most
    take.add(place, column) ...                     False: not of this kind, Arrow's take is for it
    take.take(builder, rows, NULL, count)           a row as often as one likes, in any order

What Arrow's ``take`` does column by column, each with an array of indices and an array of values that are checked and
passed to Arrow, and with the GIL released four times. Here it is released once for all columns.

Invariants: rows are not checked. A column without nulls has none in the result; one with nulls keeps them.
Limits: not bits of bools, texts, or anything nested.

Held by: tests/join/test_taken_columns.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from engine.records.arrow_batch cimport KIND_FIXED_BYTES, KIND_INT8, ColumnView
from engine.records.batch_builder cimport BatchBuilder, padded
from engine.records.number_types cimport Word

@cython.final
cdef class ColumnTake:
    """Args: capacity: columns that are taken together at most. Thread: one at a time."""

    def __cinit__(self, int32_t capacity):
        self._capacity = capacity
        self._columns = <TakenColumn*> calloc(<size_t> capacity + 1, sizeof(TakenColumn))
        if self._columns == NULL:
            raise MemoryError("columns that are taken by row")

    def __dealloc__(self):
        free(self._columns)

    cdef bint add(self, int32_t place, const ColumnView* source) noexcept nogil:
        if not KIND_INT8 <= source.kind <= KIND_FIXED_BYTES or self._count == self._capacity:
            return False
        self._columns[self._count].source = source
        self._columns[self._count].place = place
        self._count += 1
        return True

    cdef int take(self, BatchBuilder builder, const int64_t* rows, const int32_t* numbers, int64_t count) except -1:
        cdef int32_t column_count = self._count
        cdef int32_t index
        cdef int64_t size = 0
        cdef TakenColumn* column
        cdef uint8_t* memory
        self._count = 0
        if column_count == 0:
            return 0
        for index in range(column_count):
            size += bytes_of_bits(&self._columns[index], count) + padded(count * self._columns[index].source.width)
        memory = builder.allocate(size)
        for index in range(column_count):
            column = &self._columns[index]
            column.validity = memory if column.source.validity != NULL else NULL
            memory += bytes_of_bits(column, count)
            column.values = memory
            memory += padded(count * column.source.width)
        with nogil:
            for index in range(column_count):
                if rows != NULL:
                    take_column(&self._columns[index], rows, count)
                else:
                    take_column(&self._columns[index], numbers, count)
        for index in range(column_count):
            column = &self._columns[index]
            builder.set_values(column.place, column.null_count, column.validity, NULL, column.values)
        return 0


cdef int64_t bytes_of_bits(const TakenColumn* column, int64_t count) noexcept nogil:
    return padded((count + 7) >> 3) if column.source.validity != NULL else 0


cdef void take_column(TakenColumn* column, const RowNumber* rows, int64_t count) noexcept nogil:
    cdef const ColumnView* source = column.source
    cdef int64_t width = source.width
    cdef const uint8_t* values = source.values + source.offset * width
    cdef int64_t row
    column.null_count = 0
    if column.validity != NULL:
        column.null_count = count - take_bits(source.validity, source.offset, rows, count, column.validity)
    if width == 8:
        take_words(<const uint64_t*> values, rows, count, <uint64_t*> column.values)
    elif width == 4:
        take_words(<const uint32_t*> values, rows, count, <uint32_t*> column.values)
    elif width == 2:
        take_words(<const uint16_t*> values, rows, count, <uint16_t*> column.values)
    elif width == 1:
        take_words(values, rows, count, column.values)
    elif width == 16:
        for row in range(count):
            memcpy(column.values + 16 * row, values + 16 * <int64_t> rows[row], 16)
    else:
        for row in range(count):
            memcpy(column.values + width * row, values + width * <int64_t> rows[row], <size_t> width)


cdef void take_words(const Word* values, const RowNumber* rows, int64_t count, Word* target) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        target[row] = values[rows[row]]


cdef int64_t take_bits(const uint8_t* bits, int64_t offset, const RowNumber* rows, int64_t count,
                       uint8_t* target) noexcept nogil:
    cdef int64_t row, bit, ones = 0
    cdef uint8_t value
    memset(target, 0, <size_t> ((count + 7) >> 3))
    for row in range(count):
        bit = offset + rows[row]
        value = (bits[bit >> 3] >> (bit & 7)) & 1
        target[row >> 3] |= value << (row & 7)
        ones += value
    return ones
