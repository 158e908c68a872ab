# KeyTail: the sort keys behind those that a prefix begins with.

cimport cython
from libc.stdint cimport int32_t, uint8_t, uint64_t

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
    cdef int32_t _text_slot             # of a text that ends the head, -1: none, or keys before it are not whole
    cdef uint64_t _text_bytes           # of it that are in the prefix
    cdef bint is_head_known(self, uint64_t prefix) noexcept nogil
    cdef uint64_t short_text(self, const uint8_t* row) noexcept nogil

cdef enum:
    NOT_SHORT = 0xFFFFFFFF

# The tail of some SortKeys behind a prefix; None where the prefix decides, or there is no key behind it.
cdef KeyTail key_tail(RowCodec codec, NormalizedKey prefix, keys)
