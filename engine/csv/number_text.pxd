# Numbers as decimal text, without locale and without allocation.
#
#     put_unsigned(out, value)      up to 20 digits; returns the end
#     put_double(out, value)        the shortest text that reads back as the same value, or NULL: not one of those below
#
# Both write up to nine bytes past the end: the caller has that room.
#
# put_double knows what people write down: zero, and values of 1e-4 <= |x| < 1e9 with at most nine decimals and fifteen
# digits. For those n = x * 10^k, rounded, is exact as soon as n / 10^k gives x again; fifteen digits name one double
# only, so the first k that fits is the shortest text. All else is left to the caller.
#
# How many digits a number has is as good as random: no branch asks for it. Eight digits are made at once within one
# word (Khuong, "How to print integers really fast", 2013) and shifted by their leading zeros. Doubles below a million
# are first taken as hundredths, which whole numbers and prices are.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.math cimport fabs, signbit
from libc.string cimport memcpy

cdef enum:
    NUMBER_TEXT_MAX = 24
    DECIMALS_MAX = 9

cdef extern from * nogil:
    """
    static const double drey_powers[] = {1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    """
    const double* powers_of_ten "drey_powers"
    int lowest_bit "__builtin_ctzll" (uint64_t bits)


# The eight digits of a value below 10^8, a byte each, the first one lowest: halves, pairs, then digits side by side.
cdef inline uint64_t eight_digits(uint64_t value) noexcept nogil:
    cdef uint64_t high = value // 10000
    cdef uint64_t digits = high | (value - 10000 * high) << 32
    high = ((digits * 10486) >> 20) & <uint64_t>0x0000007F0000007FULL
    digits = high | (digits - 100 * high) << 16
    high = ((digits * 103) >> 10) & <uint64_t>0x000F000F000F000FULL
    return high | (digits - 10 * high) << 8


cdef inline void put_eight(uint8_t* out, uint64_t digits) noexcept nogil:
    digits |= <uint64_t>0x3030303030303030ULL
    memcpy(out, &digits, 8)


# Write all but the last ``decimals`` of eight digits, without leading zeros, at least one.
cdef inline uint8_t* put_whole(uint8_t* out, uint64_t digits, int decimals) noexcept nogil:
    cdef int zeros = lowest_bit(digits | <uint64_t>1 << (56 - 8 * decimals)) >> 3
    put_eight(out, digits >> (8 * zeros))
    return out + 8 - decimals - zeros


cdef inline uint8_t* put_unsigned(uint8_t* out, uint64_t value) noexcept nogil:
    cdef uint64_t higher
    if value < 100000000:
        return put_whole(out, eight_digits(value), 0)
    higher = value // 100000000
    if higher < 100000000:
        out = put_whole(out, eight_digits(higher), 0)
    else:
        out = put_whole(out, eight_digits(higher // 100000000), 0)
        put_eight(out, eight_digits(higher % 100000000))
        out += 8
    put_eight(out, eight_digits(value % 100000000))
    return out + 8


# Write a fraction of up to DECIMALS_MAX digits, leading zeros included.
cdef inline uint8_t* put_fraction(uint8_t* out, uint64_t value, int count) noexcept nogil:
    cdef int position
    out[0] = 46
    for position in range(count, 0, -1):
        out[position] = <uint8_t>(48 + value % 10)
        value //= 10
    return out + 1 + count


cdef inline uint8_t* put_double(uint8_t* out, double value) noexcept nogil:
    cdef double magnitude = fabs(value)
    cdef double scaled
    cdef uint64_t digits, power, whole, cents
    cdef int decimals
    cdef int is_negative = signbit(value) != 0
    if magnitude < 1e6:
        digits = <uint64_t><int64_t>(magnitude * 100 + 0.5)
        if <double><int64_t>digits / 100 == magnitude:
            digits = eight_digits(digits)
            out[0] = 45
            out = put_whole(out + is_negative, digits, 2)
            cents = digits >> 48
            out[0] = 46
            put_eight(out + 1, cents)
            return out + 3 - (cents < 256) - 2 * (cents == 0)
    if not (1e-4 <= magnitude < 1e9):
        return NULL
    for decimals in range(DECIMALS_MAX + 1):
        scaled = magnitude * powers_of_ten[decimals]
        if scaled >= 1e15:
            return NULL
        digits = <uint64_t><int64_t>(scaled + 0.5)
        if <double><int64_t>digits / powers_of_ten[decimals] == magnitude:
            break
    else:
        return NULL
    out[0] = 45
    out += is_negative
    if decimals == 0:
        return put_unsigned(out, digits)
    power = <uint64_t>powers_of_ten[decimals]
    whole = digits // power
    return put_fraction(put_unsigned(out, whole), digits - whole * power, decimals)
