# Columns of rows of one shape, set in a batch that is being built.

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.batch_builder cimport BatchBuilder
from engine.records.batch_decoder cimport RowShape

# Set columns of count rows, which the batch has as well, at these places (NULL: as they come). schema is that of the
# chosen columns. Errors as RowCodec.decode.
cdef int decode_into(const RowShape* shape, object schema, uint8_t** rows, int64_t count, const int32_t* columns,
                     int32_t column_count, BatchBuilder builder, const int32_t* places) except -1

# The chosen columns of count rows as a pyarrow.RecordBatch.
cdef object decode_rows(const RowShape* shape, object schema, uint8_t** rows, int64_t count, const int32_t* columns,
                        int32_t column_count)
