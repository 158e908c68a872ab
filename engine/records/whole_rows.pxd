# Rows that leave the process: values that lie outside go into them, and out of them where they arrive.

from libc.stdint cimport int64_t, uint8_t
from engine.records.row_codec cimport RowCodec

# Bytes of the row with all of its values inside; its own size where none lies outside.
cdef int64_t whole_size(RowCodec codec, const uint8_t* row) noexcept nogil
# Write the row with all of its values inside; target has room for whole_size. Raises: as reading values does.
cdef int write_whole(RowCodec codec, const uint8_t* row, uint8_t* target) except -1
