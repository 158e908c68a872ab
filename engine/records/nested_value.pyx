"""Nested values as bytes: measuring and writing them. The format is that of ``layout.py``.

    sequence(n) = null bits | body        body(list) = counts | sequence(element)       body(struct) = sequences

A value is columnar in the small: every level is a loop over a range of its Arrow column, so a list of a thousand
integers is one copy. Ranges are taken as Arrow has them: what lies under a null is carried along.

Cost: proportional to the bytes written; recursion over the type, not over the data.
Source: Flink's BinaryArrayData and NestedRowData; theirs are arrays of slots, ours is columnar.

Held by: tests/records/test_row_codec.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from engine.records.arrow_batch cimport (
    ColumnView,
    KIND_BOOL,
    KIND_BYTES,
    KIND_FIXED_LIST,
    KIND_LARGE_BYTES,
    KIND_LARGE_LIST,
    KIND_LIST,
    KIND_NULL,
    KIND_STRUCT,
    column_is_null,
)
from engine.records.byte_kernels cimport store32


cdef inline int64_t _boundary(const ColumnView* column, int64_t row) noexcept nogil:
    """Return the offset at which the value of a row begins; row may be one past the last."""
    if column.kind == KIND_LARGE_BYTES or column.kind == KIND_LARGE_LIST:
        return (<const int64_t*>column.offsets)[column.offset + row]
    return (<const int32_t*>column.offsets)[column.offset + row]


cdef inline uint64_t _bit_bytes(int64_t count) noexcept nogil:
    return <uint64_t>((count + 7) >> 3)


cdef uint64_t _sequence_size(const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    return _bit_bytes(count) + body_size(column, start, count)


cdef uint64_t body_size(const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    """Return the bytes of the body of count rows from start on."""
    cdef uint64_t size = 0
    cdef int64_t first
    cdef int32_t index
    if column.kind == KIND_NULL:
        return 0
    if column.kind == KIND_BOOL:
        return _bit_bytes(count)
    if column.kind == KIND_STRUCT:
        for index in range(column.child_count):
            size += _sequence_size(&column.children[index], column.offset + start, count)
        return size
    if column.kind == KIND_FIXED_LIST:
        return _sequence_size(column.children, (column.offset + start) * column.width, count * column.width)
    if column.kind < KIND_BYTES:
        return <uint64_t>(count * column.width)
    if count == 0:
        # The offsets of an empty column may be missing altogether.
        return 0 if column.kind <= KIND_LARGE_BYTES else _sequence_size(column.children, 0, 0)
    first = _boundary(column, start)
    size = <uint64_t>(count * 4)
    if column.kind <= KIND_LARGE_BYTES:
        return size + <uint64_t>(_boundary(column, start + count) - first)
    return size + _sequence_size(column.children, first, _boundary(column, start + count) - first)


cdef uint8_t* _write_null_bits(const ColumnView* column, int64_t start, int64_t count,
                               uint8_t* target) noexcept nogil:
    cdef int64_t row
    memset(target, 0, _bit_bytes(count))
    if column.validity != NULL or column.kind == KIND_NULL:
        for row in range(count):
            if column_is_null(column, start + row):
                target[row >> 3] |= <uint8_t>(1 << (row & 7))
    return target + _bit_bytes(count)


cdef uint8_t* _write_sequence(const ColumnView* column, int64_t start, int64_t count,
                              uint8_t* target) noexcept nogil:
    return write_body(column, start, count, _write_null_bits(column, start, count, target))


cdef uint8_t* _write_lengths(const ColumnView* column, int64_t start, int64_t count,
                             uint8_t* target) noexcept nogil:
    """Write the length (or element count) of each value as uint32."""
    cdef int64_t row
    for row in range(start, start + count):
        store32(target, <uint32_t>(_boundary(column, row + 1) - _boundary(column, row)))
        target += 4
    return target


cdef uint8_t* _write_bits(const ColumnView* column, int64_t start, int64_t count, uint8_t* target) noexcept nogil:
    cdef int64_t bit = column.offset + start
    cdef int64_t row
    memset(target, 0, _bit_bytes(count))
    for row in range(count):
        target[row >> 3] |= <uint8_t>(((column.values[bit >> 3] >> (bit & 7)) & 1) << (row & 7))
        bit += 1
    return target + _bit_bytes(count)


cdef uint8_t* write_body(const ColumnView* column, int64_t start, int64_t count, uint8_t* target) noexcept nogil:
    """Write the body of count rows from start on; caller guarantees body_size() bytes at target."""
    cdef int64_t first, size
    cdef int32_t index
    if column.kind == KIND_NULL:
        return target
    if column.kind == KIND_BOOL:
        return _write_bits(column, start, count, target)
    if column.kind == KIND_STRUCT:
        for index in range(column.child_count):
            target = _write_sequence(&column.children[index], column.offset + start, count, target)
        return target
    if column.kind == KIND_FIXED_LIST:
        return _write_sequence(column.children, (column.offset + start) * column.width, count * column.width, target)
    if column.kind < KIND_BYTES:
        size = count * column.width
        if size:
            memcpy(target, column.values + (column.offset + start) * column.width, <size_t>size)
        return target + size
    if count == 0:
        return target if column.kind <= KIND_LARGE_BYTES else _write_sequence(column.children, 0, 0, target)
    target = _write_lengths(column, start, count, target)
    first = _boundary(column, start)
    size = _boundary(column, start + count) - first
    if column.kind > KIND_LARGE_BYTES:
        return _write_sequence(column.children, first, size, target)
    if size:
        memcpy(target, column.values + first, <size_t>size)
    return target + size
