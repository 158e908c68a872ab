# Kernels of texts in a block: two columns row by row, of which one may be a constant.
#
# Bytes are compared where they lie; short ones take two loads. Order is that of bytes, which is that of UTF-8's code
# points; what begins another comes before it. Against a constant, lengths are compared first, 64 rows at once without
# branches, and bytes only of the texts whose length allows it.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.expressions.block_kernels cimport packed  # the lengths' C code calls it
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
    #define DREY_LENGTHS(name, type) \
    static uint64_t name(const type* offsets, int64_t wanted, int is_least, int64_t size) { \
        uint8_t found[64] = {0}; \
        for (int64_t row = 0; row < size; row++) { \
            const int64_t length = (int64_t)(offsets[row + 1] - offsets[row]); \
            found[row] = (uint8_t)((length == wanted) | (is_least & (length > wanted))); \
        } \
        return drey_packed(found); \
    }
    DREY_LENGTHS(drey_lengths, int32_t)
    DREY_LENGTHS(drey_large_lengths, int64_t)
    """
    uint64_t lengths "drey_lengths" (const int32_t* offsets, int64_t wanted, bint is_least, int64_t size) noexcept nogil
    uint64_t large_lengths "drey_large_lengths" (const int64_t* offsets, int64_t wanted, bint is_least,
                                                 int64_t size) noexcept nogil
    int64_t lowest_bit "__builtin_ctzll" (uint64_t bits) noexcept nogil
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
    return (<const int32_t*>texts.offsets)[row] if texts.width == 4 else (<const int64_t*>texts.offsets)[row]

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

# The same against a constant: TEXT_EQUAL, TEXT_STARTS, TEXT_ENDS.
cdef inline void test_texts_against(TextTest test, const Vector* texts, const Vector* constant, uint64_t* bits,
                                    int64_t count) noexcept nogil:
    cdef const uint8_t* wanted = constant.values + offset_of(constant, 0)
    cdef int64_t wanted_size = offset_of(constant, 1) - offset_of(constant, 0)
    cdef bint is_least = test != TEXT_EQUAL
    cdef int64_t start, size, row, first
    cdef uint64_t found, rest
    for start in range(0, count, 64):
        size = min(<int64_t>64, count - start)
        if texts.width == 4:
            found = lengths(<const int32_t*>texts.offsets + start, wanted_size, is_least, size)
        else:
            found = large_lengths(<const int64_t*>texts.offsets + start, wanted_size, is_least, size)
        rest = found
        while rest:
            row = lowest_bit(rest)
            rest &= rest - 1
            first = offset_of(texts, start + row)
            if test == TEXT_ENDS:
                first = offset_of(texts, start + row + 1) - wanted_size
            found ^= <uint64_t>(not equal_bytes(texts.values + first, wanted, <uint64_t>wanted_size)) << row
        bits[start >> 6] = found
