# MergeScratch: rows of a chunk, their hashes and slots, and one row that is made anew.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef enum:
    CHUNK_ROWS = 1024           # rows hashed together

@cython.final
cdef class MergeScratch:
    cdef uint8_t** rows                 # [CHUNK_ROWS], as the others
    cdef uint64_t* hashes
    cdef int64_t* positions             # where a row's slot is, or further on
    cdef uint8_t* _row                  # one that is made anew
    cdef int64_t _row_size

    # Room for so many bytes, until the next call; NULL: there is no memory.
    cdef uint8_t* row_of(self, int64_t size) noexcept nogil
