# Numbers from their decimal text, without locale: what most files have; all else is left to the caller.
#
#     parse_integer(text, size, &value)    a minus and up to 19 digits that fit int64
#     parse_decimal(text, size, &value)    a minus, digits and at most one point among them, up to EXACT_DIGITS digits
#     put_integer(out, row, width, value)  a number that fits into a column of so many bytes a row
#
# False: not one of those. Decimals of up to 15 digits are exact as ``digits / 10^k``: both are doubles without error.
#
# Source: Clinger, "How to read floating point numbers accurately" (1990) for the exact case.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    EXACT_DIGITS = 15

cdef extern from * nogil:
    """
    static const double drey_exact_powers[] = {1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
                                               1e13, 1e14, 1e15};
    """
    const double* exact_powers "drey_exact_powers"


cdef inline bint parse_integer(const uint8_t* text, int64_t size, int64_t* value) noexcept nogil:
    cdef int64_t position = 0
    cdef uint64_t result = 0
    cdef uint8_t digit
    cdef bint negative = size > 0 and text[0] == 45
    if negative:
        position = 1
    if position == size or size - position > 19:
        return False
    while position < size:
        digit = text[position] - 48
        if digit > 9:
            return False
        result = result * 10 + digit
        position += 1
    # Nineteen nines are less than 2**64.
    if result > (<uint64_t>1 << 63) - 1 + negative:
        return False
    value[0] = <int64_t>(0 - result if negative else result)
    return True


cdef inline void put_integer(uint8_t* out, int64_t row_index, int32_t width, int64_t value) noexcept nogil:
    if width == 8:
        (<int64_t*>out)[row_index] = value
    elif width == 4:
        (<int32_t*>out)[row_index] = <int32_t>value
    elif width == 2:
        (<int16_t*>out)[row_index] = <int16_t>value
    else:
        (<int8_t*>out)[row_index] = <int8_t>value


cdef inline bint parse_decimal(const uint8_t* text, int64_t size, double* value) noexcept nogil:
    cdef int64_t position = 0
    cdef int64_t digits = 0
    cdef int64_t decimals = -1
    cdef int64_t mantissa = 0
    cdef uint8_t digit
    cdef bint negative = size > 0 and text[0] == 45
    if negative:
        position = 1
    if size - position > EXACT_DIGITS + 1 or position == size or text[position] == 46:
        return False
    while position < size:
        digit = text[position] - 48
        if digit <= 9:
            mantissa = mantissa * 10 + digit
            digits += 1
        elif text[position] == 46 and decimals < 0:
            decimals = digits
        else:
            return False
        position += 1
    if digits > EXACT_DIGITS or decimals == digits:
        return False
    value[0] = <double>mantissa
    if decimals >= 0:
        value[0] /= exact_powers[digits - decimals]
    if negative:
        value[0] = -value[0]
    return True
