# KeyTail: the sort keys behind those that a prefix begins with.

cimport cython
from libc.stdint cimport uint64_t

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec


@cython.final
cdef class KeyTail:
    cdef RowComparator _head            # of the first keys
    cdef NormalizedKey rest             # prefixes of the others
    cdef bint _is_head_whole            # equal prefixes are equal heads, but for one prefix that two numbers have
    cdef bint _has_shared
    cdef uint64_t _shared
    cdef bint is_head_known(self, uint64_t prefix) noexcept nogil

# The tail of some SortKeys behind a prefix; None where the prefix decides, or there is no key behind it.
cdef KeyTail key_tail(RowCodec codec, NormalizedKey prefix, keys)
