# The rows of a column that a mask keeps, copied to where they lie side by side.
#
# A mask is words of 64 rows; bits behind the last row are 0. Of a word that keeps all its rows they are copied at once,
# of one that keeps few each is looked for, of others all are written and the next one lies over those that go. So a
# target has room for one value more, and no value behind the last row is read.
#
# Values are read and written at any address: Arrow promises no more than multiples of 8.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

# for what the kernels below are written with
from engine.records.bit_kernels cimport gather_bits
from engine.records.byte_kernels cimport bits_from

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    typedef uint16_t drey_kept_2 __attribute__((aligned(1), may_alias));
    typedef uint32_t drey_kept_4 __attribute__((aligned(1), may_alias));
    typedef uint64_t drey_kept_8 __attribute__((aligned(1), may_alias));
    typedef unsigned __int128 drey_kept_16 __attribute__((aligned(1), may_alias));
    typedef struct { drey_kept_16 low, high; } drey_kept_32;
    #define DREY_FEW_ROWS 20
    #define DREY_MANY_ROWS 48

    #define DREY_KEPT(name, type) \
    static void name(const uint8_t* source, int64_t rows, const uint64_t* mask, uint8_t* target) { \
        const type* from = (const type*)source; \
        type* to = (type*)target; \
        for (int64_t start = 0; start < rows; start += 64, from += 64) { \
            uint64_t bits = mask[start >> 6]; \
            if (bits == ~0ULL) { \
                memcpy(to, from, 64 * sizeof(type)); \
                to += 64; \
            } else if (rows - start < 64 || __builtin_popcountll(bits) < DREY_FEW_ROWS) { \
                for (; bits; bits &= bits - 1) *to++ = from[__builtin_ctzll(bits)]; \
            } else { \
                for (int row = 0; row < 64; row++) { \
                    *to = from[row]; \
                    to += (bits >> row) & 1; \
                } \
            } \
        } \
    }
    DREY_KEPT(drey_keep_1, uint8_t)
    DREY_KEPT(drey_keep_2, drey_kept_2)
    DREY_KEPT(drey_keep_4, drey_kept_4)
    DREY_KEPT(drey_keep_8, drey_kept_8)
    DREY_KEPT(drey_keep_16, drey_kept_16)
    DREY_KEPT(drey_keep_32, drey_kept_32)

    /* Bits of a bitmap from `first` on; returns how many of those that are kept are 1. */
    static int64_t drey_keep_bits(const uint8_t* bitmap, int64_t first, int64_t rows, const uint64_t* mask,
                                  uint64_t* target) {
        uint64_t held = 0;
        int64_t count = 0, ones = 0;
        for (int64_t start = 0; start < rows; start += 64) {
            const uint64_t bits = mask[start >> 6];
            const int size = __builtin_popcountll(bits);
            if (size == 0) continue;
            const uint64_t packed = drey_gather_bits(
                drey_bits_from(bitmap, first + start, rows - start < 64 ? rows - start : 64), bits);
            ones += __builtin_popcountll(packed);
            held |= packed << (count & 63);
            if ((count & 63) + size >= 64) {
                target[count >> 6] = held;
                held = count & 63 ? packed >> (64 - (count & 63)) : 0;
            }
            count += size;
        }
        if (count & 63) target[count >> 6] = held;
        return ones;
    }

    /* Rows of a word that are kept one after the other, from its first one on; they are taken out of it. */
    static inline int drey_kept_run(uint64_t* bits, int* count) {
        const int first = __builtin_ctzll(*bits);
        const uint64_t gone = ~(*bits >> first);
        *count = gone ? __builtin_ctzll(gone) : 64;
        *bits = first + *count == 64 ? 0 : *bits & (~0ULL << (first + *count));
        return first;
    }

    /* Texts are short: 32 bytes are copied whatever their size, where there are so many in the source. */
    static inline void drey_copy_text(uint8_t* target, const uint8_t* source, const uint8_t* end, int64_t size) {
        if (size <= 32 && end - source >= 32) memcpy(target, source, 32);
        else if (size) memcpy(target, source, (size_t)size);
    }

    #define DREY_KEPT_TEXTS(name, type) \
    static int64_t name##_bytes(const uint8_t* source, int64_t rows, const uint64_t* mask) { \
        const type* offsets = (const type*)source; \
        int64_t total = 0; \
        for (int64_t start = 0; start < rows; start += 64, offsets += 64) { \
            uint64_t bits = mask[start >> 6]; \
            if (bits == ~0ULL) total += offsets[64] - offsets[0]; \
            else for (; bits; bits &= bits - 1) { \
                const int row = __builtin_ctzll(bits); \
                total += offsets[row + 1] - offsets[row]; \
            } \
        } \
        return total; \
    } \
    static void name(const uint8_t* source, const uint8_t* bytes, int64_t rows, const uint64_t* mask, \
                     uint8_t* target_offsets, uint8_t* target) { \
        const type* offsets = (const type*)source; \
        const uint8_t* end = bytes + offsets[rows]; \
        type* ends = (type*)target_offsets; \
        type position = 0; \
        *ends++ = 0; \
        for (int64_t start = 0; start < rows; start += 64, offsets += 64) { \
            uint64_t bits = mask[start >> 6]; \
            const int is_dense = __builtin_popcountll(bits) >= DREY_MANY_ROWS; \
            while (bits) { \
                int row, count = 1; \
                if (is_dense) row = drey_kept_run(&bits, &count); \
                else row = __builtin_ctzll(bits), bits &= bits - 1; \
                const type moved = position - offsets[row]; \
                drey_copy_text(target + position, bytes + offsets[row], end, offsets[row + count] - offsets[row]); \
                for (int index = 1; index <= count; index++) *ends++ = offsets[row + index] + moved; \
                position = offsets[row + count] + moved; \
            } \
        } \
    }
    DREY_KEPT_TEXTS(drey_keep_texts, int32_t)
    DREY_KEPT_TEXTS(drey_keep_large_texts, int64_t)

    /* What is said of each code (0 or 1), as bits; of a null what is said of the one behind the last. 0: a code that
       there is not. */
    static int drey_flag_codes(const uint8_t* source, const uint8_t* validity, int64_t first, int64_t rows,
                               const uint8_t* said, uint32_t code_count, uint64_t* target) {
        const drey_kept_4* codes = (const drey_kept_4*)source;
        uint32_t over = 0;
        for (int64_t start = 0; start < rows; start += 64) {
            const int64_t size = rows - start < 64 ? rows - start : 64;
            const uint64_t valid = validity ? drey_bits_from(validity, first + start, size) : ~0ULL;
            uint8_t flags[64] = {0};
            uint64_t bits = 0, eight;
            if (valid == ~0ULL) {
                for (int64_t row = 0; row < size; row++) {
                    const uint32_t code = codes[start + row];
                    over |= code >= code_count;
                    flags[row] = said[code < code_count ? code : code_count];
                }
            } else {
                for (int64_t row = 0; row < size; row++) {
                    const uint32_t code = (valid >> row) & 1 ? codes[start + row] : code_count;
                    over |= ((valid >> row) & 1) && code >= code_count;
                    flags[row] = said[code < code_count ? code : code_count];
                }
            }
            for (int byte = 0; byte < 8; byte++) {
                memcpy(&eight, flags + 8 * byte, 8);
                bits |= ((eight * 0x0102040810204080ULL) >> 56) << (8 * byte);
            }
            target[start >> 6] = bits;
        }
        return !over;
    }
    """
    # Copy the values of the rows that a mask keeps; a target has room for one value more.
    void keep_1 "drey_keep_1" (const uint8_t*, int64_t rows, const uint64_t* mask, uint8_t*) noexcept nogil
    void keep_2 "drey_keep_2" (const uint8_t*, int64_t rows, const uint64_t* mask, uint8_t*) noexcept nogil
    void keep_4 "drey_keep_4" (const uint8_t*, int64_t rows, const uint64_t* mask, uint8_t*) noexcept nogil
    void keep_8 "drey_keep_8" (const uint8_t*, int64_t rows, const uint64_t* mask, uint8_t*) noexcept nogil
    void keep_16 "drey_keep_16" (const uint8_t*, int64_t rows, const uint64_t* mask, uint8_t*) noexcept nogil
    void keep_32 "drey_keep_32" (const uint8_t*, int64_t rows, const uint64_t* mask, uint8_t*) noexcept nogil
    # Bits of a bitmap from `first` on, in whole words; returns how many of those that are kept are 1.
    int64_t keep_bits "drey_keep_bits" (const uint8_t* bitmap, int64_t first, int64_t rows, const uint64_t* mask,
                                        uint64_t* target) noexcept nogil
    # Bytes of the texts that are kept; these texts, behind which 32 bytes more may be written, and their offsets, of 32
    # or 64 bits.
    int64_t keep_texts_bytes "drey_keep_texts_bytes" (const uint8_t* offsets, int64_t rows,
                                                      const uint64_t* mask) noexcept nogil
    void keep_texts "drey_keep_texts" (const uint8_t* offsets, const uint8_t* bytes, int64_t rows,
                                       const uint64_t* mask, uint8_t* target_offsets, uint8_t* target) noexcept nogil
    int64_t keep_large_texts_bytes "drey_keep_large_texts_bytes" (const uint8_t* offsets, int64_t rows,
                                                                  const uint64_t* mask) noexcept nogil
    void keep_large_texts "drey_keep_large_texts" (const uint8_t* offsets, const uint8_t* bytes, int64_t rows,
                                                   const uint64_t* mask, uint8_t* target_offsets,
                                                   uint8_t* target) noexcept nogil
    # For each row what is said of its code, 0 or 1, of a null what is said of `code_count`; False: there is no such
    # code.
    bint flag_codes "drey_flag_codes" (const uint8_t* codes, const uint8_t* validity, int64_t first, int64_t rows,
                                       const uint8_t* said, uint32_t code_count, uint64_t* target) noexcept nogil
