"""State layout: each state of a group gets its place; values first, each at a multiple of 8, then a flag byte for each.

    end = place_states(fields, states, operations, offset)

    | value 0 | value 1 | ... | flag 0 | flag 1 | ... |        fixed values in their width, others a ValueSlot

Which types there are is known from a batch without rows of the state columns.

Invariants: fields belong to the caller and are zero before. Limits: as many states as a row has columns.

Held by: tests/aggregate/test_outside_states.py
"""

from libc.stdint cimport int32_t

from engine.accumulators.state_kernels cimport StateField
from engine.aggregate.value_states cimport ValueSlot
from engine.records.arrow_batch cimport ArrowBatch, KIND_BOOL, KIND_BYTES, KIND_LARGE_BYTES

import pyarrow as pa


cdef int32_t place_states(StateField* fields, empty_states, list operations, int32_t offset) except -1:
    cdef ArrowBatch states = ArrowBatch.open(empty_states)
    cdef int32_t index
    cdef StateField* field
    for index in range(states.column_count):
        field = &fields[index]
        field.operation = operations[index]
        field.kind = states.columns[index].kind
        field.is_variable = field.kind in (KIND_BYTES, KIND_LARGE_BYTES)
        field.width = <int32_t> sizeof(ValueSlot) if field.is_variable else states.columns[index].width
        if field.kind == KIND_BOOL:
            field.width = 1
        field.offset = offset
        field.column = -1
        data_type = empty_states.schema.field(index).type
        field.scale = data_type.scale if pa.types.is_decimal(data_type) else 0
        offset += (field.width + 7) & ~7
    for index in range(states.column_count):
        fields[index].flag = offset + index
    return offset + states.column_count
