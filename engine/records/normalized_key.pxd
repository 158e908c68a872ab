# Normalized key: a prefix of the sort keys whose unsigned order is the order of the rows (as far as it reaches).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from engine.records.comparator cimport SortColumn
from engine.records.row_codec cimport RowCodec

# The bits of one key column in the prefix: [null marker] value.
cdef struct PrefixPart:
    SortColumn key
    int32_t marker_shift       # left shift of the marker bit, -1: the column is declared not nullable
    int32_t value_bits         # bits of the ordered value
    int32_t whole_bits         # bits of a whole value, -1: of any length
    int32_t shift              # left shift of the ordered value; negative: right shift (the value is cut)
    bint clamps                # null is the least or greatest number, and what is as small or great the next one

# Which rows of one prefix may differ.
cdef struct Ties:
    bint any                   # some; else the prefix decides
    bint is_one                # only those of the prefix that two numbers have
    uint64_t one               # that prefix

cdef inline bint may_differ(const Ties* ties, uint64_t prefix) noexcept nogil:
    return ties.any and (not ties.is_one or prefix == ties.one)

#     NormalizedKey(codec, keys: Sequence[SortKey])
cdef class NormalizedKey:
    cdef RowCodec _codec
    cdef readonly bint decides       # the 8 bytes decide the whole order: no comparison of ties is needed
    cdef Ties ties
    cdef int32_t column_count
    cdef int32_t _part_count         # parts that reach into the 8 bytes, at most column_count
    cdef PrefixPart* _parts
    # prefixes[i] = first 8 bytes of the normalized key of rows[i], as a number (big-endian bytes: compare unsigned).
    cdef void prefixes_of_rows(self, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil

    cdef int _place_parts(self) except -1
    cdef void _add_part(self, const PrefixPart* part, uint8_t** rows, int64_t count,
                        uint64_t* prefixes) noexcept nogil
