# AsofOutput: left rows of an as-of join whose candidates are known, and the batches that come of them.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.join.join_side cimport JoinSide
from engine.join.pair_columns cimport PairColumns


@cython.final
cdef class AsofOutput:
    cdef JoinSide left
    cdef JoinSide right
    cdef bint looks_back                # for rows that are not later
    cdef bint looks_ahead
    cdef uint8_t** lefts                # the code that fills it in owns them, until the batches are out
    cdef uint8_t** before               # [PAIRS_MAX] of each left row the last right row that is not later; NULL: none
    cdef uint8_t** after                # [PAIRS_MAX] the first one that is not earlier
    cdef int64_t count                  # left rows, at most PAIRS_MAX
    cdef object _rule
    cdef PairColumns _columns
    cdef object _schema
    cdef int32_t _left_time
    cdef int32_t _right_time
    cdef int32_t* _left_slots           # of the variable columns that are given out
    cdef int32_t* _right_slots
    cdef int32_t _left_slot_count
    cdef int32_t _right_slot_count

    cdef int64_t _end_of_batch(self, uint8_t** rights, int64_t begin, int64_t count) noexcept nogil
    cdef int _choose(self, int64_t count) except -1
    cdef object _times(self, uint8_t** rows, int64_t count)
