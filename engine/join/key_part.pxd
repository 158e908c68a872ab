# KeyPart: which rows of one input a pass over spilled files is for.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.join.join_side cimport JoinSide


@cython.final
cdef class KeyPart:
    cdef JoinSide _side
    cdef int32_t _level
    cdef int32_t _part
    cdef int32_t _parts

    # Leave the rows that belong to the part, in their order; returns how many.
    cdef int64_t choose(self, uint8_t** rows, int64_t count) noexcept nogil
