"""RangeBound: where the frame of each row begins or ends when its bounds are distances in the order key's values.

    bound = RangeBound(column, data_type, offset, is_end, threshold, descending, nulls_last)
    bound.of(block, partitions, queue) -> Positions, or None when rows are needed that are not there yet

For a row with the key v the frame begins at the first row of its partition whose key is at least v + offset, and ends
before the first one whose key is more; in a descending order keys count as their negatives. A null is at no distance
from anything but nulls, NaN from anything but NaN: such a row has its peers. Both only move forward, so each row is
looked at once; blocks come from the queue.

Keys are int64 (days, ticks), float64 or decimals of 128 bits, as a block's column holds them; sums of key and offset
are made in 128 bits, or in float64.

Held by: tests/window/test_range_bound.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.accumulators.checked_sums cimport int128, load_int128
from engine.records.arrow_batch cimport ColumnView, column_is_null
from engine.window.row_block cimport Positions, RowBlock, new_positions

import pyarrow as pa

cdef extern from *:
    """
    #include <stdint.h>
    static inline drey_int128 drey_range_whole(int64_t high, uint64_t low) {
        return (drey_int128)(((unsigned __int128)(uint64_t)high << 64) | low);
    }
    """
    int128 load_number "drey_range_load" (const void* source) noexcept nogil
    int128 whole_number "drey_range_whole" (int64_t high, unsigned long long low) noexcept nogil

cdef enum Domain:
    INTEGERS = 0
    REALS = 1
    DECIMALS = 2

# A key: nulls and NaNs are in classes of their own, before or behind (0) the numbers.
cdef struct Key:
    int32_t rank
    int128 whole
    double real

cdef struct Order:
    int32_t domain
    bint descending
    int32_t null_rank       # -2 or 2
    int128 whole_offset
    double real_offset
    bint is_end
    uint8_t threshold


cdef inline Key key_at(const Order* order, const ColumnView* column, int64_t row) noexcept nogil:
    cdef Key key
    key.rank = 0
    key.whole = 0
    key.real = 0.0
    if column_is_null(column, row):
        key.rank = order.null_rank
    elif order.domain == REALS:
        key.real = (<const double*> column.values)[column.offset + row]
        if key.real != key.real:
            key.rank = -1 if order.descending else 1
        elif order.descending:
            key.real = -key.real
    else:
        if order.domain == INTEGERS:
            key.whole = (<const int64_t*> column.values)[column.offset + row]
        else:
            key.whole = load_int128(column.values + (column.offset + row) * 16)
        if order.descending:
            key.whole = -key.whole
    return key


cdef inline bint is_passed(const Order* order, const Key* target, const Key* key) noexcept nogil:
    """Whether the bound lies behind a row with that key."""
    if key.rank != target.rank:
        return key.rank < target.rank
    if key.rank != 0:
        return order.is_end
    if order.domain == REALS:
        return key.real <= target.real if order.is_end else key.real < target.real
    return key.whole <= target.whole if order.is_end else key.whole < target.whole


# Rows that are looked at.
cdef struct Stretch:
    const ColumnView* column
    const uint8_t* levels
    int64_t start
    int64_t stop


cdef int64_t scan(const Order* order, const Key* target, const Stretch* rows, int64_t row,
                  int64_t partition) noexcept nogil:
    """Return the first row, from one on, that the bound does not pass; or the stop, when it is none of these."""
    cdef Key key
    while row < rows.stop:
        if row != partition and rows.levels[row - rows.start] <= order.threshold:
            return row
        key = key_at(order, rows.column, row - rows.start)
        if not is_passed(order, target, &key):
            return row
        row += 1
    return row


@cython.final
cdef class RangeBound:
    """Args: column: of the key in a block; data_type: its kernel form; offset: int, or float for floats; is_end: behind
    the rows at that distance; threshold: levels up to it begin a partition."""

    cdef Order _order
    cdef int64_t _column
    cdef int64_t _row           # the bound of the last row that was looked at
    cdef RowBlock _block        # that it is in
    cdef Positions _found       # being filled
    cdef int64_t _filled        # rows of it

    def __cinit__(self, int64_t column, data_type, offset, bint is_end, uint8_t threshold, bint descending,
                  bint nulls_last):
        self._column = column
        self._order.descending = descending
        self._order.null_rank = 2 if nulls_last else -2
        self._order.is_end = is_end
        self._order.threshold = threshold
        if pa.types.is_floating(data_type):
            self._order.domain = REALS
            self._order.real_offset = offset
        else:
            self._order.domain = DECIMALS if pa.types.is_decimal(data_type) else INTEGERS
            self._order.whole_offset = whole_number(offset >> 64, offset & 0xFFFFFFFFFFFFFFFF)

    def of(self, RowBlock block not None, Positions partitions not None, queue):
        """Return the bound of each row's frame."""
        cdef Key target
        if self._found is None or self._found.start != block.start:
            self._found = new_positions(block)
            self._filled = 0
        while self._filled < self._found.count:
            self._row = max(self._row, partitions.values[self._filled])
            target = key_at(&self._order, block.column(self._column), self._filled)
            target.whole += self._order.whole_offset
            target.real += self._order.real_offset
            if not self._is_in_block():
                if self._row >= queue.stop:
                    if not queue.has_ended:
                        return None
                    self._found.values[self._filled] = self._row
                    self._filled += 1
                    continue
                self._block = queue.block_at(self._row)
            self._advance(block, partitions)
        found = self._found
        self._found = None
        return found

    cdef bint _is_in_block(self):
        return self._block is not None and self._block.start <= self._row < self._block.stop

    cdef void _advance(self, RowBlock block, Positions partitions):
        """Find bounds of rows as far as the bound's block reaches."""
        cdef const ColumnView* own = block.column(self._column)
        cdef Stretch rows
        cdef Key target
        rows.column, rows.levels = self._block.column(self._column), self._block.levels
        rows.start, rows.stop = self._block.start, self._block.stop
        with nogil:
            while self._filled < self._found.count:
                if partitions.values[self._filled] > self._row:
                    self._row = partitions.values[self._filled]
                if self._row >= rows.stop:
                    break
                target = key_at(&self._order, own, self._filled)
                target.whole += self._order.whole_offset
                target.real += self._order.real_offset
                self._row = scan(&self._order, &target, &rows, self._row, partitions.values[self._filled])
                if self._row >= rows.stop:
                    break
                self._found.values[self._filled] = self._row
                self._filled += 1
