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
    #if defined(__x86_64__)
    #include <emmintrin.h>
    #endif

    static int drey_is_less(const uint8_t* left, int64_t left_size, const uint8_t* right, int64_t right_size) {
        const int64_t size = left_size < right_size ? left_size : right_size;
        const int order = size ? memcmp(left, right, (size_t)size) : 0;
        return order < 0 || (order == 0 && left_size < right_size);
    }
    /* The first place of a part in a text, NULL: it is not there. Sixteen places at once are looked at for its first
       and its last byte; nothing outside the text is read. */
    static const uint8_t* drey_find(const uint8_t* text, int64_t size, const uint8_t* part, int64_t part_size) {
        if (!part_size) return text;
        const uint8_t* const end = text + (size - part_size + 1);           /* behind the last place */
        #if defined(__x86_64__)
        const __m128i first = _mm_set1_epi8((char)part[0]), last = _mm_set1_epi8((char)part[part_size - 1]);
        for (; end - text >= 16; text += 16) {
            const __m128i here = _mm_loadu_si128((const __m128i*)text);
            const __m128i there = _mm_loadu_si128((const __m128i*)(text + part_size - 1));
            int places = _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(here, first), _mm_cmpeq_epi8(there, last)));
            for (; places; places &= places - 1) {
                const uint8_t* place = text + __builtin_ctz((unsigned)places);
                if (!memcmp(place, part, (size_t)part_size)) return place;
            }
        }
        #endif
        for (; text < end; text++)
            if (text[0] == part[0] && !memcmp(text, part, (size_t)part_size)) return text;
        return 0;
    }
    static int drey_contains(const uint8_t* text, int64_t size, const uint8_t* part, int64_t part_size) {
        return drey_find(text, size, part, part_size) != 0;
    }

    /* What stands between the % of a pattern; the first part begins the text, and the last one ends it, where the
       pattern does not begin or end with %. */
    #define DREY_PARTS_MAX 16
    typedef struct {
        const uint8_t* parts[DREY_PARTS_MAX];
        int64_t sizes[DREY_PARTS_MAX];
        int count, begins, ends, is_whole;
    } drey_pattern;
    static void drey_pattern_of(const uint8_t* text, int64_t size, drey_pattern* pattern) {
        const uint8_t* const end = text + size;
        pattern->count = 0;
        pattern->begins = size == 0 || text[0] != '%';
        pattern->ends = size == 0 || end[-1] != '%';
        pattern->is_whole = size == 0 || !memchr(text, '%', (size_t)size);
        while (text < end && pattern->count < DREY_PARTS_MAX) {
            const uint8_t* next = (const uint8_t*)memchr(text, '%', (size_t)(end - text));
            if (!next) next = end;
            if (next > text) {
                pattern->parts[pattern->count] = text;
                pattern->sizes[pattern->count++] = next - text;
            }
            text = next + 1;
        }
    }
    static int drey_is_like(const uint8_t* text, int64_t size, const drey_pattern* pattern) {
        const uint8_t* end = text + size;
        int part = 0, count = pattern->count;
        if (pattern->is_whole)
            return size == (count ? pattern->sizes[0] : 0) && (!count || !memcmp(text, pattern->parts[0], (size_t)size));
        if (pattern->begins) {
            if (end - text < pattern->sizes[0] || memcmp(text, pattern->parts[0], (size_t)pattern->sizes[0])) return 0;
            text += pattern->sizes[part++];
        }
        if (pattern->ends) {
            const int64_t tail = pattern->sizes[--count];
            if (end - text < tail || memcmp(end - tail, pattern->parts[count], (size_t)tail)) return 0;
            end -= tail;
        }
        for (; part < count; part++) {
            text = drey_find(text, end - text, pattern->parts[part], pattern->sizes[part]);
            if (!text) return 0;
            text += pattern->sizes[part];
        }
        return 1;
    }
    /* Whether a line of the text is. */
    static int drey_has_line_like(const uint8_t* text, int64_t size, const drey_pattern* pattern) {
        const uint8_t* const end = text + size;
        if (!drey_is_like(text, size, pattern)) return 0;
        while (1) {
            const uint8_t* next = size ? (const uint8_t*)memchr(text, '\\n', (size_t)(end - text)) : 0;
            if (drey_is_like(text, (next ? next : end) - text, pattern)) return 1;
            if (!next) return 0;
            text = next + 1;
        }
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

    ctypedef struct Pattern "drey_pattern":
        int count

    # A pattern of parts with % between them, at most PARTS_MAX of them.
    void pattern_of "drey_pattern_of" (const uint8_t* text, int64_t size, Pattern* pattern) noexcept nogil
    bint is_like "drey_is_like" (const uint8_t* text, int64_t size, const Pattern* pattern) noexcept nogil
    bint has_line_like "drey_has_line_like" (const uint8_t* text, int64_t size, const Pattern* pattern) noexcept nogil

cdef enum:
    PARTS_MAX = 16

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

# Bits of the texts that are like a constant pattern, or of which a line is.
cdef inline void test_patterns(bint by_line, const Vector* texts, const Vector* constant, uint64_t* bits,
                               int64_t count) noexcept nogil:
    cdef Pattern pattern
    cdef int64_t row, first, size
    cdef uint64_t word = 0
    pattern_of(constant.values + offset_of(constant, 0), offset_of(constant, 1) - offset_of(constant, 0), &pattern)
    for row in range(count):
        first = offset_of(texts, row)
        size = offset_of(texts, row + 1) - first
        if by_line:
            word |= <uint64_t>has_line_like(texts.values + first, size, &pattern) << (row & 63)
        else:
            word |= <uint64_t>is_like(texts.values + first, size, &pattern) << (row & 63)
        if row & 63 == 63:
            bits[row >> 6] = word
            word = 0
    if count & 63:
        bits[count >> 6] = word
