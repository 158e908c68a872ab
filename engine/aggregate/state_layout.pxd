# Where the states of a group lie behind its hash.

from libc.stdint cimport int32_t
from engine.accumulators.state_kernels cimport StateField
from engine.records.arrow_batch cimport ArrowBatch

# Fill one field for each column of states, the first value at offset; returns where the flags end.
cdef int32_t place_states(StateField* fields, empty_states, list operations, int32_t offset) except -1
