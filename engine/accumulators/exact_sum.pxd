# ExactSum: a sum of float64 values without any rounding, so that values can be taken out again.
#
#     clear(sum)   add(sum, value, 1)   add(sum, value, -1)      value(sum): the exact sum, rounded once
#
# One long integer in units of 2^-1074, as chunks of 32 bits in 64: a value touches three of them, and carries wait for
# 2^30 values. Sums of values of like size use a few chunks; only those are cleared and read. Infinities and NaNs are
# counted beside it. Cost: some nanoseconds a value, of reading some ten.
#
# Source: Radford M. Neal, "Fast exact summation using small and large superaccumulators" (2015), the small one.

from libc.stdint cimport int32_t, int64_t

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>

    #define DREY_SUM_CHUNKS 70
    typedef struct {
        int64_t chunks[DREY_SUM_CHUNKS];
        int32_t low, high;          /* chunks in use: low..high */
        int64_t waiting;            /* values since carries were passed on */
        int64_t nans, positive, negative;
    } drey_exact_sum;

    static void drey_sum_clear(drey_exact_sum* sum) {
        if (sum->high >= sum->low)
            memset(sum->chunks + sum->low, 0, (size_t)(sum->high - sum->low + 1) * sizeof(int64_t));
        sum->low = DREY_SUM_CHUNKS;
        sum->high = -1;
        sum->waiting = sum->nans = sum->positive = sum->negative = 0;
    }
    static void drey_sum_carry(drey_exact_sum* sum) {
        for (int chunk = sum->low; chunk < sum->high; chunk++) {    /* the highest keeps its sign */
            sum->chunks[chunk + 1] += sum->chunks[chunk] >> 32;
            sum->chunks[chunk] &= 0xffffffffLL;
        }
        sum->waiting = 0;
    }
    static void drey_sum_add(drey_exact_sum* sum, double value, int times) {
        uint64_t bits;
        memcpy(&bits, &value, 8);
        const int exponent = (int)(bits >> 52) & 0x7ff;
        uint64_t digits = bits & 0xfffffffffffffULL;
        const int is_negative = (bits >> 63) != 0;
        if (exponent == 0x7ff) {
            if (digits) sum->nans += times;
            else if (is_negative) sum->negative += times;
            else sum->positive += times;
            return;
        }
        if (exponent) digits |= 1ULL << 52;
        else if (!digits) return;
        const int place = exponent ? exponent - 1 : 0;
        const int chunk = place >> 5;
        const unsigned __int128 wide = (unsigned __int128)digits << (place & 31);
        const int64_t sign = (is_negative != (times < 0)) ? -1 : 1;
        sum->chunks[chunk] += sign * (int64_t)((uint64_t)wide & 0xffffffffULL);
        sum->chunks[chunk + 1] += sign * (int64_t)((uint64_t)(wide >> 32) & 0xffffffffULL);
        sum->chunks[chunk + 2] += sign * (int64_t)(uint64_t)(wide >> 64);
        if (chunk < sum->low) sum->low = chunk;
        if (chunk + 2 > sum->high) sum->high = chunk + 2;
        if (++sum->waiting == (1LL << 30)) drey_sum_carry(sum);
    }
    static double drey_sum_value(const drey_exact_sum* sum) {
        uint64_t whole[DREY_SUM_CHUNKS + 2];
        int64_t carry = 0;
        int chunk, top;
        if (sum->nans || (sum->positive && sum->negative)) return NAN;
        if (sum->positive) return INFINITY;
        if (sum->negative) return -INFINITY;
        for (chunk = sum->low; chunk <= sum->high; chunk++) {
            const int64_t value = sum->chunks[chunk] + carry;
            whole[chunk] = (uint64_t)value & 0xffffffffULL;
            carry = value >> 32;
        }
        for (; carry != 0 && carry != -1 && chunk < DREY_SUM_CHUNKS + 2; chunk++) {
            whole[chunk] = (uint64_t)carry & 0xffffffffULL;
            carry >>= 32;
        }
        if (carry) {                                /* negative: its magnitude */
            uint64_t one = 1;
            for (int index = sum->low; index < chunk; index++) {
                const uint64_t value = (~whole[index] & 0xffffffffULL) + one;
                whole[index] = value & 0xffffffffULL;
                one = value >> 32;
            }
            if (one && chunk < DREY_SUM_CHUNKS + 2) whole[chunk++] = 1;
        }
        for (top = chunk - 1; top >= sum->low && whole[top] == 0;) top--;
        if (top < sum->low) return 0.0;
        {
            unsigned __int128 digits = (unsigned __int128)whole[top] << 64;
            uint64_t rest = 0;
            if (top - 1 >= sum->low) digits |= (unsigned __int128)whole[top - 1] << 32;
            if (top - 2 >= sum->low) digits |= whole[top - 2];
            for (int index = top - 3; index >= sum->low; index--) rest |= whole[index];
            if (rest) digits |= 1;                  /* decides what lies half-way */
            const double found = ldexp((double)digits, 32 * (top - 2) - 1074);
            return carry ? -found : found;
        }
    }
    """
    ctypedef struct ExactSum "drey_exact_sum":
        int32_t low
        int32_t high

    void sum_clear "drey_sum_clear" (ExactSum* sum) noexcept nogil
    void sum_add "drey_sum_add" (ExactSum* sum, double value, int times) noexcept nogil
    double sum_value "drey_sum_value" (const ExactSum* sum) noexcept nogil
