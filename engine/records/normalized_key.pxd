# Normalized key: a prefix of the sort keys whose unsigned order is the order of the rows (as far as it reaches).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from engine.records.row_codec cimport RowCodec

cdef class NormalizedKey:
    cdef RowCodec _codec
    cdef readonly bint decides       # the 8 bytes decide the whole order: no comparison of ties is needed
    cdef int32_t column_count
    cdef int32_t* columns
    cdef uint8_t* descending
    cdef uint8_t* nulls_last
    # prefixes[i] = first 8 bytes of the normalized key of rows[i], as a number (big-endian bytes: compare unsigned).
    cdef void prefixes_of_rows(self, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil
