"""Out-of-line values: a wide value lies in a file, the row holds a reference of 112 bytes in its place.

    move_outside(batch, column, owner)     wide values of a column ─► owner.find_value, else owner.write_value;
                                           references in the batch's view
    read_outside(reference, target)        ─► find(store).read_value(file, offset, checksum, target)

    reference   0       8           16      20     24       32        36              40        48              112
                +-------+-----------+-------+------+--------+---------+---------------+---------+----------------+
                | bytes | process   | store | file | offset | check-  | CRC32 of the  | hash    | first bytes of |
                | of it | random    |       |      | in it  | sum     | reference     | of it   | the value      |
                +-------+-----------+-------+------+--------+---------+---------------+---------+----------------+

A column with wide values is replaced in the opened batch by a view whose values are references where they are wide and
the value itself where not; nested values are replaced by their bodies. So measuring and encoding know nothing of it,
except for one bit that is set in the slots afterwards (``ArrowBatch.outside``).

Whether single values are asked where they lie is decided once a batch, by the loop over it:

    columns of a batch      one that has references has a flag for each row (``ArrowBatch.outside``), others have none
    rows and groups         values_lie_outside(): write_outside notes that there is such a value in the process, and the
                            note goes when no store is open any more

Loops over columns and groups have two forms. Where no value lies outside, sizes and bytes are taken as they are. Loops
that follow the offsets of rows, such as a comparison of two rows, look at the bit of each value whatever is noted: rows
of another process say of themselves what they like.

Invariants: a value is written once, whatever rows have it, from Arrow's buffer, and read into Arrow's buffer; the
checksum of a reference is proved before it is followed. Keys lie outside too (``outside_keys``): hash and first bytes
are here for them.
Limits: a store of another process cannot be read yet. Thread: any.

Source: PostgreSQL's TOAST; a reference with identity and prefix instead of a table.
"""

import os
from zlib import crc32

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from engine.errors import CorruptBlockError, NotYetSupportedError, SpillError
from engine.memory.value_stores import any_open, find
from engine.records.arrow_batch cimport (
    ArrowBatch,
    ColumnView,
    KIND_BYTES,
    KIND_LARGE_BYTES,
    column_is_null,
)
from engine.records.hash_mix cimport hash_start, mix_bytes
from engine.records.nested_value cimport body_size, write_body

#: size from which values lie out of line, where the owner of the rows allows it
cdef int64_t DEFAULT_BYTES = 1 << 20
cdef int64_t limit_bytes = DEFAULT_BYTES

OUTSIDE_BIT = <uint64_t>1 << 63

cdef uint64_t process = int.from_bytes(os.urandom(8), "little")
cdef bint any_outside = False

cdef packed struct Reference:
    uint64_t size
    uint64_t process
    uint32_t store
    uint32_t file
    uint64_t offset
    uint32_t checksum
    uint32_t own_checksum
    uint64_t hash
    uint8_t[PREFIX_BYTES] prefix


def _changed_process():
    """A fork has other stores than its parent: its references must not be taken for the parent's."""
    global process
    process = int.from_bytes(os.urandom(8), "little")


os.register_at_fork(after_in_child=_changed_process)


def set_outside_bytes(size=None):
    """Set from how many bytes on values lie outside (None: the default); for tests."""
    global limit_bytes
    limit_bytes = DEFAULT_BYTES if size is None else size


cdef int64_t outside_from() noexcept nogil:
    return limit_bytes


cdef bint values_lie_outside() noexcept nogil:
    return any_outside


cdef int forget_closed_stores() except -1:
    global any_outside
    # A value is written into an open store, and counted as outside afterwards: what is written now is not forgotten.
    any_outside = any_outside and any_open()
    return 0


cdef int64_t outside_bytes(const uint8_t* row, const int32_t* slots, int32_t slot_count) noexcept nogil:
    cdef int64_t total = 0
    cdef int32_t index
    cdef uint64_t word
    for index in range(slot_count):
        word = (<const uint64_t*>(row + slots[index]))[0]
        if word & OUTSIDE_BIT:
            if true_length(row, word) >= 0:
                total += true_length(row, word)
    return total


cdef int64_t true_length(const uint8_t* row, uint64_t word) noexcept nogil:
    cdef uint64_t offset = word & 0xFFFFFFFFU
    cdef uint64_t length = word >> 32 & 0x7FFFFFFFU
    if offset + length > <uint64_t>((<const uint32_t*>row)[0]):
        return -1
    if not word & OUTSIDE_BIT:
        return <int64_t>length
    if length != REFERENCE_BYTES or referenced_bytes(row + offset) > <uint64_t>1 << 32:
        return -1
    return <int64_t>referenced_bytes(row + offset)


cdef uint32_t _own_checksum(const Reference* reference):
    """Return the checksum of a reference, its own field zero."""
    cdef Reference copy = reference[0]
    copy.own_checksum = 0
    return crc32(PyMemoryView_FromMemory(<char*>&copy, REFERENCE_BYTES, PyBUF_READ))


cdef int write_outside(const uint8_t* value, int64_t size, object owner, uint8_t* target) except -1:
    global any_outside
    cdef Reference reference
    memset(&reference, 0, sizeof(reference))
    with nogil:
        reference.hash = mix_bytes(hash_start(), value, <uint64_t>size)
    view = PyMemoryView_FromMemory(<char*>value, size, PyBUF_READ)
    place = owner.find_value(view, reference.hash)
    if place is None:
        place = owner.write_value(view, reference.hash)
    store, file, offset, value_checksum = place
    any_outside = True
    reference.size = <uint64_t>size
    reference.process = process
    reference.store = store
    reference.file = file
    reference.offset = offset
    reference.checksum = value_checksum
    memcpy(reference.prefix, value, <size_t>min(size, <int64_t>PREFIX_BYTES))
    reference.own_checksum = _own_checksum(&reference)
    memcpy(target, &reference, REFERENCE_BYTES)
    return 0


cdef bint same_place(const uint8_t* left, const uint8_t* right) noexcept nogil:
    # size, process, store, file, offset
    return memcmp(left, right, 32) == 0


cdef object _store_of(const Reference* reference):
    """Return the store of a reference that is sound."""
    if reference.own_checksum != _own_checksum(reference):
        raise CorruptBlockError("a row is damaged: its reference to a value outside does not have its checksum")
    if reference.process != process:
        raise NotYetSupportedError("reading a wide value that another process holds")
    store = find(reference.store)
    if store is None:
        raise SpillError(f"a wide value of {reference.size} bytes cannot be read: its store {reference.store} is "
                         "closed; whoever read the rows came after the end of the job that wrote them")
    return store


cdef int read_outside(const uint8_t* source, uint8_t* target) except -1:
    cdef Reference reference
    memcpy(&reference, source, REFERENCE_BYTES)
    store = _store_of(&reference)
    store.read_value(reference.file, reference.offset, reference.checksum,
                     PyMemoryView_FromMemory(<char*>target, <Py_ssize_t>reference.size, PyBUF_WRITE))
    return 0


cdef object open_outside(const uint8_t* source):
    cdef Reference reference
    memcpy(&reference, source, REFERENCE_BYTES)
    store = _store_of(&reference)
    return store.open_value(reference.file, reference.offset, reference.size, reference.checksum)


cdef int64_t _value_bytes(const ColumnView* column, int64_t row, int64_t count) noexcept nogil:
    """Return the bytes of the values of count rows in a row's variable part, nulls taken for values."""
    cdef int64_t first = column.offset + row
    if column.kind == KIND_BYTES:
        return (<const int32_t*>column.offsets)[first + count] - (<const int32_t*>column.offsets)[first]
    if column.kind == KIND_LARGE_BYTES:
        return (<const int64_t*>column.offsets)[first + count] - (<const int64_t*>column.offsets)[first]
    return <int64_t>body_size(column, row, count)


cdef int64_t _wide_count(const ColumnView* column, int64_t count, int64_t* narrow_bytes) noexcept nogil:
    """Return the number of values that are wide, and the bytes of the others."""
    cdef int64_t row, size
    cdef int64_t wide = 0
    narrow_bytes[0] = 0
    # The sum tells that there is none: no look at single values.
    if count == 0 or _value_bytes(column, 0, count) < limit_bytes:
        return 0
    for row in range(count):
        if column_is_null(column, row):
            continue
        size = _value_bytes(column, row, 1)
        if size >= limit_bytes:
            wide += 1
        else:
            narrow_bytes[0] += size
    return wide


cdef const uint8_t* _bytes_of(const ColumnView* column, int64_t row, int64_t size, uint8_t* body) noexcept nogil:
    """Return the address of a value; a nested one's body is written to body first."""
    if column.kind == KIND_BYTES:
        return column.values + (<const int32_t*>column.offsets)[column.offset + row]
    if column.kind == KIND_LARGE_BYTES:
        return column.values + (<const int64_t*>column.offsets)[column.offset + row]
    write_body(column, row, 1, body)
    return body


cdef int _move_wide(const ColumnView* column, int64_t row, int64_t size, object owner, uint8_t* target) except -1:
    """Write one wide value, by way of memory of its own where it is nested."""
    cdef uint8_t* body = NULL
    if column.kind > KIND_LARGE_BYTES:
        body = <uint8_t*>malloc(<size_t>size)
        if body == NULL:
            raise MemoryError(f"no memory for a nested value of {size} bytes")
    try:
        return write_outside(_bytes_of(column, row, size, body), size, owner, target)
    finally:
        free(body)


cdef int move_outside(ArrowBatch batch, int32_t index, object owner) except -1:
    cdef ColumnView* column = &batch.columns[index]
    cdef int64_t count = batch.row_count
    cdef int64_t narrow_bytes, wide, row, size
    cdef int64_t end = 0
    cdef int64_t* offsets
    cdef uint8_t* flags
    cdef uint8_t* values
    cdef const uint8_t* value
    with nogil:
        wide = _wide_count(column, count, &narrow_bytes)
    if wide == 0:
        return 0
    offset_buffer = PyBytes_FromStringAndSize(NULL, (count + 1) * 8)
    flag_buffer = PyBytes_FromStringAndSize(NULL, count)
    value_buffer = PyBytes_FromStringAndSize(NULL, narrow_bytes + wide * REFERENCE_BYTES)
    offsets = <int64_t*>PyBytes_AS_STRING(offset_buffer)
    flags = <uint8_t*>PyBytes_AS_STRING(flag_buffer)
    values = <uint8_t*>PyBytes_AS_STRING(value_buffer)
    memset(flags, 0, <size_t>count)
    offsets[0] = 0
    for row in range(count):
        if not column_is_null(column, row):
            size = _value_bytes(column, row, 1)
            if size >= limit_bytes:
                _move_wide(column, row, size, owner, values + end)
                flags[row] = 1
                end += REFERENCE_BYTES
            else:
                value = _bytes_of(column, row, size, values + end)
                if value != values + end and size:
                    memcpy(values + end, value, <size_t>size)
                end += size
        offsets[row + 1] = end
    # offsets are looked up behind column.offset, which the null bits need
    column.kind = KIND_LARGE_BYTES
    column.offsets = <const uint8_t*>(offsets - column.offset)
    column.values = values
    batch.keep_outside(index, flags, (offset_buffer, flag_buffer, value_buffer))
    return 0
