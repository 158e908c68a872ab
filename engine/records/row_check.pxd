# Rows of another writer: checked before they are compared, hashed or copied.

from libc.stdint cimport int64_t, uint8_t
from engine.records.row_codec cimport RowCodec

# Raise CorruptBlockError unless sizes, offsets and lengths in the rows stay within each row.
cdef int check_rows(RowCodec codec, uint8_t** rows, int64_t count) except -1
