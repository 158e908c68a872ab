"""States whose values lie outside of the group table: read when they are given out.

    move_values(arguments, fields, field_count, owner)     before rows are put into groups
    read_values(groups, count, field, values)              into the Arrow buffer of the result

A group holds the reference of 112 bytes where the value would be, and FLAG_OUTSIDE beside FLAG_VALUE. So a table of a
few pages keeps thousands of groups with values of any width, and nothing is spilled for their sake.

Invariants: a value that is beaten by its first bytes is not read; ties are compared block by block (``outside_keys``).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.accumulators.state_kernels cimport (
    FLAG_OUTSIDE,
    FLAG_VALUE,
    OP_COUNT_ROWS,
    OP_COUNT_VALID,
    StateField,
)
from engine.aggregate.value_states cimport ValueSlot, value_bytes
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.outside_values cimport move_outside, read_outside, values_lie_outside


cdef int move_values(ArrowBatch arguments, const StateField* fields, int32_t field_count, object owner) except -1:
    cdef int32_t index
    for index in range(field_count):
        if not fields[index].is_variable or fields[index].operation in (OP_COUNT_ROWS, OP_COUNT_VALID):
            continue
        if arguments.outside == NULL or arguments.outside[fields[index].column] == NULL:
            move_outside(arguments, fields[index].column, owner)
    return 0


cdef int read_values(uint8_t** groups, int64_t count, const StateField* field, uint8_t* values) except -1:
    cdef int64_t index
    if not values_lie_outside():
        return 0
    for index in range(count):
        if groups[index][field.flag] & FLAG_VALUE:
            if groups[index][field.flag] & FLAG_OUTSIDE:
                read_outside((<const ValueSlot*> (groups[index] + field.offset)).data, values)
            values += value_bytes(groups[index], field, True)
    return 0
