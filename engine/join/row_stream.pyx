"""RowStream: the rows of a spill file, in order.

    stream = RowStream(file) ─► next_rows(...) ─► ... ─► 0 ─► close()

Rows are whole inside a block, so the addresses point into the reader's block. Sizes are checked before a row is handed
out: a file that does not hold rows raises CorruptBlockError. The same file yields the same chunks every time.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.join.entry_pages cimport next_rows_of_block
from engine.records.row_codec cimport RowCodec

from engine.errors import CorruptBlockError


@cython.final
cdef class RowStream:
    """Reads one file once; the methods are for the join (see the .pxd)."""

    def __cinit__(self, file, RowCodec codec=None):
        self._reader = file.reader()
        self._codec = codec

    cdef int64_t next_rows(self, uint8_t** rows, int64_t capacity, int64_t max_bytes) except -1:
        cdef int64_t count, within
        with nogil:
            if self._offset == self._size:
                self._offset = 0
                self._size = 0
                if self._reader.next_block(&self._data, &self._size) == 0:
                    return 0
            count = next_rows_of_block(self._data, self._size, &self._offset, rows, capacity, max_bytes)
            if self._codec is not None and count > 1:
                within = self._codec.rows_within(rows, count, max_bytes)
                if within < count:
                    self._offset = rows[within] - self._data
                    count = within
        if count < 0:
            raise CorruptBlockError("a block of a join's spill file holds bytes that are not rows")
        return count

    cdef int close(self) except -1:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        return 0
