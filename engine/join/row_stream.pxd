# RowStream: the rows of a spill file, in order.

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.iomanager.spill_reader cimport SpillReader
from engine.join.key_part cimport KeyPart
from engine.records.row_codec cimport RowCodec


@cython.final
cdef class RowStream:
    cdef RowCodec _codec               # of the rows; None: values that lie outside the rows are not checked
    cdef KeyPart _part                 # None: all rows
    cdef SpillReader _reader
    cdef uint8_t* _room                # GATHER_BYTES, with a part only
    cdef uint8_t** _found              # SCAN_ROWS
    cdef const uint8_t* _data
    cdef int64_t _size
    cdef int64_t _offset

    # The next rows, at most capacity and about max_bytes; 0 at the end. Valid until the next call.
    cdef int64_t next_rows(self, uint8_t** rows, int64_t capacity, int64_t max_bytes) except -1
    cdef int64_t _gather(self, uint8_t** rows, int64_t capacity, int64_t max_bytes) except -2 nogil
    cdef int close(self) except -1
