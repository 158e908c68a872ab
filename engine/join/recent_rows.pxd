# RecentRows: rows that came before, left out of a build side that is only asked whether a key is there.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef enum:
    RECENT_ROW_BYTES_MAX = 128      # wider rows always stay


@cython.final
cdef class RecentRows:
    cdef uint8_t* _places

    # Leave out the rows that are equal to one given before; returns how many stay, in their order, with their hashes.
    cdef int64_t leave_out(self, uint8_t** rows, uint64_t* hashes, int64_t count) noexcept nogil
    # Forget all rows: they were not kept after all.
    cdef void forget(self) noexcept nogil
