# KeyTail: the sort keys behind those that a prefix begins with.

cimport cython
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec


@cython.final
cdef class KeyTail:
    cdef RowComparator _head            # of the first keys
    cdef NormalizedKey rest             # prefixes of the others

# The tail of some SortKeys behind a prefix; None where the prefix decides, or there is no key behind it.
cdef KeyTail key_tail(RowCodec codec, NormalizedKey prefix, keys)
