# One Arrow column into rows that have their places already.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from engine.records.arrow_batch cimport ColumnView

# sizes[i] += bytes of the variable value of row start + i (nulls: 0).
cdef void add_variable_sizes(const ColumnView* column, int64_t start, int64_t count, uint32_t* sizes) noexcept nogil

# Write the column's values of rows start + i into the slots at targets[i] + slot; nulls set bit null_index of the null
# bits. Variable values go to targets[i] + cursors[i], which moves on; up to 15 bytes behind one, inside the row's
# sizes[i], may be overwritten. Caller guarantees zeroed null bits, and zeroes padding behind the last value afterwards.
cdef void write_column(const ColumnView* column, int64_t start, int64_t count, int32_t slot, int32_t null_index,
                       const uint32_t* sizes, uint32_t* cursors, uint8_t** targets) noexcept nogil
