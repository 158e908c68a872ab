# How much of row groups a look reads: see group_runs.pyx.

from libc.stdint cimport int64_t


cdef class GroupRuns:
    cdef readonly int64_t groups_max        # row groups of the next look
    cdef readonly int64_t groups_read       # row groups that the last look has read
    cdef bint _is_refused
    # Rows whose columns of the filter are as large as may be, and those of which a batch is left.
    cdef int64_t _rows_together

    cpdef int64_t rows_together(self, double rows_max)
    cpdef note(self, int64_t groups, int64_t rows, double looked_at_width, int64_t kept_rows, double row_bytes)


cdef int64_t kept_rows_max(double row_bytes) noexcept
