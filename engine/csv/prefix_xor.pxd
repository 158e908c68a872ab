# Bits between pairs of bits: 1 from the first of a pair up to before the second.
#
#     quotes    . 1 . . 1 . . 1        lowest bit first
#     inside    . 1 1 1 . . . 1        each bit the xor of all quotes up to it
#
# For the masks that say which bytes of a block lie inside quotes (quote_mask, field_index).
#
# Source: Langdale and Lemire, "Parsing gigabytes of JSON per second" (2019), there by a carry-less multiplication.

from libc.stdint cimport uint64_t

cdef extern from * nogil:
    """
    #include <stdint.h>
    static inline uint64_t drey_prefix_xor(uint64_t bits) {
        bits ^= bits << 1;
        bits ^= bits << 2;
        bits ^= bits << 4;
        bits ^= bits << 8;
        bits ^= bits << 16;
        bits ^= bits << 32;
        return bits;
    }
    """
    uint64_t prefix_xor "drey_prefix_xor" (uint64_t bits)
