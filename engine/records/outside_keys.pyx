"""Out-of-line keys, which lie outside of their rows: compared without being in memory whole.

    hash            when the value is moved outside, once          ─► its reference (``outside_values``), ``hashing``
    first 64 bytes  there too                                      ─► normalized keys, key bytes, most comparisons
    equal_outside(left, right)      sizes ─► hashes ─► first bytes ─► blocks
    compare_outside(left, right)    first bytes ─► blocks ─► sizes
    raise_failed_comparison()       at the end of a step: what could not be read

    left    │ block 0 │ block 1 │ ...       files (or memory, where the value is there), read 256 KiB at a time and
    right   │ block 0 │ block 1 │ ...       checked, until one differs

Sorts, joins and groups compare in loops without the GIL, which can raise nothing. A comparison of blocks takes the GIL.
An error is kept for its thread, and the loop goes on with some answer; the caller of the loop asks for the error before
it uses the result.

Invariants: values of one place are equal without being read. A block is proved before it is compared.
Memory: two blocks for each comparison under way. Cost: 0.1 ms a block, for keys that have 64 bytes in common only.

Source: PostgreSQL compares toasted keys by fetching them whole; ours is the block-wise reading of a merge.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

import threading

from engine.memory.value_stores import BLOCK_BYTES
from engine.records.outside_values cimport (
    PREFIX_BYTES,
    PREFIX_OFFSET,
    known_bytes,
    open_outside,
    referenced_bytes,
    referenced_hash,
    same_place,
)

cdef uint64_t block_bytes = BLOCK_BYTES

#: errors of comparisons, by thread  # guarded by: the GIL
cdef dict failures = {}
cdef bint any_failed = False


@cython.final
cdef class ComparedValue:
    """One of two values, block by block."""

    cdef uint64_t size
    cdef const uint8_t* _memory     # of a value that is there
    cdef object _stored             # StoredValue of one outside, else None
    cdef object _buffer             # bytearray for one block of it

    cdef const uint8_t* block(self, uint64_t index) except NULL:
        cdef uint64_t begin = index * block_bytes
        if self._stored is None:
            return self._memory + begin
        self._stored.read_block(index, memoryview(self._buffer)[:min(block_bytes, self.size - begin)])
        return <const uint8_t*>PyByteArray_AS_STRING(self._buffer)


cdef ComparedValue _opened(const uint8_t* address, uint64_t length):
    cdef ComparedValue value = ComparedValue()
    if not length & LENGTH_OUTSIDE:
        value.size = length
        value._memory = address
        return value
    value.size = referenced_bytes(address)
    value._stored = open_outside(address)
    value._buffer = bytearray(min(block_bytes, value.size))
    return value


cdef int _compare_blocks(const uint8_t* left_address, uint64_t left_length, const uint8_t* right_address,
                         uint64_t right_length) except -2:
    cdef ComparedValue left = _opened(left_address, left_length)
    cdef ComparedValue right = _opened(right_address, right_length)
    cdef uint64_t common = min(left.size, right.size)
    cdef uint64_t index = 0
    cdef const uint8_t* left_block
    cdef const uint8_t* right_block
    cdef int order
    while index * block_bytes < common:
        left_block = left.block(index)
        right_block = right.block(index)
        with nogil:
            order = memcmp(left_block, right_block, <size_t>min(block_bytes, common - index * block_bytes))
        if order != 0:
            return -1 if order < 0 else 1
        index += 1
    return (left.size > right.size) - (left.size < right.size)


cdef int _compare_or_note(const uint8_t* left, uint64_t left_length, const uint8_t* right,
                          uint64_t right_length) noexcept nogil:
    """Compare blocks; -1, and a note for the thread, where one cannot be read."""
    global any_failed
    cdef int order = -1
    with gil:
        try:
            order = _compare_blocks(left, left_length, right, right_length)
        except Exception as error:      # the loop that compares raises it: raise_failed_comparison
            failures.setdefault(threading.get_ident(), error)
            any_failed = True
    return order


cdef int raise_failed_comparison() except -1:
    global any_failed
    if not any_failed:
        return 0
    error = failures.pop(threading.get_ident(), None)
    any_failed = bool(failures)
    if error is not None:
        raise error
    return 0


cdef inline uint64_t _size(const uint8_t* value, uint64_t length) noexcept nogil:
    return referenced_bytes(value) if length & LENGTH_OUTSIDE else length


cdef inline const uint8_t* _known(const uint8_t* value, uint64_t length, uint64_t* size) noexcept nogil:
    """Return the bytes of a value that are here, and how many."""
    if length & LENGTH_OUTSIDE:
        size[0] = known_bytes(value)
        return value + PREFIX_OFFSET
    size[0] = length
    return value


cdef bint equal_outside(const uint8_t* left, uint64_t left_length, const uint8_t* right,
                        uint64_t right_length) noexcept nogil:
    cdef uint64_t left_known, right_known
    cdef uint64_t size = _size(left, left_length)
    if size != _size(right, right_length):
        return False
    if left_length & right_length & LENGTH_OUTSIDE:
        if referenced_hash(left) != referenced_hash(right):
            return False
        if same_place(left, right):
            return True
    if memcmp(_known(left, left_length, &left_known), _known(right, right_length, &right_known),
              <size_t>min(size, <uint64_t>PREFIX_BYTES)) != 0:
        return False
    return size <= PREFIX_BYTES or _compare_or_note(left, left_length, right, right_length) == 0


cdef int compare_outside(const uint8_t* left, uint64_t left_length, const uint8_t* right,
                         uint64_t right_length) noexcept nogil:
    cdef uint64_t left_known, right_known, known
    cdef uint64_t left_size = _size(left, left_length)
    cdef uint64_t right_size = _size(right, right_length)
    cdef const uint8_t* left_bytes = _known(left, left_length, &left_known)
    cdef const uint8_t* right_bytes = _known(right, right_length, &right_known)
    cdef int order
    known = min(left_known, right_known)
    order = memcmp(left_bytes, right_bytes, <size_t>known)
    if order != 0:
        return -1 if order < 0 else 1
    if known == min(left_size, right_size):
        return (left_size > right_size) - (left_size < right_size)
    if left_length & right_length & LENGTH_OUTSIDE and same_place(left, right):
        return 0
    return _compare_or_note(left, left_length, right, right_length)
