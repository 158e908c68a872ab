# Kernels of a block: loops over at most BLOCK_ROWS values that lie in the cache.
#
#     lane    value                                       where
#     bits    bool, 64 rows a word; 0 under a null        masks
#     8       int64, or double                            integers, dates and times, decimals that fit, floats
#     16      __int128                                    decimals that do not
#
# A checked kernel says whether a value left its lane, and writes something for each row in any case: rows that are null
# or not asked for may fail as they like. Comparisons work on whole words of 64 rows; a block has room for them. Floats
# have one order: NaN equals NaN and is greater than every number.
#
# Values are read and written at any address: Arrow promises no more than multiples of 8.

from libc.stdint cimport int64_t, uint8_t, uint64_t

ctypedef int (*Computing)(const void* left, const void* right, void* target, int64_t count) noexcept nogil

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    typedef int64_t drey_narrow __attribute__((aligned(1), may_alias));
    typedef __int128 drey_wide __attribute__((aligned(1), may_alias));
    typedef double drey_real __attribute__((aligned(1), may_alias));

    /* 64 bytes of 0 and 1 as bits: each product gathers eight of them in its highest byte. */
    static inline uint64_t drey_packed(const uint8_t* found) {
        uint64_t bits = 0, eight;
        for (int byte = 0; byte < 8; byte++) {
            memcpy(&eight, found + 8 * byte, 8);
            bits |= ((eight * 0x0102040810204080ULL) >> 56) << (8 * byte);
        }
        return bits;
    }

    #define DREY_COMPARED(name, type, condition) \
    static void name(const void* left, const void* right, uint64_t* bits, int64_t words) { \
        const type* ones = (const type*)left; \
        const type* others = (const type*)right; \
        uint8_t found[64]; \
        for (int64_t word = 0; word < words; word++, ones += 64, others += 64) { \
            for (int row = 0; row < 64; row++) { \
                const type one = ones[row], other = others[row]; \
                found[row] = (uint8_t)(condition); \
            } \
            bits[word] = drey_packed(found); \
        } \
    }
    DREY_COMPARED(drey_narrow_equal, drey_narrow, one == other)
    DREY_COMPARED(drey_narrow_less, drey_narrow, one < other)
    DREY_COMPARED(drey_wide_equal, drey_wide, one == other)
    DREY_COMPARED(drey_wide_less, drey_wide, one < other)
    DREY_COMPARED(drey_real_equal, drey_real, (one == other) | ((one != one) & (other != other)))
    /* the complement of other <= one */
    DREY_COMPARED(drey_real_less, drey_real, !((other <= one) | (one != one)))

    #define DREY_CHECKED(name, type, unfit, statement) \
    static int name(const void* left, const void* right, void* target, int64_t count) { \
        const type* ones = (const type*)left; \
        const type* others = (const type*)right; \
        type* found = (type*)target; \
        unfit over = 0; \
        for (int64_t row = 0; row < count; row++) { \
            const type one = ones[row], other = others[row]; \
            type value; \
            statement; \
            found[row] = value; \
        } \
        (void)others; \
        return over != 0; \
    }
    /* Sums by bits, so that the compiler can take several at once: the sign bit of `over` says it. */
    DREY_CHECKED(drey_narrow_add_bits, drey_narrow, uint64_t,
        value = (int64_t)((uint64_t)one + (uint64_t)other); over |= (uint64_t)((one ^ value) & (other ^ value)) >> 63)
    DREY_CHECKED(drey_narrow_subtract_bits, drey_narrow, uint64_t,
        value = (int64_t)((uint64_t)one - (uint64_t)other); over |= (uint64_t)((one ^ other) & (one ^ value)) >> 63)
    DREY_CHECKED(drey_narrow_multiply, drey_narrow, int, over |= __builtin_mul_overflow(one, other, &value))
    DREY_CHECKED(drey_wide_add, drey_wide, int, over |= __builtin_add_overflow(one, other, &value))
    DREY_CHECKED(drey_wide_subtract, drey_wide, int, over |= __builtin_sub_overflow(one, other, &value))
    DREY_CHECKED(drey_wide_multiply, drey_wide, int, over |= __builtin_mul_overflow(one, other, &value))

    /* Toward minus infinity; by 0 there is no quotient, and of the least number by -1 neither. */
    #define DREY_FLOORED(least) \
        const int unfit = other == 0 || (other == -1 && one == (least)); \
        over |= unfit; \
        value = unfit ? 0 : one / other; \
        if (!unfit && one % other != 0 && ((one < 0) != (other < 0))) value -= 1
    DREY_CHECKED(drey_narrow_floor_divide, drey_narrow, int, DREY_FLOORED(INT64_MIN))
    DREY_CHECKED(drey_wide_floor_divide, drey_wide, int, DREY_FLOORED((drey_wide)1 << 127))
    DREY_CHECKED(drey_narrow_modulo, drey_narrow, int,
        over |= other == 0; value = other == 0 || other == -1 ? 0 : one % other;
        if (value != 0 && ((value < 0) != (other < 0))) value += other)

    DREY_CHECKED(drey_real_add, drey_real, int, value = one + other)
    DREY_CHECKED(drey_real_subtract, drey_real, int, value = one - other)
    DREY_CHECKED(drey_real_multiply, drey_real, int, value = one * other)
    DREY_CHECKED(drey_real_divide, drey_real, int, value = one / other)
    DREY_CHECKED(drey_real_single, drey_real, int, (void)other; value = (double)(float)one)

    /* By a constant above 1: a product with 2^(63 + bits) / divisor, rounded up, is exact below 2^63 (Granlund and
       Montgomery 1994); the complement of a negative number is such a number, and its quotient's complement floored. */
    static void drey_divide_by(const void* left, int64_t divisor, void* target, int64_t count, int is_modulo) {
        const int bits = 64 - __builtin_clzll((uint64_t)divisor - 1);
        const uint64_t factor = (uint64_t)((((unsigned __int128)1 << (63 + bits)) + divisor - 1) / (uint64_t)divisor);
        for (int64_t row = 0; row < count; row++) {
            const int64_t value = ((const drey_narrow*)left)[row], sign = value >> 63;
            const uint64_t high = (uint64_t)(((unsigned __int128)(uint64_t)(value ^ sign) * factor) >> 64);
            const int64_t quotient = (int64_t)(high >> (bits - 1)) ^ sign;
            ((drey_narrow*)target)[row] = is_modulo
                ? (int64_t)((uint64_t)value - (uint64_t)quotient * (uint64_t)divisor) : quotient;
        }
    }

    static int drey_to_real(const void* left, const void* right, void* target, int64_t count) {
        (void)right;
        for (int64_t row = 0; row < count; row++) ((drey_real*)target)[row] = (double)((const drey_narrow*)left)[row];
        return 0;
    }
    /* Toward zero; what no int64 is near to becomes 0. */
    static int drey_to_narrow(const void* left, const void* right, void* target, int64_t count) {
        (void)right;
        for (int64_t row = 0; row < count; row++) {
            const double value = ((const drey_real*)left)[row];
            ((drey_narrow*)target)[row] = value >= -9.2e18 && value <= 9.2e18 ? (int64_t)value : 0;
        }
        return 0;
    }
    static void drey_products(const void* left, const void* right, void* target, int64_t count) {
        for (int64_t row = 0; row < count; row++)
            ((drey_wide*)target)[row] = (__int128)((const drey_narrow*)left)[row] * ((const drey_narrow*)right)[row];
    }
    static void drey_widen(const void* source, void* target, int64_t count) {
        for (int64_t row = 0; row < count; row++) ((drey_wide*)target)[row] = ((const drey_narrow*)source)[row];
    }

    /* Days since 1970 as a date of the Gregorian calendar whose years begin in March. */
    #define DREY_DATE_PART(name, part) \
    static int name(const void* left, const void* right, void* target, int64_t count) { \
        int over = 0; \
        (void)right; \
        for (int64_t row = 0; row < count; row++) { \
            const int64_t days = ((const drey_narrow*)left)[row]; \
            const int unfit = days < -10000000 || days > 10000000; \
            const uint32_t since = (uint32_t)(unfit ? 0 : days) + 719468u + 146097u * 100u; \
            const uint32_t cycle = since / 146097u, of_cycle = since % 146097u; \
            const uint32_t year_of = (of_cycle - of_cycle / 1460u + of_cycle / 36524u - of_cycle / 146096u) / 365u; \
            const uint32_t of_year = of_cycle - (365u * year_of + year_of / 4u - year_of / 100u); \
            const uint32_t since_march = (5u * of_year + 2u) / 153u; \
            const int64_t day = of_year - (153u * since_march + 2u) / 5u + 1u; \
            const int64_t month = since_march < 10u ? since_march + 3u : since_march - 9u; \
            const int64_t year = (int64_t)(year_of + cycle * 400u) - 40000 + (month <= 2); \
            (void)day; (void)month; (void)year; \
            over |= unfit; \
            ((drey_narrow*)target)[row] = part; \
        } \
        return over; \
    }
    DREY_DATE_PART(drey_year, year)
    DREY_DATE_PART(drey_month, month)
    DREY_DATE_PART(drey_day, day)

    #define DREY_CHOSEN(name, type) \
    static void name(const uint64_t* mask, const void* left, const void* right, void* target, int64_t count) { \
        for (int64_t start = 0; start < count; start += 64) { \
            const uint64_t bits = mask[start >> 6]; \
            const int64_t size = count - start < 64 ? count - start : 64; \
            const type* ones = (const type*)left + start; \
            const type* others = (const type*)right + start; \
            type* found = (type*)target + start; \
            for (int64_t row = 0; row < size; row++) { \
                const type one = ones[row], other = others[row]; \
                found[row] = (bits >> row) & 1 ? one : other; \
            } \
        } \
    }
    DREY_CHOSEN(drey_choose_narrow, drey_narrow)
    DREY_CHOSEN(drey_choose_wide, drey_wide)

    /* Whether one of some numbers has more than 38 digits. */
    static int drey_wide_beyond(const void* values, int64_t count) {
        const __int128 limit = (__int128)10000000000000000000ULL * 10000000000000000000ULL;
        int over = 0;
        for (int64_t row = 0; row < count; row++) {
            const __int128 value = ((const drey_wide*)values)[row];
            over |= value >= limit || value <= -limit;
        }
        return over;
    }

    static void drey_spread(const uint64_t* bits, void* target, int64_t count) {
        for (int64_t row = 0; row < count; row++) ((drey_narrow*)target)[row] = (bits[row >> 6] >> (row & 63)) & 1;
    }
    """
    # 64 bytes of 0 and 1 as bits
    uint64_t packed "drey_packed" (const uint8_t* found) noexcept nogil
    # checked: whether a row did not fit
    int narrow_add "drey_narrow_add_bits" (const void*, const void*, void*, int64_t) noexcept nogil
    int narrow_subtract "drey_narrow_subtract_bits" (const void*, const void*, void*, int64_t) noexcept nogil
    int narrow_multiply "drey_narrow_multiply" (const void*, const void*, void*, int64_t) noexcept nogil
    int narrow_floor_divide "drey_narrow_floor_divide" (const void*, const void*, void*, int64_t) noexcept nogil
    int narrow_modulo "drey_narrow_modulo" (const void*, const void*, void*, int64_t) noexcept nogil
    int wide_add "drey_wide_add" (const void*, const void*, void*, int64_t) noexcept nogil
    int wide_subtract "drey_wide_subtract" (const void*, const void*, void*, int64_t) noexcept nogil
    int wide_multiply "drey_wide_multiply" (const void*, const void*, void*, int64_t) noexcept nogil
    int wide_floor_divide "drey_wide_floor_divide" (const void*, const void*, void*, int64_t) noexcept nogil
    int wide_beyond "drey_wide_beyond" (const void* values, int64_t count) noexcept nogil
    int year_of "drey_year" (const void*, const void*, void*, int64_t) noexcept nogil
    int month_of "drey_month" (const void*, const void*, void*, int64_t) noexcept nogil
    int day_of "drey_day" (const void*, const void*, void*, int64_t) noexcept nogil
    # never fail
    int real_add "drey_real_add" (const void*, const void*, void*, int64_t) noexcept nogil
    int real_subtract "drey_real_subtract" (const void*, const void*, void*, int64_t) noexcept nogil
    int real_multiply "drey_real_multiply" (const void*, const void*, void*, int64_t) noexcept nogil
    int real_divide "drey_real_divide" (const void*, const void*, void*, int64_t) noexcept nogil
    int real_single "drey_real_single" (const void*, const void*, void*, int64_t) noexcept nogil
    int to_real "drey_to_real" (const void*, const void*, void*, int64_t) noexcept nogil
    int to_narrow "drey_to_narrow" (const void*, const void*, void*, int64_t) noexcept nogil
    void narrow_equal "drey_narrow_equal" (const void*, const void*, uint64_t*, int64_t) noexcept nogil
    void narrow_less "drey_narrow_less" (const void*, const void*, uint64_t*, int64_t) noexcept nogil
    void wide_equal "drey_wide_equal" (const void*, const void*, uint64_t*, int64_t) noexcept nogil
    void wide_less "drey_wide_less" (const void*, const void*, uint64_t*, int64_t) noexcept nogil
    void real_equal "drey_real_equal" (const void*, const void*, uint64_t*, int64_t) noexcept nogil
    void real_less "drey_real_less" (const void*, const void*, uint64_t*, int64_t) noexcept nogil
    # quotients by a constant above 1, floored, or what is left of them; these fail in no row
    void divide_by "drey_divide_by" (const void* left, int64_t divisor, void* target, int64_t count,
                                     bint is_modulo) noexcept nogil
    # products of 8-byte lanes in 16-byte lanes; 8-byte lanes as 16-byte lanes
    void products "drey_products" (const void* left, const void* right, void* target, int64_t count) noexcept nogil
    void widen "drey_widen" (const void* source, void* target, int64_t count) noexcept nogil
    # left where the bit is set, else right
    void choose_narrow "drey_choose_narrow" (const uint64_t* mask, const void* left, const void* right, void* target,
                                             int64_t count) noexcept nogil
    void choose_wide "drey_choose_wide" (const uint64_t* mask, const void* left, const void* right, void* target,
                                         int64_t count) noexcept nogil
    # bits as 0 and 1
    void spread "drey_spread" (const uint64_t* bits, void* target, int64_t count) noexcept nogil
