# KeyLevels: keys as sort and group_by see them.

from libc.stdint cimport int64_t

from engine.records.arrow_batch cimport ColumnView

# Whether two values of one type differ: null equals null, NaN equals NaN, -0.0 equals 0.0.
cdef bint differs(const ColumnView* left, int64_t left_row, const ColumnView* right, int64_t right_row) noexcept nogil
