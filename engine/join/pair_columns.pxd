# PairColumns: chosen columns of pairs of rows, as Arrow arrays.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.join.join_side cimport JoinSide


@cython.final
cdef class PairColumns:
    cdef JoinSide _left
    cdef JoinSide _right
    cdef list _places                   # for each column: (side, position among the columns taken of that side)
    cdef int32_t* _left_columns         # those taken, each once
    cdef int32_t* _right_columns
    cdef int32_t _left_count
    cdef int32_t _right_count
    cdef list _nulls                    # types of the columns, in order

    # Arrays of the columns, in order, for pairs of rows.
    cdef list of_pairs(self, uint8_t** left_rows, uint8_t** right_rows, int64_t count)
    # The same for rows of one side (0: left, 1: right) without a partner: null where the other side would be.
    cdef list of_rows(self, int side, uint8_t** rows, int64_t count)
