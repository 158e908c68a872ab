# States of variable size: the least, largest, first and last of strings and binaries.

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.accumulators.state_kernels cimport FLAG_OUTSIDE, StateField
from engine.aggregate.group_store cimport GroupStore
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch, ColumnView
from engine.records.outside_values cimport referenced_bytes

# What a group holds of such a state.
cdef struct ValueSlot:
    uint8_t* data           # bytes of the value, in a value record
    int32_t size            # bytes
    int32_t capacity        # bytes that fit at data

# One such state on its way through the rows of a chunk.
cdef struct ValueScan:
    int32_t state               # whose it is; the caller's
    const StateField* field
    const ColumnView* column
    const uint8_t* outside      # [row of the chunk]: its value is a reference; NULL: none is
    uint8_t** groups            # [row of the chunk]
    int64_t start               # row of the batch where the chunk begins
    int64_t count               # rows of the chunk
    bint looks_outside          # a value, of a row or of a group, may be a reference
    int64_t row                 # where it is: the value of this row replaces that of its group; count: the end
    const uint8_t* data         # that value
    int64_t size
    bint is_reference

# Begin a chunk, at its first row whose value replaces that of its group.
cdef void begin_values(ValueScan* scan, const StateField* field, ArrowBatch batch, int64_t start, uint8_t** groups,
                       int64_t count) noexcept nogil
# Go on to the next one, when the group has the value of this one. A null that is a FIRST or LAST is marked in the flag
# of its group on the way. What cannot be read outside is raised by outside_keys.
cdef void next_value(ValueScan* scan) noexcept nogil

# Put the value of this row into its group, whose store it is. False: there is no room, and the value that it replaces
# is gone, too; the row comes again.
cdef bint put_value(const ValueScan* scan, GroupStore* store, PagePool pool, bint reserved) noexcept nogil

# Bytes of a group's value, which it has, wherever it lies; looks_outside: it may be a reference.
cdef inline int64_t value_bytes(const uint8_t* group, const StateField* field, bint looks_outside) noexcept nogil:
    cdef const ValueSlot* slot = <const ValueSlot*> (group + field.offset)
    if looks_outside and group[field.flag] & FLAG_OUTSIDE:
        return <int64_t> referenced_bytes(slot.data)
    return slot.size
