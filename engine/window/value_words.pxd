# Values of 8 bytes as words: unsigned numbers whose order is that of the values, as sort and group_by have it.

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #define DREY_WORD_SIGN ((uint64_t) 1 << 63)
    #define DREY_WORD_INFINITY ((uint64_t) 0x7FF << 52)
    #define DREY_WORD_NAN ((uint64_t) 0xFFF << 51)
    """
    uint64_t SIGN "DREY_WORD_SIGN"
    uint64_t INFINITY_BITS "DREY_WORD_INFINITY"
    uint64_t NAN_BITS "DREY_WORD_NAN"       # of the one that stands for all

# The word of a value's bits: every NaN is one, the largest; -0.0 is 0.0.
cdef inline uint64_t word_of(uint64_t bits, bint is_real) noexcept nogil:
    if not is_real:
        return bits ^ SIGN
    if bits & ~SIGN > INFINITY_BITS:
        return NAN_BITS | SIGN
    if bits & ~SIGN == 0:
        return SIGN
    return ~bits if bits & SIGN else bits | SIGN

# The bits of the value that a word stands for.
cdef inline uint64_t bits_of(uint64_t word, bint is_real) noexcept nogil:
    if is_real and not word & SIGN:
        return ~word
    return word ^ SIGN
