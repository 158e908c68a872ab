# States of min, max, first and last whose values lie outside: read when given out.

from libc.stdint cimport int32_t, int64_t, uint8_t
from engine.accumulators.state_kernels cimport StateField
from engine.records.arrow_batch cimport ArrowBatch

# Move the wide values that states of variable size read to their owner.
cdef int move_values(ArrowBatch arguments, const StateField* fields, int32_t field_count, object owner) except -1
# Read the values that lie outside to the places that others left for them among the values of groups.
cdef int read_values(uint8_t** groups, int64_t count, const StateField* field, uint8_t* values) except -1
