# Rows of another writer: checked; those whose keys lie outside are made anew with their keys inside.

from libc.stdint cimport int64_t, uint8_t
from engine.records.row_codec cimport RowCodec

# Raise CorruptBlockError unless sizes, offsets and lengths in the rows stay within each row.
cdef int check_rows(RowCodec codec, uint8_t** rows, int64_t count) except -1
# Check the rows, then take the rows whose keys lie outside from rows (all of them, if any is and whole says so); count
# becomes that of the others. Returns what row_at takes.
cdef list take_keys_outside(RowCodec codec, uint8_t** rows, int64_t* count, bint whole)
# The row as a batch, to be encoded again.
cdef object row_at(RowCodec codec, object address)
