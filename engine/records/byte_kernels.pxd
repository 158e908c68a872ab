# Bytes in memory: unaligned loads, short copies, the multiplication that mixes, prefetch.
#
# Everything here is a few instructions and inline. Loads and copies never touch a byte outside [address, length):
# Arrow's buffers and rows may end at the end of a mapping. Numbers are little endian, as the row format is.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "the row format is little endian and read in place: big-endian machines are not supported"
    #endif

    static inline uint16_t drey_load16(const uint8_t* p) { uint16_t v; memcpy(&v, p, 2); return v; }
    static inline uint32_t drey_load32(const uint8_t* p) { uint32_t v; memcpy(&v, p, 4); return v; }
    static inline uint64_t drey_load64(const uint8_t* p) { uint64_t v; memcpy(&v, p, 8); return v; }
    static inline void drey_store32(uint8_t* p, uint32_t v) { memcpy(p, &v, 4); }
    static inline void drey_store64(uint8_t* p, uint64_t v) { memcpy(p, &v, 8); }

    /* A call of memcpy costs more than the copy itself below 17 bytes: overlapping words instead. */
    static inline void drey_copy(uint8_t* target, const uint8_t* source, uint64_t size)
    {
        if (size > 16) { memcpy(target, source, size); return; }
        if (size >= 8) {
            uint64_t head = drey_load64(source), tail = drey_load64(source + size - 8);
            drey_store64(target, head); drey_store64(target + size - 8, tail);
        } else if (size >= 4) {
            uint32_t head = drey_load32(source), tail = drey_load32(source + size - 4);
            drey_store32(target, head); drey_store32(target + size - 4, tail);
        } else if (size) {
            target[0] = source[0]; target[size >> 1] = source[size >> 1]; target[size - 1] = source[size - 1];
        }
    }

    /* Rows: a few words, for which a call costs more than the copy. */
    static inline void drey_copy_words(uint8_t* target, const uint8_t* source, uint64_t size)
    {
        if (size > 64) { memcpy(target, source, size); return; }
        for (uint64_t at = 0; at < size; at += 8) drey_store64(target + at, drey_load64(source + at));
    }

    static inline int drey_equal(const uint8_t* left, const uint8_t* right, uint64_t size)
    {
        if (size > 16) return memcmp(left, right, size) == 0;
        if (size >= 8) return drey_load64(left) == drey_load64(right)
                           && drey_load64(left + size - 8) == drey_load64(right + size - 8);
        if (size >= 4) return drey_load32(left) == drey_load32(right)
                           && drey_load32(left + size - 4) == drey_load32(right + size - 4);
        if (size) return left[0] == right[0] && left[size >> 1] == right[size >> 1]
                      && left[size - 1] == right[size - 1];
        return 1;
    }

    /* The 128-bit product, its halves folded onto each other. */
    static inline uint64_t drey_fold(uint64_t left, uint64_t right)
    {
        unsigned __int128 product = (unsigned __int128)left * right;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }

    static inline uint64_t drey_swap64(uint64_t v) { return __builtin_bswap64(v); }
    static inline int64_t drey_ones(uint64_t v) { return __builtin_popcountll(v); }

    /* 64 bits from any bit on; bytes behind the last of `size` bits are not touched, bits behind it are 0. */
    static inline uint64_t drey_bits_from(const uint8_t* bitmap, int64_t first, int64_t size) {
        const int shift = (int)(first & 7);
        const int64_t bytes = (shift + size + 7) >> 3;
        uint64_t low = 0, high = 0;
        memcpy(&low, bitmap + (first >> 3), bytes < 8 ? (size_t)bytes : 8);
        if (bytes > 8) high = bitmap[(first >> 3) + 8];
        low >>= shift;
        if (shift) low |= high << (64 - shift);
        return size < 64 ? low & ((1ULL << size) - 1) : low;
    }
    #define DREY_PREFETCH(address) __builtin_prefetch(address)
    """
    uint16_t load16 "drey_load16" (const uint8_t* address) noexcept nogil
    uint32_t load32 "drey_load32" (const uint8_t* address) noexcept nogil
    uint64_t load64 "drey_load64" (const uint8_t* address) noexcept nogil
    void store32 "drey_store32" (uint8_t* address, uint32_t value) noexcept nogil
    void store64 "drey_store64" (uint8_t* address, uint64_t value) noexcept nogil
    # Copy size bytes; the two ranges must not overlap. Either address may be NULL when size is 0.
    void copy_bytes "drey_copy" (uint8_t* target, const uint8_t* source, uint64_t size) noexcept nogil
    # The same for a size that is a multiple of 8.
    void copy_words "drey_copy_words" (uint8_t* target, const uint8_t* source, uint64_t size) noexcept nogil
    bint equal_bytes "drey_equal" (const uint8_t* left, const uint8_t* right, uint64_t size) noexcept nogil
    uint64_t fold "drey_fold" (uint64_t left, uint64_t right) noexcept nogil
    uint64_t swap64 "drey_swap64" (uint64_t value) noexcept nogil
    int64_t count_ones "drey_ones" (uint64_t value) noexcept nogil
    # 64 bits from any bit on; bytes behind the last of `size` bits are not touched, bits behind it are 0
    uint64_t bits_from "drey_bits_from" (const uint8_t* bitmap, int64_t first, int64_t size) noexcept nogil
    void prefetch "DREY_PREFETCH" (const void* address) noexcept nogil

# Bytes between a row that a walk over rows side by side is at and what it asks for: a walk that reads one word of a row
# to find the next one is as slow as its cache misses.
cdef enum:
    WALK_AHEAD = 1024
    LINE_BYTES = 64             # of the caches
