"""MergeScratch: what the merging of rows into their groups works with; tables that take turns have one together.

Held by: tests/aggregate/test_state_row_table.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc


@cython.final
cdef class MergeScratch:
    """Scratch memory of about 24 KiB, and a row; for one thread."""

    def __cinit__(self):
        self.rows = <uint8_t**> malloc(CHUNK_ROWS * 3 * 8)
        if self.rows == NULL:
            raise MemoryError()
        self.hashes = <uint64_t*> (self.rows + CHUNK_ROWS)
        self.positions = <int64_t*> (self.rows + 2 * CHUNK_ROWS)

    def __dealloc__(self):
        free(self.rows)
        free(self._row)

    cdef uint8_t* row_of(self, int64_t size) noexcept nogil:
        cdef uint8_t* grown
        if size > self._row_size:
            grown = <uint8_t*> realloc(self._row, <size_t> (2 * size))
            if grown == NULL:
                return NULL
            self._row = grown
            self._row_size = 2 * size
        return self._row
