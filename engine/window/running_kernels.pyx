"""Kernels of values that follow from those of the row before: running products, means that forget.

    values = Running(factor, flags)                       product: factor -1; of a mean, what stays of a weight, 0 to 1
    values.of(block, column, starts) -> float64 array     null in rows without a value

    product        p = p * x
    mean           m = (w * m + v * x) / (w + v), w = w * factor each row            v: 1, or 1 - factor in recursion
    flags          1: weights are adjusted    2: rows without a value let nothing fade

State: three numbers, of the partition in which the last row lies. A few instructions a row.

Held by: tests/integration/test_running_functions.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.records.arrow_batch cimport ColumnView, column_is_null
from engine.window.row_block cimport Positions, RowBlock

import pyarrow as pa

cdef enum Flags:
    ADJUSTED = 1
    PASSES_NULLS = 2


@cython.final
cdef class Running:
    """A product, or a mean, of all rows of a partition up to each."""

    cdef double factor, value, weight
    cdef int64_t flags
    cdef bint has_value

    def __cinit__(self, double factor, int64_t flags):
        self.factor = factor
        self.flags = flags

    def of(self, RowBlock block not None, int64_t column, Positions starts not None):
        """Return the values of a block, which follows the one before."""
        cdef int64_t count = block.stop - block.start
        buffer = pa.allocate_buffer(count * 8)
        bits = pa.allocate_buffer((count + 7) // 8)
        cdef double* found = <double*> <size_t> buffer.address
        cdef uint8_t* valid = <uint8_t*> <size_t> bits.address
        cdef const ColumnView* view = block.column(column)
        cdef int64_t index
        with nogil:
            for index in range((count + 7) // 8):
                valid[index] = 0
            for index in range(count):
                if starts.values[index] == block.start + index:
                    self.has_value = False
                found[index] = 0.0
                if column_is_null(view, index):
                    if not self.flags & PASSES_NULLS:
                        self.weight *= self.factor
                    continue
                self.take((<const double*> view.values)[view.offset + index])
                found[index] = self.value
                valid[index >> 3] |= <uint8_t> (1 << (index & 7))
        return pa.Array.from_buffers(pa.float64(), count, [bits, buffer])

    cdef inline void take(self, double value) noexcept nogil:
        cdef double own
        if not self.has_value:
            self.has_value = True
            self.value = value
            self.weight = 1.0
        elif self.factor < 0:
            self.value *= value
        else:
            own = 1.0 if self.flags & ADJUSTED else 1.0 - self.factor
            self.weight *= self.factor
            # equal values stay what they are, infinite ones too
            if self.value != value:
                self.value = (self.weight * self.value + own * value) / (self.weight + own)
            self.weight = self.weight + own if self.flags & ADJUSTED else 1.0
