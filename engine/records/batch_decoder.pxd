# What a decoder of rows must know of them.

from libc.stdint cimport int32_t, uint8_t
from engine.records.arrow_batch cimport TypeNode

# The pointers belong to the codec.
cdef struct RowShape:
    int32_t column_count
    int32_t fixed_size
    int32_t null_bytes
    const TypeNode* types      # one for each column
    const int32_t* slots
    const int32_t* widths
    uint8_t* null_row          # a row of nulls, fixed_size bytes: stands in for missing rows
