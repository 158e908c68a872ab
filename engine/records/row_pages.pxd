# RowPages: rows where they lie in pages, found a few at a time.

from libc.stdint cimport int64_t, uint8_t
from engine.records.row_codec cimport RowCodec

cdef struct PageSpan:
    const uint8_t* memory
    int64_t used                # bytes of rows

cdef class RowPages:
    cdef readonly RowCodec codec
    cdef readonly int64_t row_count
    cdef PageSpan* pages                # [page_count], in order
    cdef int64_t page_count
    cdef object _owner                  # owner of their memory, None: their maker
    cdef int64_t _page                  # where the next rows lie
    cdef int64_t _offset

    # Go back to the first row.
    cdef void rewind(self) noexcept nogil
    # Find the next rows; returns how many, 0 at the end, -1 where sizes of rows do not add up.
    cdef int64_t next(self, uint8_t** rows, int64_t capacity) noexcept nogil

# Pages are to be filled in, for so many.
cdef RowPages new_row_pages(RowCodec codec, int64_t row_count, int64_t page_count)
