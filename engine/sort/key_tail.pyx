"""KeyTail: the sort keys behind those that a prefix begins with, for rows that have these keys in common.

    keys       symbol, moment, ...
    prefix     'ABCD....'               of thousands of rows the same: nothing of the moment is in it
    tail       moment ...               a prefix of its own, computed for those rows when they are sorted

Which keys are the head: those that fit into the prefix whole, and a text that begins in it, or the first key.

Held by: tests/sort/test_external_sorter.py
"""

cimport cython

from libc.stdint cimport int32_t, uint64_t

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec


@cython.final
cdef class KeyTail:
    """Args: codec: of the rows; keys: SortKeys; head_count: how many are the head of a prefix. For ``radix_sort``."""

    def __cinit__(self, RowCodec codec not None, NormalizedKey prefix not None, keys, int head_count):
        cdef int32_t index
        self._head = RowComparator(codec, keys[:head_count])
        self.rest = NormalizedKey(codec, keys[head_count:])
        self._is_head_whole = True
        for index in range(head_count):
            if prefix._parts[index].shift < 0 or (
                    not 0 <= prefix._parts[index].whole_bits <= prefix._parts[index].value_bits):
                self._is_head_whole = False
        self._has_shared = prefix._parts[0].clamps
        self._shared = ~<uint64_t>0 - 1 if prefix._parts[0].key.nulls_last else 1

    cdef bint is_head_known(self, uint64_t prefix) noexcept nogil:
        """Return whether all rows of a prefix have one head."""
        return self._is_head_whole and not (self._has_shared and prefix == self._shared)


cdef KeyTail key_tail(RowCodec codec, NormalizedKey prefix, keys):
    cdef int head_count = prefix._part_count
    if prefix.decides:
        return None
    if head_count > 1 and prefix._parts[head_count - 1].whole_bits >= 0:
        # a number that is cut begins the tail
        head_count -= 1
    return KeyTail(codec, prefix, tuple(keys), head_count) if head_count < prefix.column_count else None
