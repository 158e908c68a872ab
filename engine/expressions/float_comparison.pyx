"""Comparison of floats by one order: NaN equals NaN and is greater than every number, -0.0 equals 0.0.

    comparison_bits(left, right, function) -> pa.Array of bools, one for each row, without nulls

    left, right: float64 or float32, both alike        function: equal ... greater_equal
    EQUAL   one == other, or both are NaN        not_equal is its complement
    AT_MOST one <= other, or the other is NaN    greater its complement; greater_equal and less with the sides swapped

Arrow compares by IEEE, where NaN is equal to nothing, and to correct that afterwards takes two more passes over the
columns. Sixty-four rows are compared at once, without branches, and packed into bits.

Invariants: runs without the GIL; what lies under a null is compared like any other value, so the caller sets nulls.
Source: the order is that of Spark and DuckDB, and of this engine's keys (engine/records/comparator.pyx).

Held by: tests/expressions/test_float_order.py
"""

from libc.stdint cimport int64_t, uint8_t

import pyarrow as pa

cdef extern from *:
    """
    #include <stdint.h>

    #define DREY_COMPARE(name, type, condition) \
    static void name(const type* left, const type* right, int64_t count, uint8_t flip, uint8_t* bits) { \
        uint8_t found[64]; \
        for (int64_t start = 0; start < count; start += 64) { \
            const int64_t size = count - start < 64 ? count - start : 64; \
            const type* ones = left + start; \
            const type* others = right + start; \
            if (size == 64) { \
                for (int row = 0; row < 64; row++) { \
                    const type one = ones[row], other = others[row]; \
                    found[row] = (uint8_t)(condition); \
                } \
            } else { \
                for (int row = 0; row < 64; row++) found[row] = 0; \
                for (int row = 0; row < size; row++) { \
                    const type one = ones[row], other = others[row]; \
                    found[row] = (uint8_t)(condition); \
                } \
            } \
            for (int64_t byte = 0; byte * 8 < size; byte++) { \
                uint8_t packed = 0; \
                for (int bit = 0; bit < 8; bit++) packed |= (uint8_t)(found[byte * 8 + bit] << bit); \
                bits[(start >> 3) + byte] = packed ^ flip; \
            } \
        } \
    }
    #define DREY_EQUAL ((one == other) | ((one != one) & (other != other)))
    #define DREY_AT_MOST ((one <= other) | (other != other))

    DREY_COMPARE(drey_doubles_equal, double, DREY_EQUAL)
    DREY_COMPARE(drey_doubles_at_most, double, DREY_AT_MOST)
    DREY_COMPARE(drey_singles_equal, float, DREY_EQUAL)
    DREY_COMPARE(drey_singles_at_most, float, DREY_AT_MOST)
    """
    void doubles_equal "drey_doubles_equal" (const double* left, const double* right, int64_t count, uint8_t flip,
                                             uint8_t* bits) noexcept nogil
    void doubles_at_most "drey_doubles_at_most" (const double* left, const double* right, int64_t count, uint8_t flip,
                                                 uint8_t* bits) noexcept nogil
    void singles_equal "drey_singles_equal" (const float* left, const float* right, int64_t count, uint8_t flip,
                                             uint8_t* bits) noexcept nogil
    void singles_at_most "drey_singles_at_most" (const float* left, const float* right, int64_t count, uint8_t flip,
                                                 uint8_t* bits) noexcept nogil

#: function -> (is an equality, sides are swapped, is the complement)
_FORMS = {
    "equal": (True, False, False),
    "not_equal": (True, False, True),
    "less_equal": (False, False, False),
    "greater": (False, False, True),
    "greater_equal": (False, True, False),
    "less": (False, True, True),
}


cdef const uint8_t* values_address(array, int64_t width) except? NULL:
    """Return the address of the first value of an array."""
    return <const uint8_t*> <size_t> array.buffers()[1].address + <int64_t> array.offset * width


def comparison_bits(left not None, right not None, str function not None):
    """Return an array of bools without nulls: the rows where the function holds."""
    cdef int64_t count = len(left)
    cdef bint single = left.type == pa.float32()
    cdef const uint8_t* one
    cdef const uint8_t* other
    cdef uint8_t* bits
    cdef bint is_equality, is_swapped
    cdef uint8_t flip
    if len(right) != count or left.type != right.type or not (single or left.type == pa.float64()):
        raise ValueError(f"comparison of {count} {left.type} with {len(right)} {right.type}")
    if count == 0:
        return pa.nulls(0, pa.bool_())
    is_equality, is_swapped, is_complement = _FORMS[function]
    flip = 0xFF if is_complement else 0
    one = values_address(right if is_swapped else left, 4 if single else 8)
    other = values_address(left if is_swapped else right, 4 if single else 8)
    buffer = pa.allocate_buffer((count + 7) >> 3)
    bits = <uint8_t*> <size_t> buffer.address
    with nogil:
        if single and is_equality:
            singles_equal(<const float*> one, <const float*> other, count, flip, bits)
        elif single:
            singles_at_most(<const float*> one, <const float*> other, count, flip, bits)
        elif is_equality:
            doubles_equal(<const double*> one, <const double*> other, count, flip, bits)
        else:
            doubles_at_most(<const double*> one, <const double*> other, count, flip, bits)
    return pa.Array.from_buffers(pa.bool_(), count, [None, buffer], null_count=0)
