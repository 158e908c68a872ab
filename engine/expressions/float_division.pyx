"""``//`` of floats, bit for bit as CPython's float_floor_div; by zero as IEEE divides.

    floor_quotients(left, right) -> pa.Array        float64 each, without nulls

    remainder = fmod(x, y) ──► (x - remainder) / y, less one where the signs differ ──► to the nearest whole number

Arrow has the floored remainder only; where the divisor was added to it, so that the sign is the divisor's, the
quotient cannot be told from it any more (1.0 // -inf, 1e16 // 3.0).

Invariants: runs without the GIL; what lies under nulls is divided, too, so the caller sets them.
Source: Objects/floatobject.c of CPython, _float_div_mod.

Held by: tests/expressions/test_evaluate.py
"""

cimport cython
from libc.math cimport copysign, floor, fmod
from libc.stdint cimport int64_t

import pyarrow as pa


# by zero as IEEE divides: in a build with checks, too
@cython.cdivision(True)
cdef inline double floor_quotient(double left, double right) noexcept nogil:
    cdef double remainder, quotient, whole
    if right == 0.0:
        return left / right
    remainder = fmod(left, right)
    quotient = (left - remainder) / right
    if remainder != 0.0 and (right < 0.0) != (remainder < 0.0):
        quotient -= 1.0
    if quotient == 0.0:
        return copysign(0.0, left / right)
    whole = floor(quotient)
    return whole + 1.0 if quotient - whole > 0.5 else whole


def floor_quotients(left not None, right not None):
    """Return the quotients of two float64 arrays, rounded down."""
    cdef int64_t count = len(left)
    cdef int64_t index
    cdef const double* above
    cdef const double* below
    cdef double* found
    if len(right) != count or left.type != pa.float64() or right.type != pa.float64():
        raise ValueError(f"division of {count} {left.type} by {len(right)} {right.type}")
    if count == 0:
        return pa.nulls(0, pa.float64())
    above = (<const double*> <size_t> left.buffers()[1].address) + <int64_t> left.offset
    below = (<const double*> <size_t> right.buffers()[1].address) + <int64_t> right.offset
    buffer = pa.allocate_buffer(count * 8)
    found = <double*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = floor_quotient(above[index], below[index])
    return pa.Array.from_buffers(pa.float64(), count, [None, buffer], null_count=0)
