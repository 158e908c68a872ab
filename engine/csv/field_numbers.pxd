# Numbers from their decimal text, without locale: what most files have; all else is left to the caller.
#
#     parse_integer(text, size, text_end, &value)    a minus and up to 19 digits that fit int64
#     parse_decimal(text, size, text_end, &value)    a minus, up to EXACT_DIGITS digits, at most one point among them
#     put_integer(out, row, width, value)            a number that fits into a column of so many bytes a row
#
# False: not one of those. Decimals of up to 15 digits are exact as ``digits / 10^k``: both are doubles without error.
# Reads stay before text_end, the end of the memory that text lies in.
#
# How long a number is, and where its point, is as good as random: up to eight bytes are taken as one word, without a
# branch that asks for it. What is longer is read digit by digit.
#
# Source: Clinger, "How to read floating point numbers accurately" (1990) for the exact case; Muła, "SIMD-ized parsing
# of numbers" (2014) for the digits of a word.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    EXACT_DIGITS = 15

cdef extern from * nogil:
    """
    static const double drey_exact_powers[] = {1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
                                               1e13, 1e14, 1e15};
    """
    const double* exact_powers "drey_exact_powers"
    int lowest_bit "__builtin_ctzll" (uint64_t bits)
    const uint64_t EACH_BYTE "((uint64_t)0x0101010101010101)"
    const uint64_t PAIRS "((uint64_t)0x00FF00FF00FF00FF)"
    const uint64_t FOURS "((uint64_t)0x0000FFFF0000FFFF)"


# Up to eight bytes, the last one highest, less 48 each: digits have their values, and zeros stand before them.
cdef inline bint take_word(const uint8_t* text, int64_t size, const uint8_t* text_end, uint64_t* word) noexcept nogil:
    if not (0 < size <= 8 and text_end - text >= 8):
        return False
    memcpy(word, text, 8)
    word[0] = (word[0] ^ 48 * EACH_BYTE) << (64 - 8 * size)
    return True


# Take the point out of a word, and tell how many bytes came after it. False: it is the first or the last of them.
cdef inline bint take_point(uint64_t* word, int64_t size, int* decimals) noexcept nogil:
    cdef uint64_t others = word[0] ^ 30 * EACH_BYTE
    cdef uint64_t points = (others - EACH_BYTE) & ~others & 128 * EACH_BYTE
    cdef int place = lowest_bit(points | <uint64_t>1 << 63) >> 3
    cdef uint64_t before = (<uint64_t>1 << (8 * place)) - 1
    decimals[0] = 7 - place
    if (points != 0) & ((place == 7) | (place == 8 - size)):
        return False
    word[0] = (word[0] & before) << 8 | word[0] & ~(before << 8 | 255) if points else word[0]
    return True


# False: some byte is no digit.
cdef inline bint digits_of(uint64_t word, uint64_t* value) noexcept nogil:
    cdef bint are_digits = ((word + 118 * EACH_BYTE) | word) & 128 * EACH_BYTE == 0
    word = (word * 10 + (word >> 8)) & PAIRS
    word = (word * 100 + (word >> 16)) & FOURS
    value[0] = <uint32_t>(word * 10000 + (word >> 32))
    return are_digits


cdef inline bint parse_integer(const uint8_t* text, int64_t size, const uint8_t* text_end,
                               int64_t* value) noexcept nogil:
    cdef int64_t position = 0
    cdef uint64_t result = 0
    cdef uint64_t word
    cdef uint8_t digit
    cdef bint negative = size > 0 and text[0] == 45
    if negative:
        position = 1
    if take_word(text + position, size - position, text_end, &word) and digits_of(word, &result):
        value[0] = 0 - <int64_t>result if negative else <int64_t>result
        return True
    if position == size or size - position > 19:
        return False
    result = 0
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


cdef inline bint parse_decimal(const uint8_t* text, int64_t size, const uint8_t* text_end,
                               double* value) noexcept nogil:
    cdef int64_t position = 0
    cdef int64_t digits = 0
    cdef int64_t decimals = -1
    cdef int64_t mantissa = 0
    cdef uint64_t word, result
    cdef int places
    cdef uint8_t digit
    cdef bint negative = size > 0 and text[0] == 45
    if negative:
        position = 1
    if (take_word(text + position, size - position, text_end, &word)
            and take_point(&word, size - position, &places) and digits_of(word, &result)):
        value[0] = <double><int64_t>result / exact_powers[places]
        if negative:
            value[0] = -value[0]
        return True
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
