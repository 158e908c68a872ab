# Sums of integers and decimals that tell when they leave their type: 64 bits, 38 digits in 128, 76 digits in 256; and
# sums of 128 bits that values are taken out of again, which tell how often they have wrapped around.

from libc.stdint cimport int64_t, uint8_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    typedef __int128 drey_int128;

    /* 10^38: one more than the largest decimal of 38 digits */
    #define DREY_DECIMAL_END ((drey_int128)10000000000000000000ULL * (drey_int128)10000000000000000000ULL)

    static inline int drey_add_int64(int64_t* target, int64_t value) {
        return __builtin_add_overflow(*target, value, target);
    }
    /* 10^38 in words of 64 bits: a sum whose upper word lies within is smaller, the others are looked at closely. A sum
       that leaves 128 bits comes back far outside. */
    #define DREY_DECIMAL_UPPER 0x4b3b4ca85a86c47aULL

    static inline int drey_add_int128(void* target, drey_int128 value) {
        drey_int128 before, sum;
        memcpy(&before, target, 16);
        sum = (drey_int128)((unsigned __int128)before + (unsigned __int128)value);
        memcpy(target, &sum, 16);
        if (__builtin_expect((uint64_t)(sum >> 64) + DREY_DECIMAL_UPPER < 2 * DREY_DECIMAL_UPPER, 1)) return 0;
        return __builtin_add_overflow(before, value, &sum) || sum >= DREY_DECIMAL_END || sum <= -DREY_DECIMAL_END;
    }
    static inline drey_int128 drey_load_int128(const void* source) {
        drey_int128 value;
        memcpy(&value, source, 16);
        return value;
    }
    /* Adds a value, or takes it out again (times: 1, -1); returns how often 2^128 is to be added to the sum. */
    static inline int drey_add_wrapping(drey_int128* sum, drey_int128 value, int times) {
        if (times < 0) return __builtin_sub_overflow(*sum, value, sum) ? (value < 0 ? 1 : -1) : 0;
        return __builtin_add_overflow(*sum, value, sum) ? (value < 0 ? -1 : 1) : 0;
    }
    static inline int drey_fits_int64(drey_int128 value) { return value == (int64_t)value; }
    static inline int drey_fits_decimal(drey_int128 value) {
        return value < DREY_DECIMAL_END && value > -DREY_DECIMAL_END;
    }
    /* 10^76: one more than the largest decimal of 76 digits; two such numbers add up below 2^255 */
    static const uint64_t drey_decimal256_end[4] = {0x0ULL, 0x7775a5f171951000ULL, 0x764b4abe8652979ULL,
                                                    0x161bcca7119915b5ULL};

    static int drey_is_beyond_int256(const uint8_t* value) {
        uint64_t words[4], size[4];
        unsigned __int128 carry;
        int word;
        memcpy(words, value, 32);
        carry = (words[3] >> 63);
        for (word = 0; word < 4; word++) {                  /* its absolute value */
            carry += (words[3] >> 63) ? ~words[word] : words[word];
            size[word] = (uint64_t)carry;
            carry >>= 64;
        }
        for (word = 3; word >= 0; word--)
            if (size[word] != drey_decimal256_end[word]) return size[word] > drey_decimal256_end[word];
        return 1;
    }
    static inline int drey_add_int256(uint8_t* target, const uint8_t* value) {
        unsigned __int128 low, high, other_low, other_high;
        const uint64_t end = drey_decimal256_end[3];
        memcpy(&low, target, 16);
        memcpy(&high, target + 16, 16);
        memcpy(&other_low, value, 16);
        memcpy(&other_high, value + 16, 16);
        low += other_low;
        high += other_high + (low < other_low);
        memcpy(target, &low, 16);
        memcpy(target + 16, &high, 16);
        if (__builtin_expect((uint64_t)(high >> 64) + end < 2 * end, 1)) return 0;
        return drey_is_beyond_int256(target);
    }
    static inline int drey_add_int128_to_int256(uint8_t* target, drey_int128 value) {
        uint8_t wide[32];
        const drey_int128 sign = value >> 127;
        memcpy(wide, &value, 16);
        memcpy(wide + 16, &sign, 16);
        return drey_add_int256(target, wide);
    }
    """
    ctypedef long long int128 "drey_int128"
    bint add_int64 "drey_add_int64" (int64_t* target, int64_t value) noexcept nogil
    bint add_int128 "drey_add_int128" (void* target, int128 value) noexcept nogil
    int128 load_int128 "drey_load_int128" (const void* source) noexcept nogil
    int add_wrapping "drey_add_wrapping" (int128* total, int128 value, int times) noexcept nogil
    bint fits_int64 "drey_fits_int64" (int128 value) noexcept nogil
    bint fits_decimal "drey_fits_decimal" (int128 value) noexcept nogil
    int add_int256 "drey_add_int256" (uint8_t* target, const uint8_t* value) noexcept nogil
    int add_int128_to_int256 "drey_add_int128_to_int256" (uint8_t* target, int128 value) noexcept nogil
