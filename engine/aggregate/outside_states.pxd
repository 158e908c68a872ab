# States of min, max, first and last whose values lie outside: read when given out.

from libc.stdint cimport int32_t, int64_t, uint8_t
from engine.aggregate.state_kernels cimport FLAG_OUTSIDE, StateField, ValueSlot
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.outside_values cimport referenced_bytes

# Bytes of a group's value, which it has, wherever it lies.
cdef inline int64_t true_size(const uint8_t* group, const StateField* field) noexcept nogil:
    cdef const ValueSlot* slot = <const ValueSlot*> (group + field.offset)
    return <int64_t> referenced_bytes(slot.data) if group[field.flag] & FLAG_OUTSIDE else slot.size

# Move the wide values that states of variable size read to their owner.
cdef int move_values(ArrowBatch arguments, const StateField* fields, int32_t field_count, object owner) except -1
# Read the values that lie outside to the places that others left for them among the values of groups.
cdef int read_values(uint8_t** groups, int64_t count, const StateField* field, uint8_t* values) except -1
