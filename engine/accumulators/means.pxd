# Means of sums. Floats are divided; the mean of an exact sum is rounded once: sum / (count * 10^scale) as the nearest
# float64, ties to even.
#
#     mean_of(total, kind, count, scale)          total: a sum of this kind, the state of an average
#     exact_mean(total, words, count, scale)      total: a two's complement integer of 2 or 4 words of 64 bits
#
# Small sums and counts are floats themselves, and a division of floats rounds once. Otherwise both sides are long
# integers: 54 bits of the quotient come out one by one, what is left decides the rounding. |scale| <= 150.

from libc.stdint cimport int32_t, int64_t

from engine.records.arrow_batch cimport KIND_DECIMAL256, KIND_FLOAT64

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>

    #define DREY_MEAN_WORDS 12      /* a sum of 256 bits, or 63 bits of count, times 10^150, and a bit */

    static int drey_mean_length(const uint64_t* words) {
        for (int word = DREY_MEAN_WORDS - 1; word >= 0; word--)
            if (words[word]) return 64 * word + 64 - __builtin_clzll(words[word]);
        return 0;
    }
    static void drey_mean_times(uint64_t* words, uint64_t factor) {
        unsigned __int128 carry = 0;
        for (int word = 0; word < DREY_MEAN_WORDS; word++, carry >>= 64) {
            carry += (unsigned __int128)words[word] * factor;
            words[word] = (uint64_t)carry;
        }
    }
    static void drey_mean_shift(uint64_t* words, int bits) {
        const int whole = bits >> 6, part = bits & 63;
        for (int word = DREY_MEAN_WORDS - 1; word >= 0; word--) {
            uint64_t value = word >= whole ? words[word - whole] << part : 0;
            if (part && word > whole) value |= words[word - whole - 1] >> (64 - part);
            words[word] = value;
        }
    }
    static int drey_mean_at_least(const uint64_t* one, const uint64_t* other) {
        for (int word = DREY_MEAN_WORDS - 1; word >= 0; word--)
            if (one[word] != other[word]) return one[word] > other[word];
        return 1;
    }
    static void drey_mean_take(uint64_t* from, const uint64_t* amount) {
        uint64_t borrow = 0;
        for (int word = 0; word < DREY_MEAN_WORDS; word++) {
            const unsigned __int128 taken = (unsigned __int128)amount[word] + borrow;
            borrow = (unsigned __int128)from[word] < taken;
            from[word] -= (uint64_t)taken;
        }
    }
    static double drey_long_mean(const uint64_t* total, int size, int64_t count, int32_t scale) {
        uint64_t above[DREY_MEAN_WORDS] = {0}, below[DREY_MEAN_WORDS] = {(uint64_t)count};
        uint64_t quotient = 0, carry;
        const uint64_t flip = total[size - 1] >> 63 ? ~0ULL : 0;
        int exponent, index;
        for (index = 0, carry = flip & 1; index < size; index++) {
            above[index] = (total[index] ^ flip) + carry;
            carry = carry && above[index] == 0;
        }
        for (index = scale; index < 0; index++) drey_mean_times(above, 10);
        for (index = scale; index > 0; index--) drey_mean_times(below, 10);
        exponent = drey_mean_length(above) - drey_mean_length(below);
        if (exponent > 0) drey_mean_shift(below, exponent);
        else drey_mean_shift(above, -exponent);
        if (!drey_mean_at_least(above, below)) {
            drey_mean_shift(above, 1);
            exponent--;
        }
        for (index = 0; index < 54; index++) {      /* above < 2 * below: a bit each */
            quotient <<= 1;
            if (drey_mean_at_least(above, below)) {
                drey_mean_take(above, below);
                quotient |= 1;
            }
            drey_mean_shift(above, 1);
        }
        if (quotient & 1) {
            const int beyond_half = drey_mean_length(above) > 0;
            quotient += (beyond_half || (quotient & 2)) ? 1 : -1;
        }
        return ldexp(flip ? -(double)quotient : (double)quotient, exponent - 53);
    }
    static double drey_exact_mean(const void* total, int size, int64_t count, int32_t scale) {
        static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
                                        1e15};
        uint64_t words[4];
        const double most = 9007199254740992.0;     /* 2^53: up to there every integer is a float */
        memcpy(words, total, (size_t)size * 8);
        {
            const int64_t low = (int64_t)words[0];
            int is_small = low <= (1LL << 53) && low >= -(1LL << 53);
            for (int word = 1; word < size; word++) is_small &= words[word] == (uint64_t)(low >> 63);
            if (is_small && low == 0) return 0.0;
            if (is_small && scale >= 0 && scale <= 15 && (double)count * powers[scale] <= most)
                return (double)low / ((double)count * powers[scale]);
        }
        return drey_long_mean(words, size, count, scale);
    }
    """
    double exact_mean "drey_exact_mean" (const void* total, int size, int64_t count, int32_t scale) noexcept nogil

cdef inline double mean_of(const void* total, int32_t kind, int64_t count, int32_t scale) noexcept nogil:
    if kind == KIND_FLOAT64:
        return (<const double*> total)[0] / <double> count
    return exact_mean(total, 4 if kind == KIND_DECIMAL256 else 2, count, scale)
