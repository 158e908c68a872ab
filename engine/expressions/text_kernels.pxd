# Kernels of texts in a block: two columns row by row, of which one may be a constant.
#
# Bytes are compared where they lie: texts of different lengths differ without a look at them, short ones take two
# loads. Order is that of bytes, which is that of UTF-8's code points; what begins another comes before it.

from libc.stdint cimport int64_t, uint8_t, uint64_t

from engine.expressions.block_vectors cimport Vector
from engine.records.byte_kernels cimport equal_bytes

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <string.h>

    static int drey_is_less(const uint8_t* left, int64_t left_size, const uint8_t* right, int64_t right_size) {
        const int64_t size = left_size < right_size ? left_size : right_size;
        const int order = size ? memcmp(left, right, (size_t)size) : 0;
        return order < 0 || (order == 0 && left_size < right_size);
    }
    /* memmem is GNU's, and not declared everywhere: the first byte is sought, then the rest compared. */
    static int drey_contains(const uint8_t* text, int64_t size, const uint8_t* part, int64_t part_size) {
        const uint8_t* last = text + size - part_size;
        if (!part_size) return 1;
        if (part_size > size) return 0;
        while (text <= last && (text = (const uint8_t*)memchr(text, part[0], (size_t)(last - text + 1)))) {
            if (!memcmp(text, part, (size_t)part_size)) return 1;
            text++;
        }
        return 0;
    }
    """
    bint is_less "drey_is_less" (const uint8_t* left, int64_t left_size, const uint8_t* right,
                                 int64_t right_size) noexcept nogil
    bint contains "drey_contains" (const uint8_t* text, int64_t size, const uint8_t* part,
                                   int64_t part_size) noexcept nogil

cdef enum TextTest:
    TEXT_EQUAL
    TEXT_LESS
    TEXT_STARTS
    TEXT_ENDS
    TEXT_CONTAINS

cdef inline int64_t offset_of(const Vector* texts, int64_t row) noexcept nogil:
    return (<const int*>texts.offsets)[row] if texts.width == 4 else (<const int64_t*>texts.offsets)[row]

cdef inline bint passes(TextTest test, const uint8_t* left, int64_t left_size, const uint8_t* right,
                        int64_t right_size) noexcept nogil:
    if test == TEXT_EQUAL:
        return left_size == right_size and equal_bytes(left, right, <uint64_t>right_size)
    if test == TEXT_LESS:
        return is_less(left, left_size, right, right_size)
    if test == TEXT_CONTAINS:
        return contains(left, left_size, right, right_size)
    if left_size < right_size:
        return False
    if test == TEXT_ENDS:
        left += left_size - right_size
    return equal_bytes(left, right, <uint64_t>right_size)

# Bits of the rows in which a text passes a test against another.
cdef inline void test_texts(TextTest test, const Vector* left, const Vector* right, uint64_t* bits,
                            int64_t count) noexcept nogil:
    cdef int64_t row, first, other
    cdef uint64_t word = 0
    for row in range(count):
        first = offset_of(left, row)
        other = offset_of(right, row)
        word |= <uint64_t>passes(test, left.values + first, offset_of(left, row + 1) - first, right.values + other,
                                 offset_of(right, row + 1) - other) << (row & 63)
        if row & 63 == 63:
            bits[row >> 6] = word
            word = 0
    if count & 63:
        bits[count >> 6] = word
