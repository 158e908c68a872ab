"""Quantiles of numbers from the two beside them: the exact number between, rounded once to the nearest float64.

    exact_between(low, high, fraction, scale) -> float64      low, high: unscaled, as decimal256 of scale 0

    low * (2^e - m) + high * m                  fraction = m / 2^e, which a float is, of 62 digits behind the point at
    ─────────────────────────── rounded once    most
         2^e * 10^scale

The median of 2.01 and 2.02 is 2.015, where floats of both would give 2.0149999999999997.

Limits: values of up to 190 bits, which decimals of 38 digits are. Invariants: runs without the GIL; null where ``low``
is.

Held by: tests/window/test_exact_quantiles.py
"""

from libc.math cimport ldexp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import pyarrow as pa

from engine.accumulators.means cimport exact_mean
from engine.records.arrow_functions import pc

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* A number of four words, two's complement, times one that is not negative; added to another. */
    static void drey_between_add(const uint64_t* value, uint64_t factor, uint64_t* total) {
        unsigned __int128 product = 0, sum = 0;
        for (int word = 0; word < 4; word++) {
            product += (unsigned __int128)value[word] * factor;
            sum += (unsigned __int128)total[word] + (uint64_t)product;
            total[word] = (uint64_t)sum;
            product >>= 64;
            sum >>= 64;
        }
    }
    """
    void add_times "drey_between_add" (const uint64_t* value, uint64_t factor, uint64_t* total) noexcept nogil

cdef enum:
    FRACTION_BITS = 62


cdef double between(const uint64_t* low, const uint64_t* high, double fraction, int32_t scale) noexcept nogil:
    cdef uint64_t part = <uint64_t> ldexp(fraction, FRACTION_BITS)
    cdef uint64_t whole = <uint64_t> 1 << FRACTION_BITS
    cdef uint64_t[4] total
    while part & 1 == 0 and whole > 1:
        part >>= 1
        whole >>= 1
    total[0] = total[1] = total[2] = total[3] = 0
    add_times(low, whole - part, total)
    add_times(high, part, total)
    return exact_mean(total, 4, <int64_t> whole, scale)


def exact_between(low not None, high not None, fraction not None, int32_t scale):
    """Return the numbers that are a fraction of the way from one to another, both of one scale."""
    cdef int64_t count = len(low), index
    cdef const uint8_t* ones
    cdef const uint8_t* others
    cdef const double* fractions
    cdef double* found
    if not (pa.types.is_decimal256(low.type) and low.type == high.type and fraction.type == pa.float64()):
        raise ValueError(f"between {low.type} and {high.type}")
    if count == 0:
        return pa.nulls(0, pa.float64())
    ones = <const uint8_t*> <size_t> low.buffers()[1].address + 32 * <int64_t> low.offset
    others = <const uint8_t*> <size_t> high.buffers()[1].address + 32 * <int64_t> high.offset
    fractions = <const double*> <size_t> fraction.buffers()[1].address + <int64_t> fraction.offset
    buffer = pa.allocate_buffer(8 * count)
    found = <double*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = between(
                <const uint64_t*> (ones + 32 * index), <const uint64_t*> (others + 32 * index), fractions[index], scale
            )
    bitmap = None if low.null_count == 0 else pc.is_valid(low).buffers()[1]
    return pa.Array.from_buffers(pa.float64(), count, [bitmap, buffer], low.null_count)
