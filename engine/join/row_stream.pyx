"""RowStream: the rows of a spill file, in order.

    stream = RowStream(file) ─► next_rows(...) ─► ... ─► 0 ─► close()
    RowStream(file, codec, part)            only the rows of a KeyPart, put together from as many blocks as it takes

Rows are whole inside a block, so the addresses point into the reader's block. Sizes are checked before a row is given
out: a file that does not hold rows raises CorruptBlockError. The same file yields the same chunks every time.

Held by: tests/join/test_join_passes.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from engine.join.entry_pages cimport next_rows_of_block
from engine.join.key_part cimport KeyPart
from engine.records.row_codec cimport RowCodec, row_size

from engine.errors import CorruptBlockError

cdef enum:
    SCAN_ROWS = 1024
    GATHER_BYTES = 64 << 10


@cython.final
cdef class RowStream:
    """Reads one file once; the methods are for the join (see the .pxd)."""

    def __cinit__(self, file, RowCodec codec=None, KeyPart part=None):
        self._codec = codec
        self._part = part
        if part is not None:
            self._room = <uint8_t*>malloc(GATHER_BYTES)
            self._found = <uint8_t**>malloc(SCAN_ROWS * sizeof(uint8_t*))
            if self._room == NULL or self._found == NULL:
                raise MemoryError("rows of a part of a spill file")
        self._reader = file.reader()

    def __dealloc__(self):
        free(self._room)
        free(self._found)

    cdef int64_t next_rows(self, uint8_t** rows, int64_t capacity, int64_t max_bytes) except -1:
        cdef int64_t count, within
        with nogil:
            if self._part is not None:
                return self._gather(rows, capacity, max_bytes)
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

    # Rows of the part, copied out of their blocks; one that is larger than the room stays where it is.
    cdef int64_t _gather(self, uint8_t** rows, int64_t capacity, int64_t max_bytes) except -2 nogil:
        cdef int64_t gathered = 0
        cdef int64_t used = 0
        cdef int64_t outside = 0
        cdef int64_t count, index, size
        cdef uint8_t* row
        while True:
            if self._offset == self._size:
                self._offset = 0
                self._size = 0
                if self._reader.next_block(&self._data, &self._size) == 0:
                    return gathered
            count = next_rows_of_block(self._data, self._size, &self._offset, self._found, SCAN_ROWS, self._size)
            if count < 0:
                with gil:
                    raise CorruptBlockError("a block of a join's spill file holds bytes that are not rows")
            count = self._part.choose(self._found, count)
            for index in range(count):
                row = self._found[index]
                size = row_size(row)
                outside += 0 if self._codec is None else self._codec.bytes_outside(row)
                if gathered == capacity or used + size > min(max_bytes, <int64_t>GATHER_BYTES) or outside > max_bytes:
                    if gathered == 0:
                        rows[0] = row
                        gathered = 1
                        row += size
                    self._offset = row - self._data
                    return gathered
                memcpy(self._room + used, row, <size_t>size)
                rows[gathered] = self._room + used
                gathered += 1
                used += size

    cdef int close(self) except -1:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        return 0
