"""Whole rows: values that lie outside go into rows that leave the process, and out of those that arrive.

    size = whole_size(codec, row) ─► write_whole(codec, row, target)     values are read straight into the row
    rows_outside(codec, buffer)                                          wide values to the codec's owner, or None

    here        │ fixed part │ "short" │ reference │     ─► value of 64 MB     (outside_values)
    on its way  │ fixed part │ "short" │ value of 64 MB ........ │
    there       │ fixed part │ "short" │ reference │     ─► value of 64 MB, in a file of that process

A reference leads nowhere in another process. So a row is made whole when it is sent, one at a time, and what arrives is
in memory until its wide values are written. After that, sorts, joins and groups hold references, as in the process from
which the row came.

Invariants: a whole row is the row that would have been made without an owner, byte for byte.
Memory: the row that is sent or has arrived. Thread: any.

Source: PostgreSQL detoasts what it sends, and toasts what it stores.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from engine.errors import CorruptBlockError
from engine.records.arrow_batch cimport KIND_BYTES
from engine.records.byte_kernels cimport load64, store32, store64
from engine.records.outside_values cimport (
    OUTSIDE_BIT,
    REFERENCE_BYTES,
    is_outside,
    outside_from,
    read_outside,
    referenced_bytes,
    write_outside,
)
from engine.records.row_check cimport check_rows
from engine.records.row_codec cimport RowCodec, row_is_null, row_size


cdef inline int64_t _stored_bytes(uint64_t word) noexcept nogil:
    """Return the bytes that a slot's value takes in its row: its own, or those of a reference."""
    return <int64_t>(word >> 32 & 0x7FFFFFFFU)


cdef inline const uint8_t* _value_of(const uint8_t* row, uint64_t word) noexcept nogil:
    return row + (word & 0xFFFFFFFFU)


cdef int _end_row(uint8_t* target, int64_t used, int64_t size) noexcept nogil:
    """Zero what is behind the last value and write the size."""
    memset(target + used, 0, <size_t>(size - used))
    store32(target, <uint32_t>size)
    return 0


cdef int64_t whole_size(RowCodec codec, const uint8_t* row) noexcept nogil:
    cdef int64_t size = codec.fixed_size
    cdef int32_t index
    cdef uint64_t word
    if codec.bytes_outside(row) == 0:
        return row_size(row)
    for index in range(codec._variable_count):
        word = load64(row + codec._variable_slots[index])
        size += <int64_t>referenced_bytes(_value_of(row, word)) if is_outside(word) else _stored_bytes(word)
    return (size + 7) & ~7


cdef int write_whole(RowCodec codec, const uint8_t* row, uint8_t* target) except -1:
    cdef int64_t used = codec.fixed_size
    cdef int32_t slot, index
    cdef uint64_t word, size
    memcpy(target, row, <size_t>used)
    for index in range(codec.column_count):
        if codec.kinds[index] < KIND_BYTES or row_is_null(row, index):
            continue
        slot = codec.slots[index]
        word = load64(row + slot)
        if is_outside(word):
            size = referenced_bytes(_value_of(row, word))
            read_outside(_value_of(row, word), target + used)
        else:
            size = word >> 32
            memcpy(target + used, _value_of(row, word), <size_t>size)
        store64(target + slot, <uint64_t>used | size << 32)
        used += <int64_t>size
    return _end_row(target, used, (used + 7) & ~7)


cdef bytes _row_outside(RowCodec codec, const uint8_t* row):
    """Return the row with its wide values at their owner, None where there is none that may go."""
    cdef int64_t used = codec.fixed_size
    cdef int64_t size = used
    cdef int32_t index
    cdef uint64_t word
    cdef uint8_t* target
    wide = {
        index for index in codec._movable
        if not is_outside(load64(row + codec.slots[index]))
        and _stored_bytes(load64(row + codec.slots[index])) >= outside_from()
    }
    if not wide:
        return None
    for index in range(codec._variable_count):
        size += _stored_bytes(load64(row + codec._variable_slots[index]))
    for index in wide:
        size += REFERENCE_BYTES - _stored_bytes(load64(row + codec.slots[index]))
    size = (size + 7) & ~7
    made = PyBytes_FromStringAndSize(NULL, size)
    target = <uint8_t*>PyBytes_AS_STRING(made)
    memcpy(target, row, <size_t>used)
    for index in range(codec.column_count):
        if codec.kinds[index] < KIND_BYTES or row_is_null(row, index):
            continue
        word = load64(row + codec.slots[index])
        if index in wide:
            write_outside(_value_of(row, word), _stored_bytes(word), codec._owner, target + used)
            word = OUTSIDE_BIT | <uint64_t>REFERENCE_BYTES << 32
        else:
            memcpy(target + used, _value_of(row, word), <size_t>_stored_bytes(word))
            word &= ~<uint64_t>0xFFFFFFFFU
        store64(target + codec.slots[index], word | <uint64_t>used)
        used += _stored_bytes(word)
    _end_row(target, used, size)
    return made


def rows_outside(RowCodec codec not None, const uint8_t[::1] buffer not None):
    """Return the rows of a buffer with their wide values at the codec's owner (``let_outside``), None: as they are.

    Raises: CorruptBlockError where sizes do not add up or an offset leads outside its row; as the owner's write_value.
    """
    cdef int64_t offset = 0
    cdef uint8_t* row
    cdef bint has_moved = False
    if codec._owner is None or buffer.shape[0] < outside_from():
        return None
    rows = []
    while offset < buffer.shape[0]:
        row = <uint8_t*>&buffer[offset]
        if buffer.shape[0] - offset < 8 or row_size(row) < 8 or row_size(row) > buffer.shape[0] - offset:
            raise CorruptBlockError(f"sizes of rows do not add up in {buffer.shape[0]} bytes of rows")
        check_rows(codec, &row, 1)
        moved = _row_outside(codec, row)
        has_moved = has_moved or moved is not None
        rows.append(moved or buffer[offset:offset + row_size(row)])
        offset += row_size(row)
    return b"".join(rows) if has_moved else None


def rows_inside(RowCodec codec not None, const uint8_t[::1] buffer not None):
    """Return the rows of a buffer with all values inside; for tests and tools. Raises: as reading values does."""
    cdef int64_t offset = 0
    rows = []
    while offset < buffer.shape[0]:
        made = PyBytes_FromStringAndSize(NULL, whole_size(codec, &buffer[offset]))
        write_whole(codec, &buffer[offset], <uint8_t*>PyBytes_AS_STRING(made))
        rows.append(made)
        offset += row_size(&buffer[offset])
    return b"".join(rows)
