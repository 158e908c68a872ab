"""Loops over numbers that Arrow has no function for.

    cube_roots(array) -> pa.Array        of float64, by the C library's cbrt and one step of Newton's

    27.0 ──cbrt──► 3.0000000000000004 ──r - (r³ - x) / 3r²──► 3.0       the library is off by one unit at times

Invariants: runs without the GIL; what lies under nulls is computed, too, and nulls stay.

Held by: tests/expressions/test_number_functions.py
"""

from libc.math cimport cbrt, isfinite
from libc.stdint cimport int64_t

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


def cube_roots(values not None):
    """Return the cube roots of a float64 array."""
    cdef int64_t count = len(values)
    cdef int64_t index
    cdef const double* numbers
    cdef double* found
    if values.type != pa.float64():
        raise ValueError(f"cube roots of {values.type}")
    if count == 0:
        return values
    numbers = (<const double*> <size_t> values.buffers()[1].address) + <int64_t> values.offset
    buffer = pa.allocate_buffer(count * 8)
    found = <double*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = cube_root(numbers[index])
    roots = pa.Array.from_buffers(pa.float64(), count, [None, buffer], null_count=0)
    if values.null_count == 0:
        return roots
    return pc.if_else(pc.is_valid(values), roots, scalar_of(None, pa.float64()))
