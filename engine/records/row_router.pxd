# RowRouter: takes rows of an input as they come, before they are decoded.

from libc.stdint cimport int64_t, uint8_t

cdef class RowRouter:
    cdef readonly int64_t row_count      # rows taken so far
    cdef readonly int64_t size_bytes     # their bytes
    # Every row is taken from now on, and rows keep their order: those that came before are to be passed on first.
    cdef readonly bint takes_all

    # Take what it wants of count rows, which stay where they are until it returns. The others, in their order, are the
    # first of rows afterwards; returns how many. Rows end inside their page; nothing else of them is checked yet.
    cdef int64_t route(self, uint8_t** rows, int64_t count) except -1
