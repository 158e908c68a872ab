"""GroupRuns: how much of row groups that follow one another a look reads, by what the looks before have shown.

    runs.groups_max                 row groups of the next look
    runs.rows_together(limit)       rows of those of which columns are looked at with one mask
    GroupRuns.kept_max(row_bytes)   rows of a batch
    runs.note(groups, rows, looked_at_width, kept_rows, row_bytes)     what a look has read, and what is left of it
    runs.refuse()                   there is no memory for several

    kept of each   ▏▎▏▎          few rows: all row groups of a split are one look, the columns of the filter of so many
                                 together as the processor's caches hold
                   ████ ████     many: one by one

What Python does for a row group is the same for two dozen of them. Of most row groups a filter leaves a tenth, and the
batches behind it are small. The first look of a task reads one row group: the task may want a few rows.

Held by: tests/parquet/test_group_runs.py
"""

from libc.stdint cimport int64_t

# Bytes that are decoded for a filter together, and bytes of a batch: what caches of processors hold.
cdef enum:
    BYTES_MAX = 6 << 20
    GROUPS_MAX = 64

cdef double LEAST_SHARE = 1e-3

#: rows of a batch
KEPT_ROWS_MAX = 1 << 18
cdef int64_t _KEPT_ROWS_MAX = KEPT_ROWS_MAX


cdef class GroupRuns:
    """See the module's text. Thread: one."""

    def __init__(self):
        self.groups_max = 1
        self._rows_together = 1

    cpdef int64_t rows_together(self, double rows_max):
        """The rows that are looked at with one mask, at most so many."""
        return max(<int64_t>1, <int64_t>min(<double>self._rows_together, rows_max))

    @staticmethod
    def kept_max(double row_bytes):
        """The rows of a batch."""
        return kept_rows_max(row_bytes)

    cpdef note(self, int64_t groups, int64_t rows, double looked_at_width, int64_t kept_rows, double row_bytes):
        """Note a look: row groups, rows, the width of what was decoded for its filter, and the rows that were left."""
        cdef double share = max(LEAST_SHARE, kept_rows / <double>max(<int64_t>1, rows))
        self.groups_read = groups
        self.groups_max = 1 if self._is_refused else GROUPS_MAX
        self._rows_together = <int64_t>min(BYTES_MAX / max(0.125, looked_at_width), kept_rows_max(row_bytes) / share)

    def refuse(self):
        """Ask for one row group from now on."""
        self.groups_max, self._is_refused = 1, True


cdef int64_t kept_rows_max(double row_bytes) noexcept:
    return <int64_t>min(<double>_KEPT_ROWS_MAX, BYTES_MAX / max(1.0, row_bytes))
