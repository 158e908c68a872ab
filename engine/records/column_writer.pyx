"""One Arrow column into rows: a tight loop per width, chosen once per column.

    column: v0 v1 v2 v3 ...          targets: row0 row1 row2 row3 ...
    write_column                     *(row_i + slot) = v_i        nulls: zero the slot, set the null bit

The kind and the presence of nulls are decided before the loop. A value is copied by a move of its width (the constant
size lets the compiler do that, at any alignment). Variable values are appended at each row's cursor.

Invariants: every byte of a slot is written; null values write zeros. Caller guarantees room and zeroed null bits.

Held by: tests/records/test_row_codec.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from engine.records.arrow_batch cimport (
    ColumnView,
    KIND_BOOL,
    KIND_BYTES,
    KIND_LARGE_BYTES,
    KIND_NULL,
    column_is_null,
)
from engine.records.byte_kernels cimport copy_bytes, store64
from engine.records.nested_value cimport body_size, write_body
from engine.records.number_types cimport Offset

cdef struct Word16:
    uint64_t[2] words

cdef struct Word32:
    uint64_t[4] words

ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    Word16
    Word32

cdef enum:
    SHORT = 16                 # bytes of a copy that does not look at the length


cdef inline void _set_null(uint8_t* row, int32_t null_index) noexcept nogil:
    row[4 + (null_index >> 3)] |= <uint8_t>(1 << (null_index & 7))


cdef void _write_words(const ColumnView* column, const Word* values, int64_t start, int64_t count, int32_t slot,
                       int32_t null_index, uint8_t** targets) noexcept nogil:
    cdef int64_t row
    values += column.offset + start
    if column.validity == NULL:
        for row in range(count):
            memcpy(targets[row] + slot, values + row, sizeof(Word))
        return
    for row in range(count):
        if column_is_null(column, start + row):
            memset(targets[row] + slot, 0, sizeof(Word))
            _set_null(targets[row], null_index)
        else:
            memcpy(targets[row] + slot, values + row, sizeof(Word))


cdef void _write_wide(const ColumnView* column, int64_t start, int64_t count, int32_t slot, int32_t null_index,
                      uint8_t** targets) noexcept nogil:
    """Write fixed-size binary of any width."""
    cdef size_t width = <size_t>column.width
    cdef const uint8_t* value = column.values + (column.offset + start) * column.width
    cdef int64_t row
    for row in range(count):
        if column_is_null(column, start + row):
            memset(targets[row] + slot, 0, width)
            _set_null(targets[row], null_index)
        else:
            copy_bytes(targets[row] + slot, value, width)
        value += width


cdef void _write_bools(const ColumnView* column, int64_t start, int64_t count, int32_t slot, int32_t null_index,
                       uint8_t** targets) noexcept nogil:
    cdef int64_t bit = column.offset + start
    cdef int64_t row
    cdef bint null
    for row in range(count):
        null = column_is_null(column, start + row)
        targets[row][slot] = 0 if null else (column.values[bit >> 3] >> (bit & 7)) & 1
        if null:
            _set_null(targets[row], null_index)
        bit += 1


cdef void _write_bytes(const ColumnView* column, const Offset* offsets, int64_t start, int64_t count, int32_t slot,
                       int32_t null_index, const uint32_t* sizes, uint32_t* cursors, uint8_t** targets) noexcept nogil:
    """Append strings. Short ones are copied as 16 bytes, whatever their length, where both sides have so many.

    What such a copy writes behind the value is written again: by the next column, or zeroed as padding at the end.
    """
    cdef const uint8_t* values = column.values
    cdef bint nulls = column.validity != NULL
    cdef uint8_t* target
    cdef uint64_t length, cursor
    cdef int64_t row, limit
    offsets += column.offset + start
    limit = <int64_t>offsets[count] - SHORT
    for row in range(count):
        target = targets[row]
        if nulls and column_is_null(column, start + row):
            store64(target + slot, 0)
            _set_null(target, null_index)
            continue
        length = <uint64_t>(offsets[row + 1] - offsets[row])
        cursor = cursors[row]
        store64(target + slot, cursor | (length << 32))
        if length <= SHORT and offsets[row] <= limit and cursor + SHORT <= sizes[row]:
            memcpy(target + cursor, values + offsets[row], SHORT)
        else:
            copy_bytes(target + cursor, values + offsets[row], length)
        cursors[row] = <uint32_t>(cursor + length)


cdef void _write_nested(const ColumnView* column, int64_t start, int64_t count, int32_t slot, int32_t null_index,
                        uint32_t* cursors, uint8_t** targets) noexcept nogil:
    cdef uint8_t* target
    cdef uint64_t length
    cdef int64_t row
    for row in range(count):
        target = targets[row]
        if column_is_null(column, start + row):
            store64(target + slot, 0)
            _set_null(target, null_index)
            continue
        length = <uint64_t>(write_body(column, start + row, 1, target + cursors[row]) - (target + cursors[row]))
        store64(target + slot, cursors[row] | (length << 32))
        cursors[row] += <uint32_t>length


cdef void write_column(const ColumnView* column, int64_t start, int64_t count, int32_t slot, int32_t null_index,
                       const uint32_t* sizes, uint32_t* cursors, uint8_t** targets) noexcept nogil:
    """Write one column of count rows from start on."""
    cdef const uint8_t* values = column.values
    cdef int64_t row
    if column.kind == KIND_NULL:
        for row in range(count):
            _set_null(targets[row], null_index)
    elif column.kind == KIND_BOOL:
        _write_bools(column, start, count, slot, null_index, targets)
    elif column.kind == KIND_BYTES:
        _write_bytes[int32_t](column, <const int32_t*>column.offsets, start, count, slot, null_index, sizes, cursors,
                              targets)
    elif column.kind == KIND_LARGE_BYTES:
        _write_bytes[int64_t](column, <const int64_t*>column.offsets, start, count, slot, null_index, sizes, cursors,
                              targets)
    elif column.kind > KIND_LARGE_BYTES:
        _write_nested(column, start, count, slot, null_index, cursors, targets)
    elif column.width == 8:
        _write_words[uint64_t](column, <const uint64_t*>values, start, count, slot, null_index, targets)
    elif column.width == 4:
        _write_words[uint32_t](column, <const uint32_t*>values, start, count, slot, null_index, targets)
    elif column.width == 1:
        _write_words[uint8_t](column, values, start, count, slot, null_index, targets)
    elif column.width == 2:
        _write_words[uint16_t](column, <const uint16_t*>values, start, count, slot, null_index, targets)
    elif column.width == 16:
        _write_words[Word16](column, <const Word16*>values, start, count, slot, null_index, targets)
    elif column.width == 32:
        _write_words[Word32](column, <const Word32*>values, start, count, slot, null_index, targets)
    else:
        _write_wide(column, start, count, slot, null_index, targets)


cdef void _add_byte_sizes(const ColumnView* column, const Offset* offsets, int64_t start, int64_t count,
                          uint32_t* sizes) noexcept nogil:
    cdef int64_t row
    offsets += column.offset + start
    if column.validity == NULL:
        for row in range(count):
            sizes[row] += <uint32_t>(offsets[row + 1] - offsets[row])
        return
    for row in range(count):
        # All ones where the value is not null: no branch to guess.
        sizes[row] += <uint32_t>(offsets[row + 1] - offsets[row]) & (<uint32_t>column_is_null(column, start + row) - 1U)


cdef void add_variable_sizes(const ColumnView* column, int64_t start, int64_t count, uint32_t* sizes) noexcept nogil:
    """Add the bytes of each row's variable value; columns without variable values add nothing."""
    cdef int64_t row
    if column.kind == KIND_BYTES:
        _add_byte_sizes[int32_t](column, <const int32_t*>column.offsets, start, count, sizes)
    elif column.kind == KIND_LARGE_BYTES:
        _add_byte_sizes[int64_t](column, <const int64_t*>column.offsets, start, count, sizes)
    elif column.kind > KIND_LARGE_BYTES:
        for row in range(count):
            if not column_is_null(column, start + row):
                sizes[row] += <uint32_t>body_size(column, start + row, 1)
