"""Loops over decimals that Arrow has no function for.

    remainders(left, right) -> pa.Array        floored remainders of decimal256 arrays of one scale, of the same type
    quotients(left, right) -> pa.Array         floored quotients of such arrays, decimal256 without a scale

    |a| mod |b| ──► the sign of a ──► + b where that is not the sign of b        in 128 bits where both fit into them
    |a| div |b| ──► - where the signs differ ──► - 1 where something is left

Invariants: runs without the GIL; nulls stay. A divisor that is 0 raises ArrowInvalid.

Held by: tests/expressions/test_decimal_arithmetic.py
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import pyarrow as pa

from engine.records.arrow_functions import pc

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    typedef struct { uint64_t words[4]; } drey_whole;

    static void drey_negate(drey_whole* value) {
        unsigned __int128 carry = 1;
        for (int word = 0; word < 4; word++, carry >>= 64) {
            carry += (uint64_t)~value->words[word];
            value->words[word] = (uint64_t)carry;
        }
    }
    static void drey_add(drey_whole* value, const drey_whole* other) {
        unsigned __int128 carry = 0;
        for (int word = 0; word < 4; word++, carry >>= 64) {
            carry += (unsigned __int128)value->words[word] + other->words[word];
            value->words[word] = (uint64_t)carry;
        }
    }
    static int drey_is_less(const drey_whole* one, const drey_whole* other) {
        for (int word = 3; word >= 0; word--)
            if (one->words[word] != other->words[word]) return one->words[word] < other->words[word];
        return 0;
    }
    static int drey_is_zero(const drey_whole* value) {
        return !(value->words[0] | value->words[1] | value->words[2] | value->words[3]);
    }
    /* What is left of one, both below 2^255, beside the quotient: bit by bit where they need more than 128. */
    static drey_whole drey_rest(const drey_whole* one, const drey_whole* other, drey_whole* quotient) {
        drey_whole rest = {{0, 0, 0, 0}};
        memset(quotient, 0, sizeof *quotient);
        if (!(one->words[3] | one->words[2] | other->words[3] | other->words[2])) {
            const unsigned __int128 above = (unsigned __int128)one->words[1] << 64 | one->words[0];
            const unsigned __int128 below = (unsigned __int128)other->words[1] << 64 | other->words[0];
            const unsigned __int128 times = above / below, found = above - times * below;
            rest.words[0] = (uint64_t)found;
            rest.words[1] = (uint64_t)(found >> 64);
            quotient->words[0] = (uint64_t)times;
            quotient->words[1] = (uint64_t)(times >> 64);
            return rest;
        }
        for (int bit = 255; bit >= 0; bit--) {
            for (int word = 3; word > 0; word--) rest.words[word] = rest.words[word] << 1 | rest.words[word - 1] >> 63;
            rest.words[0] = rest.words[0] << 1 | (one->words[bit >> 6] >> (bit & 63) & 1);
            if (!drey_is_less(&rest, other)) {
                drey_whole taken = *other;
                drey_negate(&taken);
                drey_add(&rest, &taken);
                quotient->words[bit >> 6] |= (uint64_t)1 << (bit & 63);
            }
        }
        return rest;
    }
    /* The floored remainder, or quotient; 0: the divisor is. */
    static int drey_divide(const uint8_t* left, const uint8_t* right, uint8_t* target, int asks_quotient) {
        drey_whole one, other, divisor, rest, quotient;
        memcpy(&one, left, 32);
        memcpy(&divisor, right, 32);
        if (drey_is_zero(&divisor)) return 0;
        const int is_negative = one.words[3] >> 63, is_below = divisor.words[3] >> 63;
        other = divisor;
        if (is_negative) drey_negate(&one);
        if (is_below) drey_negate(&other);
        rest = drey_rest(&one, &other, &quotient);
        if (asks_quotient) {
            const drey_whole minus_one = {{~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0}};
            if (is_negative != is_below) drey_negate(&quotient);
            if (is_negative != is_below && !drey_is_zero(&rest)) drey_add(&quotient, &minus_one);
            memcpy(target, &quotient, 32);
            return 1;
        }
        if (is_negative) drey_negate(&rest);
        if (is_negative != is_below && !drey_is_zero(&rest)) drey_add(&rest, &divisor);
        memcpy(target, &rest, 32);
        return 1;
    }
    """
    bint divide "drey_divide" (
        const uint8_t* left, const uint8_t* right, uint8_t* target, bint asks_quotient
    ) noexcept nogil


cdef const uint8_t* decimals_of(array) except? NULL:
    """Return the address of the values of a decimal256 array."""
    if not pa.types.is_decimal256(array.type):
        raise ValueError(f"division of {array.type}")
    return (<const uint8_t*> <size_t> array.buffers()[1].address) + 32 * <int64_t> array.offset


def remainders(left not None, right not None):
    """Return the floored remainders of two decimal256 arrays of one type; ArrowInvalid where a divisor is 0."""
    return divided(left, right, left.type, False)


def quotients(left not None, right not None):
    """Return the floored quotients of two decimal256 arrays of one type; ArrowInvalid where a divisor is 0."""
    return divided(left, right, pa.decimal256(left.type.precision, 0), True)


cdef divided(left, right, data_type, bint asks_quotient):
    """Return the quotients, or the remainders, of the pairs of two arrays, as decimals of a type."""
    cdef int64_t count = len(left), row
    cdef const uint8_t* ones
    cdef const uint8_t* others
    cdef uint8_t* found
    cdef const uint8_t* asked
    cdef bint is_divided = True
    if left.type != right.type or len(right) != count:
        raise ValueError(f"division of {left.type} by {right.type}")
    if count == 0:
        return pa.nulls(0, data_type)
    ones, others = decimals_of(left), decimals_of(right)
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    bits = valid.buffers()[1]
    asked = <const uint8_t*> <size_t> bits.address
    buffer = pa.allocate_buffer(32 * count)
    found = <uint8_t*> <size_t> buffer.address
    with nogil:
        for row in range(count):
            if not (asked[row >> 3] >> (row & 7)) & 1:
                continue
            is_divided = divide(ones + 32 * row, others + 32 * row, found + 32 * row, asks_quotient)
            if not is_divided:
                break
    if not is_divided:
        raise pa.ArrowInvalid("divide by zero")
    return pa.Array.from_buffers(data_type, count, [bits, buffer])
