# RowBatch: some rows of one schema, as addresses, with the memory in which they lie if it is theirs.

from libc.stdint cimport int64_t, uint8_t
from engine.records.row_codec cimport RowCodec

cdef class RowBatch:
    cdef readonly RowCodec codec
    cdef uint8_t** rows
    cdef int64_t count
    cdef uint8_t* memory                # of rows that were copied, NULL: none was
    cdef int64_t memory_size
    cdef object _owner                  # of memory that is Python's

    # Take memory for copies of rows; once.
    cdef int take(self, int64_t size) except -1
    # Say that `count` rows are there, and give back what they do not need.
    cdef int end(self, int64_t count) except -1
    cdef void _shrink(self) noexcept nogil

# No rows yet, room for the addresses of so many.
cdef RowBatch new_row_batch(RowCodec codec, int64_t capacity)
