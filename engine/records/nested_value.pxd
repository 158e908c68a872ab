# Nested values as bytes: how large, and written. The layout of bodies and sequences is in layout.py.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from engine.records.arrow_batch cimport ColumnView

# Bytes of the body of rows start up to start + count of a column (start counts without column.offset).
cdef uint64_t body_size(const ColumnView* column, int64_t start, int64_t count) noexcept nogil
# Write that body; returns the address behind it.
cdef uint8_t* write_body(const ColumnView* column, int64_t start, int64_t count, uint8_t* target) noexcept nogil
