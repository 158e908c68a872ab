# ColumnTake: columns of fixed width by row, written into a batch in the making.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.arrow_batch cimport ColumnView
from engine.records.batch_builder cimport BatchBuilder

ctypedef fused RowNumber:
    int32_t
    int64_t

# A column, and where its values go.
cdef struct TakenColumn:
    const ColumnView* source
    int32_t place               # column of the batch in the making
    int64_t null_count          # of what was taken
    uint8_t* validity
    uint8_t* values

@cython.final
cdef class ColumnTake:
    cdef TakenColumn* _columns
    cdef int32_t _capacity
    cdef int32_t _count

    # Have a column taken next; it stays where it is until then. False: it is not of fixed width.
    cdef bint add(self, int32_t place, const ColumnView* source) noexcept nogil
    # Take the columns at count rows, which they have: given as int64, or as int32. None is to be taken afterwards.
    cdef int take(self, BatchBuilder builder, const int64_t* rows, const int32_t* numbers, int64_t count) except -1

# Copy the bits of some rows; returns the number of ones.
cdef int64_t take_bits(const uint8_t* bits, int64_t offset, const RowNumber* rows, int64_t count,
                       uint8_t* target) noexcept nogil
