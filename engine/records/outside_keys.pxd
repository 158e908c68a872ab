# Values that lie outside, compared: by what their references hold, and block by block where that does not decide.

from libc.stdint cimport uint8_t, uint64_t

# In all of these a value is an address and a length as the slot of a row has it: with LENGTH_OUTSIDE the address is
# that of a reference. One value at least lies outside; the caller guarantees that addresses are good for lengths.
cdef enum:
    LENGTH_OUTSIDE = 0x80000000

# Whether they are equal. An error answers False and waits for raise_failed_comparison().
cdef bint equal_outside(const uint8_t* left, uint64_t left_length, const uint8_t* right,
                        uint64_t right_length) noexcept nogil
# < 0, 0, > 0 as their bytes compare. An error answers -1 and waits for raise_failed_comparison().
cdef int compare_outside(const uint8_t* left, uint64_t left_length, const uint8_t* right,
                         uint64_t right_length) noexcept nogil
# Raise what a comparison met in this thread: CorruptBlockError, SpillError, NotYetSupportedError. A caller that
# compares calls it before what came of that is used.
cdef int raise_failed_comparison() except -1
