# Kernels of one group that all rows belong to.

from libc.stdint cimport int64_t, uint8_t

from engine.accumulators.state_kernels cimport StateField
from engine.records.arrow_batch cimport ColumnView

cdef enum:
    NOT_DONE = -1

# Update a state of the group from rows start and following. Returns what update_state does, or NOT_DONE.
cdef int update_only_group(const StateField* field, const ColumnView* column, int64_t start, uint8_t* group,
                           int64_t count) noexcept nogil
