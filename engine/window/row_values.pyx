"""RowValues: a column's values at other rows, which only move forward: lag, lead, first_value and their like.

    values = RowValues(column_index)
    values.at(rows, queue) -> Arrow array       rows: Positions, -1 for none (null)

Rows that have a value do not go back, so what is asked for lies in a few blocks, one behind the other, and is taken
from each at once. The last value is kept: its block may be gone while rows still ask for it (the first row of a long
partition).

Held by: tests/window/test_row_values.py
"""

cimport cython
from libc.stdint cimport int64_t

from engine.window.row_block cimport Positions

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import array_of, scalar_of


cdef int64_t first_row(const int64_t* rows, int64_t index, int64_t count) noexcept nogil:
    """Return the first row asked for from an index on, or -1."""
    while index < count:
        if rows[index] >= 0:
            return rows[index]
        index += 1
    return -1


cdef int64_t fill_run(const int64_t* rows, int64_t index, int64_t count, int64_t start, int64_t stop,
                      int64_t* found) noexcept nogil:
    """Write rows that lie in [start, stop), or are none, counted from start; return where the next run begins."""
    cdef int64_t first = index
    while index < count and (rows[index] < 0 or start <= rows[index] < stop):
        found[index - first] = rows[index] - start if rows[index] >= 0 else -1
        index += 1
    return index


@cython.final
cdef class RowValues:
    """Args: column: of the batches in a queue's blocks."""

    cdef int64_t _column
    cdef int64_t _kept_row      # -1: none
    cdef object _kept           # an array of its value

    def __cinit__(self, int64_t column):
        self._column = column
        self._kept_row = -1

    def at(self, Positions rows not None, queue):
        """Return the values at rows; null where there is none."""
        cdef int64_t index = 0
        cdef int64_t wanted, start, stop, first
        cdef int64_t last = -1
        cdef int64_t* found
        pieces = []
        while index < rows.count:
            wanted = first_row(rows.values, index, rows.count)
            if wanted < 0 and pieces:
                pieces.append(pa.nulls(rows.count - index, pieces[0].type))
                break
            if wanted == self._kept_row and wanted >= 0:
                source, start, stop = self._kept, wanted, wanted + 1
            else:
                block = queue.block_at(wanted if wanted >= 0 else rows.start)
                source, start, stop = block.batch.column(self._column), block.start, block.stop
            buffer = pa.allocate_buffer((rows.count - index) * 8)
            found = <int64_t*> <size_t> buffer.address
            first = index
            with nogil:
                index = fill_run(rows.values, index, rows.count, start, stop, found)
            pieces.append(self._taken(source, buffer, index - first))
            last = max(last, self._last(rows, first, index))
            if last >= start and last != self._kept_row:
                self._kept, self._kept_row = pc.take(source, array_of([last - start])), last
        return pa.concat_arrays(pieces) if len(pieces) > 1 else pieces[0]

    cdef int64_t _last(self, Positions rows, int64_t first, int64_t stop):
        """Return the last row asked for among some, or -1."""
        while stop > first:
            stop -= 1
            if rows.values[stop] >= 0:
                return rows.values[stop]
        return -1

    cdef object _taken(self, source, buffer, int64_t count):
        """Return values of an array at places, null where a place is -1."""
        places = pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)
        missing = pc.less(places, 0)
        if missing.true_count:
            places = pc.if_else(missing, scalar_of(None, pa.int64()), places)
        return pc.take(source, places)
