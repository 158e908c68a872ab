"""States whose values lie outside of the group table: read where their first bytes do not decide, or when given out.

    compare_whole(group, field, data, size, outside)     a tie of min or max: both values are read
    read_values(groups, count, field, values)            into the Arrow buffer of the result

A group holds the reference of 96 bytes where the value would be, and FLAG_OUTSIDE beside FLAG_VALUE. So a table of a
few pages keeps thousands of groups with values of any width, and nothing is spilled for their sake.

Invariants: a value that is beaten is not read. Memory: a tie takes both values for as long as it lasts.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from engine.aggregate.state_kernels cimport (
    FLAG_OUTSIDE,
    FLAG_VALUE,
    OP_COUNT_ROWS,
    OP_COUNT_VALID,
    StateField,
    ValueSlot,
)
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.outside_values cimport move_outside, read_outside, referenced_bytes, values_lie_outside


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
            values += true_size(groups[index], field)
    return 0


cdef int64_t _whole_value(const uint8_t* data, int64_t size, bint outside, uint8_t** copy) except -1:
    """Copy a value, read from outside if need be, to new memory; returns its size."""
    cdef int64_t length = <int64_t> referenced_bytes(data) if outside else size
    copy[0] = <uint8_t*> malloc(<size_t> length + 1)
    if copy[0] == NULL:
        raise MemoryError(f"no memory to compare values of {length} bytes")
    if outside:
        read_outside(data, copy[0])
    else:
        memcpy(copy[0], data, <size_t> size)
    return length


cdef int compare_whole(const uint8_t* group, const StateField* field, const uint8_t* data, int64_t size,
                       bint outside) except -2:
    cdef const ValueSlot* slot = <const ValueSlot*> (group + field.offset)
    cdef int64_t low, high
    cdef uint8_t* left = NULL
    cdef uint8_t* right = NULL
    cdef int order
    try:
        low = _whole_value(slot.data, slot.size, group[field.flag] & FLAG_OUTSIDE, &left)
        high = _whole_value(data, size, outside, &right)
        with nogil:
            order = memcmp(left, right, <size_t> min(low, high))
    finally:
        free(left)
        free(right)
    if order == 0:
        return (low > high) - (low < high)
    return -1 if order < 0 else 1
