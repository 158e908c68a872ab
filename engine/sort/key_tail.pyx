"""KeyTail: the sort keys behind those that a prefix begins with, for rows that have these keys in common.

    keys       symbol, moment, ...
    prefix     'ABCD....'               of thousands of rows the same: nothing of the moment is in it
    tail       moment ...               a prefix of its own, computed for those rows when they are sorted

Which keys are the head: those that fit into the prefix whole, and a text that begins in it, or the first key. Texts of
one prefix that fit into it are the same where they have one length: no byte of them is looked at again.

Held by: tests/sort/test_external_sorter.py
"""

cimport cython

from libc.stdint cimport int32_t, uint8_t, uint64_t

from engine.records.byte_kernels cimport load64
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.ordered_number cimport ORDER_BYTES
from engine.records.row_codec cimport RowCodec

cdef enum:
    PREFIX_BITS = 64


@cython.final
cdef class KeyTail:
    """Args: codec: of the rows; keys: SortKeys; head_count: how many are the head of a prefix. For ``radix_sort``."""

    def __cinit__(self, RowCodec codec not None, NormalizedKey prefix not None, keys, int head_count):
        cdef int32_t index
        self._head = RowComparator(codec, keys[:head_count])
        self.rest = NormalizedKey(codec, keys[head_count:])
        self._is_head_whole = True
        self._text_slot = -1
        for index in range(head_count):
            if index == head_count - 1 and self._is_head_whole and prefix._parts[index].key.order == ORDER_BYTES:
                self._text_slot = prefix._parts[index].key.slot
                self._text_bytes = <uint64_t> max(0, PREFIX_BITS + min(0, prefix._parts[index].shift)) // 8
            if prefix._parts[index].shift < 0 or (
                    not 0 <= prefix._parts[index].whole_bits <= prefix._parts[index].value_bits):
                self._is_head_whole = False
        if prefix._parts[0].clamps:
            self._text_slot = -1
        self._has_shared = prefix._parts[0].clamps
        self._shared = prefix.ties.one

    cdef bint is_head_known(self, uint64_t prefix) noexcept nogil:
        """Return whether all rows of a prefix have one head."""
        return self._is_head_whole and not (self._has_shared and prefix == self._shared)

    cdef uint64_t short_text(self, const uint8_t* row) noexcept nogil:
        """Return the bytes of a text that is in the prefix whole, and tells rows of one prefix apart; or NOT_SHORT."""
        cdef uint64_t size = load64(row + self._text_slot) >> 32 if self._text_slot >= 0 else NOT_SHORT
        return size if size <= self._text_bytes else NOT_SHORT


cdef KeyTail key_tail(RowCodec codec, NormalizedKey prefix, keys):
    cdef int head_count = prefix._part_count
    if prefix.decides:
        return None
    if head_count > 1 and prefix._parts[head_count - 1].whole_bits >= 0:
        # a number that is cut begins the tail
        head_count -= 1
    return KeyTail(codec, prefix, tuple(keys), head_count) if head_count < prefix.column_count else None
