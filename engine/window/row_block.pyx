"""RowBlock: a batch of sorted rows, opened for kernels of window functions; Positions: an int64 for each of its rows.

    block = RowBlock(start, batch, columns)      columns: arrays in the form that kernels read, the levels last
    positions.array()                            as an Arrow array

What rows and levels are is in ``row_block.pxd``. A block borrows nothing: it keeps its arrays.

Held by: tests/window/test_group_bounds.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.records.arrow_batch cimport ArrowBatch, ColumnView

import pyarrow as pa


@cython.final
cdef class RowBlock:
    """Rows [start, stop) of the sorted input."""

    def __cinit__(self, int64_t start, batch not None, columns not None):
        opened = pa.RecordBatch.from_arrays(columns, names=[str(index) for index in range(len(columns))])
        self.start = start
        self.stop = start + opened.num_rows
        self.batch = batch
        self.opened = ArrowBatch.open(opened)
        self.levels = self.opened.columns[len(columns) - 1].values + self.opened.columns[len(columns) - 1].offset

    def levels_array(self):
        """Return the levels as they were given."""
        return self.opened.batch.column(self.opened.column_count - 1)

    cdef const ColumnView* column(self, int64_t index):
        return &self.opened.columns[index]


@cython.final
cdef class Positions:
    """An int64 for each row of a block."""

    @property
    def last(self):
        """The value of the last row."""
        return self.values[self.count - 1]

    def array(self):
        """Return the values as an Arrow array."""
        return pa.Array.from_buffers(pa.int64(), self.count, [None, self.buffer], null_count=0)


cdef Positions new_positions(RowBlock block):
    """Return positions for the rows of a block, not filled."""
    cdef Positions positions = Positions.__new__(Positions)
    positions.start = block.start
    positions.count = block.stop - block.start
    positions.buffer = pa.allocate_buffer(positions.count * 8)
    positions.values = <int64_t*> <size_t> positions.buffer.address
    return positions
