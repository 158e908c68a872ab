"""Loops over numbers that Arrow has no function for.

    cube_roots(array) -> pa.Array        of float64, by the C library's cbrt and one step of Newton's
    bit_counts(array) -> pa.Array        of int64: how many of its bits are set
    rounded(array, digits) -> pa.Array   of float64: the float nearest to the decimal that is nearest to the value

    27.0 ──cbrt──► 3.0000000000000004 ──r - (r³ - x) / 3r²──► 3.0       the library is off by one unit at times
    7.35 (a little less than 7.35) ──* 10──► 73.5 and -3.6e-15 ──below the half──► 73 ──/ 10──► 7.3

A product with a power of ten is taken with what it was rounded by (fma), so values are not taken for halves that they
only nearly are, and the same float is rounded alike in all places. Powers are exact up to 10^22; of more digits the
last one may be off.

Invariants: runs without the GIL; what lies under nulls is computed, too, and nulls stay.

Held by: tests/expressions/test_number_functions.py
"""

from libc.math cimport cbrt, copysign, fabs, floor, fma, fmod, isfinite
from libc.stdint cimport int64_t, uint64_t

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


cdef inline double cube_root(double value) noexcept nogil:
    cdef double root = cbrt(value)
    cdef double nearer
    if root == 0.0 or not isfinite(root):
        return root
    nearer = root - (root * root * root - value) / (3.0 * root * root)
    return nearer if isfinite(nearer) else root


cdef inline double rounded_behind(double value, double factor) noexcept nogil:
    """Return a value rounded to a multiple of 1 / factor, halves away from zero."""
    cdef double size = fabs(value)
    cdef double product = size * factor
    cdef double lost, whole
    if not product < 4503599627370496.0:        # 2^52: it has no digit behind those; or it is no number
        return value
    lost = fma(size, factor, -product)
    whole = floor(product)
    if (product - whole) - 0.5 >= -lost:
        whole += 1.0
    return copysign(whole / factor, value)


cdef inline double rounded_before(double value, double factor) noexcept nogil:
    """Return a value rounded to a multiple of factor, halves away from zero."""
    cdef double size = fabs(value)
    cdef double rest
    if not isfinite(value):
        return value
    rest = fmod(size, factor)
    size -= rest
    if rest >= factor - rest:
        size += factor
    return copysign(size, value)


def rounded(values not None, int digits):
    """Return a float64 array rounded to digits behind the point, or before it where they are negative."""
    cdef double factor = 10.0 ** abs(digits)
    cdef bint is_behind = digits >= 0
    cdef int64_t count = len(values)
    cdef int64_t index
    cdef const double* numbers = float_values(values)
    buffer = pa.allocate_buffer(count * 8)
    cdef double* found = <double*> <size_t> buffer.address
    with nogil:
        if is_behind:
            for index in range(count):
                found[index] = rounded_behind(numbers[index], factor)
        else:
            for index in range(count):
                found[index] = rounded_before(numbers[index], factor)
    return with_nulls_of(values, buffer)


cdef const double* float_values(values) except? NULL:
    """Return the address of the values of a float64 array."""
    if values.type != pa.float64():
        raise ValueError(f"expected floats of 64 bits, not {values.type}")
    return (<const double*> <size_t> values.buffers()[1].address) + <int64_t> values.offset


cdef with_nulls_of(values, buffer):
    """Return float64 values, null where the others are."""
    found = pa.Array.from_buffers(pa.float64(), len(values), [None, buffer], null_count=0)
    return pc.if_else(pc.is_valid(values), found, scalar_of(None, pa.float64())) if values.null_count else found


def cube_roots(values not None):
    """Return the cube roots of a float64 array."""
    cdef int64_t count = len(values)
    cdef int64_t index
    cdef const double* numbers = float_values(values)
    buffer = pa.allocate_buffer(count * 8)
    cdef double* found = <double*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = cube_root(numbers[index])
    return with_nulls_of(values, buffer)


def bit_counts(values not None):
    """Return the number of bits of each int64 that are set."""
    cdef int64_t index, count = len(values)
    cdef uint64_t word
    if values.type != pa.int64():
        raise ValueError(f"expected int64, not {values.type}")
    if count == 0:
        return values
    cdef const uint64_t* numbers = (<const uint64_t*> <size_t> values.buffers()[1].address) + <int64_t> values.offset
    buffer = pa.allocate_buffer(count * 8)
    cdef int64_t* found = <int64_t*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            word = numbers[index]
            word -= word >> 1 & <uint64_t> 0x5555555555555555
            word = (word & <uint64_t> 0x3333333333333333) + (word >> 2 & <uint64_t> 0x3333333333333333)
            word = word + (word >> 4) & <uint64_t> 0x0F0F0F0F0F0F0F0F
            found[index] = <int64_t> (word * <uint64_t> 0x0101010101010101 >> 56)
    made = pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)
    return pc.if_else(pc.is_valid(values), made, scalar_of(None, pa.int64())) if values.null_count else made
