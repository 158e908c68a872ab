# ScanMemory: what a task that reads Parquet files may hold, and how wide the rows were: see scan_memory.pyx.

from libc.stdint cimport int64_t

from engine.memory.budget cimport Budget, Reservation


cdef class ScanMemory:
    cdef object _new_space, _lock
    # Bytes of the row group that is read, and of those that are read later; guarded by _lock.
    cdef int64_t _now_bytes, _ahead_bytes
    cdef public object drop_ahead           # ends holding row groups that are read later
    cdef Budget _budget
    cdef Reservation _reserved              # for the row group that is read
    cdef int64_t _held_bytes                # that the last row group held while it was read
    cdef double _row_bytes                  # width of the rows that came out last
    cdef readonly double row_bytes          # width of rows, decoded or as they came out; 0: before the first one
    # Width of rows, and part of memory, with which is_one_batch was asked last.
    cdef double _fitted_width
    cdef int64_t _fitted_part
    cdef dict _decoded_widths               # of rows as a filter decoded them, by the first column of the stream

    cdef bint _is_small(self, pages) except -1
    cpdef bint hold(self, pages) except -1
    # Reserve what row groups take of which each is read at once; False: there is not as much.
    cdef bint hold_whole(self, pages) except -1
    # Whether a row group may be read as one batch. The first one of a task may not, unless its width was expected: how
    # wide texts are is not known.
    cdef bint is_one_batch(self, pages, int64_t rows_max) except -1
    # Whether row groups of which that was so may still be one batch.
    cdef bint fits_still(self) noexcept
    # Rows of row groups of which columns may be decoded together. Should a filter leave all rows, which it did not do
    # before, they are several batches, cut where they are.
    cdef double rows_together(self, pages) except -1
    cdef bint _resize(self, int64_t size_bytes) except -1
    cpdef list bounded(self, batch, int64_t rows_max)
    cdef int _settle_width(self) except -1
    # Note how wide the rows of a stream of columns were that a look has decoded; 0: they were not.
    cdef int note_width(self, column, double width) except -1
    cpdef int64_t batch_bytes_max(self, double row_bytes) noexcept
