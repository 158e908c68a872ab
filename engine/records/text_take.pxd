# Texts by row, for batches in the making.

from libc.stdint cimport int32_t, int64_t

from engine.records.arrow_batch cimport ColumnView
from engine.records.batch_builder cimport BatchBuilder

# Set a column to the values of another one, which has so many rows, at some of these: `rows`, or where that is NULL
# `numbers`. False: it is not of texts with 32-bit offsets, or would be too large; then nothing is set.
cdef bint take_texts(BatchBuilder builder, int32_t place, const ColumnView* column, int64_t column_rows,
                     const int64_t* rows, const int32_t* numbers, int64_t count) except -1
