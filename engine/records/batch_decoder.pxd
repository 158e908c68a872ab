# Rows of one shape -> pyarrow.RecordBatch.

from libc.stdint cimport int32_t, int64_t, uint8_t
from engine.records.arrow_batch cimport TypeNode

# What a decoder must know of rows; the pointers belong to the codec.
cdef struct RowShape:
    int32_t column_count
    int32_t fixed_size
    int32_t null_bytes
    const TypeNode* types      # one for each column
    const int32_t* slots
    const int32_t* widths
    uint8_t* null_row          # a row of nulls, fixed_size bytes: stands in for missing rows

# schema is that of the chosen columns. Errors as RowCodec.decode.
cdef object decode_rows(const RowShape* shape, object schema, uint8_t** rows, int64_t count, const int32_t* columns,
                        int32_t column_count)
