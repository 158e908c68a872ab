# Numbers as decimal text, without locale and without allocation.
#
#     put_unsigned(out, value)      up to 20 digits; returns the end
#     put_double(out, value)        the shortest text that reads back as the same value, or NULL: not one of those below
#
# put_double knows what people write down: zero, and values of 1e-4 <= |x| < 1e9 with at most nine decimals and fifteen
# digits. For those n = x * 10^k, rounded, is exact as soon as n / 10^k gives x again; fifteen digits name one double
# only, so the first k that fits is the shortest text. All else is left to the caller.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.math cimport fabs, signbit

cdef enum:
    NUMBER_TEXT_MAX = 24
    DECIMALS_MAX = 9

cdef extern from * nogil:
    """
    static const char drey_digit_pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    static const double drey_powers[] = {1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    """
    const char* digit_pairs "drey_digit_pairs"
    const double* powers_of_ten "drey_powers"


cdef inline int digit_count(uint64_t value) noexcept nogil:
    cdef int count = 1
    while value >= 10000:
        value //= 10000
        count += 4
    if value >= 1000:
        return count + 3
    if value >= 100:
        return count + 2
    return count + 1 if value >= 10 else count


# Write exactly count digits, leading zeros included.
cdef inline void put_digits(uint8_t* out, uint64_t value, int count) noexcept nogil:
    cdef int position = count
    cdef int pair
    while position >= 2:
        pair = <int>(value % 100) * 2
        value //= 100
        position -= 2
        out[position] = digit_pairs[pair]
        out[position + 1] = digit_pairs[pair + 1]
    if position:
        out[0] = <uint8_t>(48 + value % 10)


cdef inline uint8_t* put_unsigned(uint8_t* out, uint64_t value) noexcept nogil:
    cdef int count = digit_count(value)
    put_digits(out, value, count)
    return out + count


cdef inline uint8_t* put_double(uint8_t* out, double value) noexcept nogil:
    cdef double magnitude = fabs(value)
    cdef double scaled
    cdef uint64_t digits, power, whole
    cdef int decimals
    if not (magnitude < 1e9 and (magnitude >= 1e-4 or magnitude == 0)):
        return NULL
    for decimals in range(DECIMALS_MAX + 1):
        scaled = magnitude * powers_of_ten[decimals]
        if scaled >= 1e15:
            return NULL
        digits = <uint64_t>(scaled + 0.5)
        if <double>digits / powers_of_ten[decimals] == magnitude:
            break
    else:
        return NULL
    if signbit(value):
        out[0] = 45
        out += 1
    if decimals == 0:
        return put_unsigned(out, digits)
    power = <uint64_t>powers_of_ten[decimals]
    whole = digits // power
    out = put_unsigned(out, whole)
    out[0] = 46
    put_digits(out + 1, digits - whole * power, decimals)
    return out + 1 + decimals
