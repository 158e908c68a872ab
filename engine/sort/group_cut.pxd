# GroupCut: of sorted rows the first ones of each group, for a sort whose reader wants no others.

cimport cython
from libc.stdint cimport int64_t

from engine.records.comparator cimport RowComparator
from engine.sort.radix_sort cimport IndexEntry

@cython.final
cdef class GroupCut:
    cdef RowComparator _groups      # equal: one group; None: all rows are one
    cdef RowComparator _peers       # equal: one place in the group; None: each row has its own
    cdef bint _is_dense
    cdef int64_t _most

    # Keep the entries whose place is at most that many, in order; returns how many are left and takes the bytes of the
    # others off `bytes`. The rows stay where they are.
    cdef int64_t apply(self, IndexEntry* entries, int64_t count, int64_t* bytes) noexcept nogil
