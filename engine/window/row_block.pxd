# RowBlock: a batch of sorted rows of a window operator, opened for kernels; Positions: an int64 for each row of one.
#
#     row      of the subtask's whole sorted input, counted from 0: what all positions here are
#     level    0: the first row of all; k + 1: key k is the first in which the row differs from the one before it
#              keys are those of the partition, then those of the order; key count + 1: it differs in none
#
# So a row begins a partition where its level is at most the number of partition keys, and a group of peers under the
# first n order keys where it is at most n more.

from libc.stdint cimport int64_t, uint8_t

from engine.records.arrow_batch cimport ArrowBatch, ColumnView


cdef class RowBlock:
    cdef readonly int64_t start         # row of its first row
    cdef readonly int64_t stop          # ... behind its last row
    cdef readonly object batch          # the rows, as they came
    cdef readonly ArrowBatch opened     # columns in the form that kernels read; the last one holds the levels
    cdef const uint8_t* levels          # [stop - start]

    cdef const ColumnView* column(self, int64_t index)


cdef class Positions:
    cdef readonly int64_t start         # row of the first one
    cdef readonly int64_t count
    cdef readonly object buffer         # pyarrow.Buffer of the values
    cdef int64_t* values                # [count]


cdef Positions new_positions(RowBlock block)
