# RowCombiner: what a sort asks where two rows of equal keys meet. The rows are of one schema.

from libc.stdint cimport int64_t, uint8_t

cdef class RowCombiner:
    cdef readonly bint keeps_size       # any two rows combine in place

    # In all of these the caller guarantees that the keys are equal and that `target` arrived first. Thread: any.
    #
    # Bytes of the row that both become, where it cannot be made in place; 0: combine does it.
    cdef int64_t combined_size(self, const uint8_t* target, const uint8_t* source) noexcept nogil
    # Put what `source` holds into `target`, which may be written and keeps its size; combined_size is 0. Returns 0, or
    # what went wrong, for raise_failure().
    cdef int combine(self, uint8_t* target, const uint8_t* source) noexcept nogil
    # Write the row that both become, combined_size bytes, to memory that is neither's. Returns as combine does.
    cdef int combine_into(self, uint8_t* row, const uint8_t* target, const uint8_t* source) noexcept nogil
    # Raise what a combine met.
    cdef int raise_failure(self, int failure) except -1
