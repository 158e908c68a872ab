"""States of variable size: which rows of a chunk have a value that replaces that of their group, and putting it there.

    begin_values(scan, field, batch, start, groups, count)     one scan for each state
    while scan.row < count:
        put_value(scan, store, pool, reserved)
        next_value(scan)

    rows     │ "kiwi" │ "apple" │ null │ "pear" │ "fig" │      max:   row 0 ──► row 3 ──► the end
    group    │ -      │ "kiwi"  │      │ "kiwi" │ "pear"│      of n rows in random order, about ln n have a new extreme

A scan runs over its column on its own, so what does not differ from row to row is asked once a chunk: the width of
offsets, whether there are nulls, and whether values may lie outside (``values_lie_outside``). Where none does, sizes
and bytes are compared as they are, and neither row nor group is asked whether it has a reference.

The caller takes several states in the order of rows, that of the smallest scan.row first. So rows before the one that
finds no room are complete.

Invariants: bytes compare as memcmp does, a shorter prefix first. A scan that is ahead of what the caller has put in
changes nothing but the nulls of FIRST and LAST, whose rows come again.

Held by: tests/aggregate/test_outside_states.py
Held by: tests/aggregate/test_first_last.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from engine.accumulators.state_kernels cimport (
    FLAG_NULL,
    FLAG_OUTSIDE,
    FLAG_VALUE,
    OP_FIRST,
    OP_LAST,
    OP_MAX,
    StateField,
)
from engine.aggregate.group_store cimport RECORD_VALUE, GroupStore, store_drop_large, store_place
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport KIND_LARGE_BYTES, ArrowBatch, column_is_null
from engine.records.number_types cimport Offset
from engine.records.outside_keys cimport LENGTH_OUTSIDE, compare_outside
from engine.records.outside_values cimport values_lie_outside


cdef inline int compare_mixed(const ValueSlot* slot, bint slot_is_reference, const ValueScan* scan) noexcept nogil:
    """Order of a group's value and that of a row, one of which may be a reference."""
    cdef uint64_t left = <uint64_t> slot.size | (<uint64_t> LENGTH_OUTSIDE if slot_is_reference else 0)
    cdef uint64_t right = <uint64_t> scan.size | (<uint64_t> LENGTH_OUTSIDE if scan.is_reference else 0)
    if (left | right) & LENGTH_OUTSIDE:
        return compare_outside(slot.data, left, scan.data, right)
    return compare_inline(slot, scan)


cdef inline int compare_inline(const ValueSlot* slot, const ValueScan* scan) noexcept nogil:
    cdef int order = memcmp(slot.data, scan.data, <size_t> min(<int64_t> slot.size, scan.size))
    return order if order != 0 else (slot.size > scan.size) - (slot.size < scan.size)


cdef inline void find_value(ValueScan* scan, const Offset* offsets, bint looks_outside) noexcept nogil:
    """Go from scan.row, which is looked at, to the first row whose value replaces that of its group."""
    cdef const StateField* field = scan.field
    cdef bint in_order = field.operation == OP_FIRST or field.operation == OP_LAST
    cdef bint is_first = field.operation == OP_FIRST
    cdef bint is_largest = field.operation == OP_MAX
    cdef bint has_nulls = scan.column.validity != NULL
    cdef const ValueSlot* slot
    cdef uint8_t* flag
    cdef int order
    cdef int64_t row
    for row in range(scan.row, scan.count):
        flag = scan.groups[row] + field.flag
        if is_first and flag[0] != 0:
            continue
        if has_nulls and column_is_null(scan.column, scan.start + row):
            if in_order:
                flag[0] = FLAG_NULL
            continue
        scan.data = scan.column.values + offsets[row]
        scan.size = offsets[row + 1] - offsets[row]
        if looks_outside:
            scan.is_reference = scan.outside != NULL and scan.outside[row]
        if not in_order and flag[0] != 0:
            slot = <const ValueSlot*> (scan.groups[row] + field.offset)
            if looks_outside:
                order = compare_mixed(slot, flag[0] & FLAG_OUTSIDE, scan)
            else:
                order = compare_inline(slot, scan)
            if order == 0 or (order < 0) != is_largest:
                continue
        scan.row = row
        return
    scan.row = scan.count


cdef void find_next(ValueScan* scan) noexcept nogil:
    """Choose the loop by the width of offsets, and by whether values may lie outside."""
    cdef const uint8_t* offsets = scan.column.offsets
    cdef int64_t first = scan.column.offset + scan.start
    if scan.column.kind == KIND_LARGE_BYTES:
        if scan.looks_outside:
            find_value(scan, <const int64_t*> offsets + first, True)
        else:
            find_value(scan, <const int64_t*> offsets + first, False)
    elif scan.looks_outside:
        find_value(scan, <const int32_t*> offsets + first, True)
    else:
        find_value(scan, <const int32_t*> offsets + first, False)


cdef void begin_values(ValueScan* scan, const StateField* field, ArrowBatch batch, int64_t start, uint8_t** groups,
                       int64_t count) noexcept nogil:
    scan.field = field
    scan.column = &batch.columns[field.column]
    scan.outside = NULL
    if batch.outside != NULL and batch.outside[field.column] != NULL:
        scan.outside = batch.outside[field.column] + start
    scan.groups = groups
    scan.start = start
    scan.count = count
    scan.looks_outside = values_lie_outside()
    scan.row = 0
    scan.is_reference = False
    find_next(scan)


cdef void next_value(ValueScan* scan) noexcept nogil:
    scan.row += 1
    find_next(scan)


cdef bint put_value(const ValueScan* scan, GroupStore* store, PagePool pool, bint reserved) noexcept nogil:
    cdef const StateField* field = scan.field
    cdef uint8_t* group = scan.groups[scan.row]
    cdef ValueSlot* slot = <ValueSlot*> (group + field.offset)
    cdef int64_t capacity
    cdef uint8_t* record
    if slot.data == NULL or scan.size > slot.capacity:
        if slot.data != NULL:
            store_drop_large(store, pool, slot.data - 8)        # the value is beaten: nothing is lost
            slot.data = NULL
            slot.capacity = 0
            group[field.flag] = FLAG_NULL if field.operation == OP_LAST else 0      # a last group has rows
        capacity = (scan.size + 7) & ~7
        if capacity < pool.page_size // 8:
            capacity += (capacity >> 2) & ~7
        record = store_place(store, pool, capacity + 8, RECORD_VALUE, reserved)
        if record == NULL:
            return False
        slot.data = record + 8
        slot.capacity = <int32_t> capacity
    memcpy(slot.data, scan.data, <size_t> scan.size)
    slot.size = <int32_t> scan.size
    group[field.flag] = FLAG_VALUE | (FLAG_OUTSIDE if scan.is_reference else 0)
    return True
