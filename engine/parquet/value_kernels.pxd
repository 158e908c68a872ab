# Values of pages as those of Arrow: taken from a dictionary, made wider or narrower, spread over rows with nulls.
#
# Targets have room for PAGE_SLACK bytes more, and sources may be read as far (page_kernels).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

# for what the kernels below are written with
from engine.records.bit_kernels cimport gather_bits
from engine.records.byte_kernels cimport load32

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__)
    #include <immintrin.h>
    #endif

    typedef uint16_t drey_page_2 __attribute__((aligned(1), may_alias));
    typedef uint32_t drey_page_4 __attribute__((aligned(1), may_alias));
    typedef uint64_t drey_page_8 __attribute__((aligned(1), may_alias));
    typedef int32_t drey_page_i4 __attribute__((aligned(1), may_alias));
    typedef int64_t drey_page_i8 __attribute__((aligned(1), may_alias));
    typedef __int128 drey_page_16 __attribute__((aligned(1), may_alias));

    static uint32_t drey_largest(const uint32_t* numbers, int64_t count) {
        uint32_t largest = 0;
        for (int64_t place = 0; place < count; place++)
            largest = numbers[place] > largest ? numbers[place] : largest;
        return largest;
    }

    #define DREY_TAKEN(type) { \
        const type* from = (const type*)values; \
        type* to = (type*)target; \
        for (int64_t place = 0; place < count; place++) to[place] = from[numbers[place]]; \
        break; }
    static void drey_take(const uint8_t* values, int32_t width, const uint32_t* numbers, int64_t count,
                          uint8_t* target) {
        switch (width) {
            case 1: DREY_TAKEN(uint8_t)
            case 2: DREY_TAKEN(drey_page_2)
            case 4: DREY_TAKEN(drey_page_4)
            case 8: DREY_TAKEN(drey_page_8)
            case 16: DREY_TAKEN(drey_page_16)
            default:
                for (int64_t place = 0; place < count; place++)
                    memcpy(target + place * width, values + (int64_t)numbers[place] * width, (size_t)width);
        }
    }

    #define DREY_REPEATED(type) { \
        const type one = *(const type*)value; \
        type* to = (type*)target; \
        for (int64_t place = 0; place < count; place++) to[place] = one; \
        break; }
    static void drey_repeat_wide(const uint8_t* value, int32_t width, int64_t count, uint8_t* target) {
        switch (width) {
            case 1: DREY_REPEATED(uint8_t)
            case 2: DREY_REPEATED(drey_page_2)
            case 4: DREY_REPEATED(drey_page_4)
            case 8: DREY_REPEATED(drey_page_8)
            case 16: DREY_REPEATED(drey_page_16)
            default:
                for (int64_t place = 0; place < count; place++) memcpy(target + place * width, value, (size_t)width);
        }
    }

    #define DREY_MADE(from_type, to_type) { \
        const from_type* from = (const from_type*)values; \
        to_type* to = (to_type*)target; \
        for (int64_t place = 0; place < count; place++) to[place] = (to_type)from[place]; \
        break; }
    /* Integers of one width as those of another; 16 from none of these: numbers with their highest byte first. */
    static void drey_convert(const uint8_t* values, int32_t from_width, int32_t to_width, int64_t count,
                             uint8_t* target) {
        switch (from_width << 8 | to_width) {
            case 4 << 8 | 1: DREY_MADE(drey_page_i4, uint8_t)
            case 4 << 8 | 2: DREY_MADE(drey_page_i4, drey_page_2)
            case 4 << 8 | 8: DREY_MADE(drey_page_i4, drey_page_i8)
            case 4 << 8 | 16: DREY_MADE(drey_page_i4, drey_page_16)
            case 8 << 8 | 16: DREY_MADE(drey_page_i8, drey_page_16)
        }
    }
    static void drey_reverse(const uint8_t* values, int32_t width, int64_t count, uint8_t* target) {
        for (; count > 0; count--, values += width, target += 16) {
            memset(target, values[0] & 0x80 ? 0xFF : 0, 16);
            for (int32_t byte = 0; byte < width; byte++) target[byte] = values[width - 1 - byte];
        }
    }

    #define DREY_SPREAD(type) { \
        const type* from = (const type*)values; \
        type* to = (type*)target; \
        for (int64_t row = 0; row < rows; row++) { \
            const uint64_t bit = (valid[row >> 6] >> (row & 63)) & 1; \
            to[row] = bit ? *from : (type)0; \
            from += bit; \
        } \
        break; }
    static void drey_spread_singly(const uint8_t* values, int32_t width, int64_t rows, const uint64_t* valid,
                                   uint8_t* target) {
        switch (width) {
            case 1: DREY_SPREAD(uint8_t)
            case 2: DREY_SPREAD(drey_page_2)
            case 4: DREY_SPREAD(drey_page_4)
            case 8: DREY_SPREAD(drey_page_8)
            case 16: DREY_SPREAD(drey_page_16)
            default:
                for (int64_t row = 0; row < rows; row++, target += width) {
                    const int bit = (int)((valid[row >> 6] >> (row & 63)) & 1);
                    if (bit) memcpy(target, values, (size_t)width);
                    else memset(target, 0, (size_t)width);
                    values += bit * width;
                }
        }
    }
    #if defined(__x86_64__)
    /* As many rows as a register has values of 4, 8 or 16 bytes at a time. */
    __attribute__((target("avx512f")))
    static void drey_spread_16(const uint8_t* values, int32_t width, int64_t rows, const uint64_t* valid,
                               uint8_t* target) {
        const int count = 64 / width;
        for (int64_t row = 0; row < rows; row += count, target += 64) {
            const uint32_t bits = (uint32_t)(valid[row >> 6] >> (row & 63)) & ((1u << count) - 1);
            const __m512i found = _mm512_loadu_si512(values);
            __m512i made;
            if (width == 4) {
                made = _mm512_maskz_expand_epi32((__mmask16)bits, found);
            } else {
                uint32_t words = bits;
                if (width == 16) {
                    words = (words | words << 2) & 0x33;
                    words = (words | words << 1) & 0x55;
                    words |= words << 1;
                }
                made = _mm512_maskz_expand_epi64((__mmask8)words, found);
            }
            if (rows - row < count) {
                uint8_t last[64];
                _mm512_storeu_si512(last, made);
                memcpy(target, last, (size_t)((rows - row) * width));
            } else _mm512_storeu_si512(target, made);
            values += __builtin_popcount(bits) * width;
        }
    }
    #endif
    static void drey_spread(const uint8_t* values, int32_t width, int64_t rows, const uint64_t* valid,
                            uint8_t* target) {
    #if defined(__x86_64__)
        if ((width == 4 || width == 8 || width == 16) && __builtin_cpu_supports("avx512f"))
            return drey_spread_16(values, width, rows, valid, target);
    #endif
        drey_spread_singly(values, width, rows, valid, target);
    }
    /* Where texts end, of rows some of which are null: those end where the row before does. */
    static void drey_spread_ends(const int32_t* ends, int32_t first, int64_t rows, const uint64_t* valid,
                                 int32_t* target) {
        int32_t end = first;
        for (int64_t row = 0; row < rows; row++) {
            if ((valid[row >> 6] >> (row & 63)) & 1) end = *ends++;
            target[row] = end;
        }
    }

    /* Of each word the bits where another one has ones, side by side. Returns how many that are. */
    static int64_t drey_pack_bits(const uint64_t* words, const uint64_t* wanted, int64_t rows, uint64_t* target) {
        int64_t count = 0;
        memset(target, 0, (size_t)((rows + 63) / 64 + 1) * 8);
        for (int64_t word = 0; word < (rows + 63) / 64; word++) {
            const int size = __builtin_popcountll(wanted[word]);
            if (size == 0) continue;
            const uint64_t packed = drey_gather_bits(words[word], wanted[word]);
            target[count >> 6] |= packed << (count & 63);
            if ((count & 63) + size > 64) target[(count >> 6) + 1] |= packed >> (64 - (count & 63));
            count += size;
        }
        return count;
    }
    static inline void drey_put_text(uint8_t* target, const uint8_t* text, int64_t size) {
        if (size <= 32) memcpy(target, text, 32);
        else memcpy(target, text, (size_t)size);
    }
    /* Texts with their sizes before them: those of kept rows (mask NULL: all) go behind `position` bytes of target.
       Returns where the next one begins, NULL: they go beyond the end. */
    static const uint8_t* drey_put_texts(const uint8_t* at, const uint8_t* end, int64_t rows, const uint64_t* mask,
                                         uint8_t* target, int64_t position, int32_t* ends) {
        for (int64_t row = 0; row < rows; row++) {
            if (end - at < 4) return 0;
            const int64_t size = drey_load32(at);
            at += 4;
            if (size > end - at) return 0;
            if (!mask || (mask[row >> 6] >> (row & 63)) & 1) {
                drey_put_text(target + position, at, size);
                position += size;
                *ends++ = (int32_t)position;
            }
            at += size;
        }
        return at;
    }
    /* Bytes of the texts of a dictionary, whose offsets are these. */
    static int64_t drey_texts_size(const uint32_t* offsets, const uint32_t* numbers, int64_t count) {
        int64_t size = 0;
        for (int64_t place = 0; place < count; place++) size += offsets[numbers[place] + 1] - offsets[numbers[place]];
        return size;
    }
    static void drey_take_texts(const uint8_t* texts, const uint32_t* offsets, const uint32_t* numbers, int64_t count,
                                uint8_t* target, int64_t position, int32_t* ends) {
        for (int64_t place = 0; place < count; place++) {
            const uint32_t first = offsets[numbers[place]];
            const int64_t size = offsets[numbers[place] + 1] - first;
            drey_put_text(target + position, texts + first, size);
            position += size;
            ends[place] = (int32_t)position;
        }
    }
    """
    # The largest of some numbers, 0 of none.
    uint32_t largest "drey_largest" (const uint32_t* numbers, int64_t count) noexcept nogil
    # Values of `width` bytes at numbers, which are those of values.
    void take_values "drey_take" (const uint8_t* values, int32_t width, const uint32_t* numbers, int64_t count,
                                  uint8_t* target) noexcept nogil
    # One value of `width` bytes, `count` times.
    void repeat_value "drey_repeat_wide" (const uint8_t* value, int32_t width, int64_t count,
                                          uint8_t* target) noexcept nogil
    # Integers of 4 bytes as such of 1, 2, 8 or 16, and of 8 as such of 16.
    void convert "drey_convert" (const uint8_t* values, int32_t from_width, int32_t to_width, int64_t count,
                                 uint8_t* target) noexcept nogil
    # Numbers of at most 16 bytes, the highest first, as numbers of 16, the lowest first.
    void reverse "drey_reverse" (const uint8_t* values, int32_t width, int64_t count, uint8_t* target) noexcept nogil
    # A value for each row that is valid, 0 for the others.
    void spread "drey_spread" (const uint8_t* values, int32_t width, int64_t rows, const uint64_t* valid,
                               uint8_t* target) noexcept nogil
    # The same, whatever the processor has.
    void spread_singly "drey_spread_singly" (const uint8_t* values, int32_t width, int64_t rows, const uint64_t* valid,
                                             uint8_t* target) noexcept nogil
    void spread_ends "drey_spread_ends" (const int32_t* ends, int32_t first, int64_t rows, const uint64_t* valid,
                                         int32_t* target) noexcept nogil
    # Of each word the bits where `wanted` has ones, side by side; target has a word more. Returns how many that are.
    int64_t pack_bits "drey_pack_bits" (const uint64_t* words, const uint64_t* wanted, int64_t rows,
                                        uint64_t* target) noexcept nogil
    # Texts with their sizes before them: those of kept rows (mask NULL: all) go behind `position` bytes of target.
    # Returns where the next one begins, NULL: they go beyond the end.
    const uint8_t* put_texts "drey_put_texts" (const uint8_t* at, const uint8_t* end, int64_t rows,
                                               const uint64_t* mask, uint8_t* target, int64_t position,
                                               int32_t* ends) noexcept nogil
    # Bytes of the texts of a dictionary at numbers; these texts, behind `position` bytes of target.
    int64_t texts_size "drey_texts_size" (const uint32_t* offsets, const uint32_t* numbers,
                                           int64_t count) noexcept nogil
    void take_texts "drey_take_texts" (const uint8_t* texts, const uint32_t* offsets, const uint32_t* numbers,
                                       int64_t count, uint8_t* target, int64_t position, int32_t* ends) noexcept nogil
