# What aggregates of frames walk over: a block's rows with their frames, and the blocks that rows enter and leave from.

from libc.stdint cimport int64_t

from engine.records.arrow_batch cimport ColumnView
from engine.window.row_block cimport Positions, RowBlock

# Rows that lie in a column of a block.
cdef struct Stretch:
    const ColumnView* column
    int64_t start
    int64_t stop

# What there is to know of a block's rows.
cdef struct Frames:
    int64_t first               # row of the first one
    int64_t stop
    const int64_t* partitions   # where the partition of each begins
    const int64_t* starts       # ... its frame
    const int64_t* ends         # ... and ends

cdef inline Stretch stretch_of(RowBlock block, int64_t column):
    cdef Stretch found
    found.column, found.start, found.stop = block.column(column), block.start, block.stop
    return found

cdef inline Frames frames_of(RowBlock block, Positions partitions, Positions starts, Positions ends):
    cdef Frames found
    found.first, found.stop = block.start, block.stop
    found.partitions, found.starts, found.ends = partitions.values, starts.values, ends.values
    return found
