# RowCombiner: what a sort asks where two rows of equal keys meet. The rows are of one schema.

from libc.stdint cimport uint8_t

cdef class RowCombiner:
    # Put what `source` holds into `target`, which comes before it, may be written and keeps its size. 0, or what went
    # wrong, for raise_failure(). The caller guarantees that the keys are equal. Thread: any, one row by one.
    cdef int combine(self, uint8_t* target, const uint8_t* source) noexcept nogil
    # Raise what a combine met.
    cdef int raise_failure(self, int failure) except -1
