"""The rows of a batch group by group, whose keys are in no order; those of several such batches.

    group_order(batch, key_count) -> (order, bounds)        keys are the first columns
    order_of_runs(order, bounds, starts) -> (order, bounds)     of runs of rows, each of one group
    order     int32 array: rows; those of a group side by side, as they came; groups in the order of their first rows
    bounds    int64 array: where each group begins in it, and the end of the last one

Rows get the numbers of their groups, by the hashes of their keys (``GroupSlots``) or, where there is one key, a whole
number of a small range, by the key itself; these are counted, and each row is put behind those of its group.

Runs lie one behind the other, and are grouped as the rows of a batch are: the result names the rows that they have.

A batch is meant to fit the caches, table and all: callers with more rows partition them first. Keys are equal as they
are for group_by. Cost: some nanoseconds a row; 24 bytes of scratch for a row and 40 for a group.

Held by: tests/window/test_group_order.py
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from engine.records.arrow_batch cimport KIND_INT32, KIND_INT64, ArrowBatch, ColumnView, column_is_null
from engine.records.group_slots cimport FRESH_LEVEL, GroupSlot, GroupSlots, free_slots, grow_slots
from engine.records.hashing cimport hash_batch, rehash
from engine.window.key_levels cimport differs

import pyarrow as pa


cdef enum:
    RANGE_MAX = 1 << 18     # of keys that are numbers of groups: a table of a megabyte


cdef inline bint is_of_group(ArrowBatch batch, int32_t key_count, int64_t row, int64_t first) noexcept nogil:
    cdef int32_t key
    for key in range(key_count):
        if differs(&batch.columns[key], row, &batch.columns[key], first):
            return False
    return True


cdef inline int64_t whole_of(const ColumnView* column, int64_t row) noexcept nogil:
    if column.kind == KIND_INT64:
        return (<const int64_t*> column.values)[column.offset + row]
    return (<const int32_t*> column.values)[column.offset + row]


# Find the least value and the range of a column of whole numbers; False: of another type, or too large a range.
cdef bint find_range(const ColumnView* column, int64_t row_count, int64_t* least, int64_t* size) noexcept nogil:
    cdef int64_t row, value
    cdef int64_t most = INT64_MIN
    least[0] = INT64_MAX
    if column.kind != KIND_INT64 and column.kind != KIND_INT32:
        return False
    for row in range(row_count):
        if column.validity != NULL and column_is_null(column, row):
            continue
        value = whole_of(column, row)
        least[0] = min(least[0], value)
        most = max(most, value)
    size[0] = 0 if most < least[0] else most - least[0] + 1
    # Differences that leave 64 bits are negative.
    return most < least[0] or 0 < size[0] <= min(row_count, <int64_t> RANGE_MAX)


# As find_groups, by the values of one key; ``least`` and ``size`` are those of ``find_range``.
cdef bint find_by_value(const ColumnView* column, int64_t row_count, int64_t least, int64_t size, GroupSlots* groups,
                        int32_t* found) noexcept nogil:
    cdef int64_t row, place
    cdef int32_t* numbers = <int32_t*> calloc(<size_t> size + 1, sizeof(int32_t))     # from 1; null has the last one
    if numbers == NULL:
        return False
    for row in range(row_count):
        place = size
        if column.validity == NULL or not column_is_null(column, row):
            place = whole_of(column, row) - least
        if numbers[place] == 0:
            groups.count += 1
            numbers[place] = <int32_t> groups.count
        found[row] = numbers[place] - 1
    free(numbers)
    groups.first_rows = <uint64_t*> malloc(<size_t> (groups.count + 1) * sizeof(uint64_t))
    return groups.first_rows != NULL


cdef bint find_groups(ArrowBatch batch, int32_t key_count, const uint64_t* hashes, GroupSlots* groups,
                      int32_t* found) noexcept nogil:
    """Give each row the number of its group, from 0; False: there is no memory."""
    cdef int64_t row
    cdef uint64_t place, hash
    cdef GroupSlot* slot
    for row in range(batch.row_count):
        if 2 * (groups.count + 1) > groups.slot_count and not grow_slots(groups):
            return False
        hash = rehash(hashes[row], FRESH_LEVEL)
        place = hash & <uint64_t> (groups.slot_count - 1)
        slot = &groups.slots[place]
        while slot.group and (slot.hash != hash or not is_of_group(batch, key_count, row,
                                                                   <int64_t> groups.first_rows[slot.group - 1])):
            place = (place + 1) & <uint64_t> (groups.slot_count - 1)
            slot = &groups.slots[place]
        if slot.group == 0:
            groups.first_rows[groups.count] = <uint64_t> row
            groups.count += 1
            slot.hash, slot.group = hash, groups.count
        found[row] = <int32_t> (slot.group - 1)
    return True


cdef void put_in_order(const int32_t* found, int64_t row_count, GroupSlots* groups, int64_t* bounds,
                       int32_t* order) noexcept nogil:
    """Count the rows of groups, and put each row behind those of its group."""
    cdef int64_t index
    cdef int64_t* places = <int64_t*> groups.first_rows        # they are not needed any more
    for index in range(groups.count + 1):
        bounds[index] = 0
    for index in range(row_count):
        bounds[found[index] + 1] += 1
    for index in range(groups.count):
        places[index] = bounds[index]
        bounds[index + 1] += bounds[index]
    for index in range(row_count):
        order[places[found[index]]] = <int32_t> index
        places[found[index]] += 1


cdef int32_t* key_columns(int32_t key_count) except NULL:
    cdef int32_t* columns = <int32_t*> malloc(<size_t> (key_count + 1) * sizeof(int32_t))
    cdef int32_t key
    if columns == NULL:
        raise MemoryError()
    for key in range(key_count):
        columns[key] = key
    return columns


def group_order(batch not None, int32_t key_count):
    """Return (order, bounds) of the rows of a batch, which are fewer than 2**31."""
    cdef ArrowBatch opened = ArrowBatch.open(batch)
    cdef int64_t count = opened.row_count
    cdef GroupSlots groups = GroupSlots(NULL, 0, NULL, 0)
    cdef int32_t* columns = NULL
    cdef uint64_t* hashes = NULL
    cdef int32_t* found = NULL
    cdef int64_t* bounds
    cdef int32_t* order
    cdef int64_t least, size
    cdef bint is_done
    buffer = pa.allocate_buffer(count * sizeof(int32_t))
    order = <int32_t*> <size_t> buffer.address
    try:
        columns = key_columns(key_count)
        found = <int32_t*> malloc(<size_t> (count + 1) * sizeof(int32_t))
        if found == NULL:
            raise MemoryError()
        with nogil:
            if key_count == 1 and find_range(&opened.columns[0], count, &least, &size):
                is_done = find_by_value(&opened.columns[0], count, least, size, &groups, found)
            else:
                hashes = <uint64_t*> malloc(<size_t> (count + 1) * sizeof(uint64_t))
                is_done = hashes != NULL
                if is_done:
                    hash_batch(opened, columns, key_count, 0, count, hashes)
                    is_done = find_groups(opened, key_count, hashes, &groups, found)
        if not is_done:
            raise MemoryError()
        starts = pa.allocate_buffer((groups.count + 1) * sizeof(int64_t))
        bounds = <int64_t*> <size_t> starts.address
        with nogil:
            put_in_order(found, count, &groups, bounds, order)
        return (
            pa.Array.from_buffers(pa.int32(), count, [None, buffer], null_count=0),
            pa.Array.from_buffers(pa.int64(), groups.count + 1, [None, starts], null_count=0),
        )
    finally:
        free_slots(&groups)
        free(columns)
        free(hashes)
        free(found)


cdef void put_runs(const int32_t* runs, const int64_t* bounds, const int64_t* starts, int64_t group_count,
                   int32_t* order, int64_t* places) noexcept nogil:
    cdef int64_t group, index, row
    cdef int64_t place = 0
    for group in range(group_count):
        places[group] = place
        for index in range(bounds[group], bounds[group + 1]):
            for row in range(starts[runs[index]], starts[runs[index] + 1]):
                order[place] = <int32_t> row
                place += 1
    places[group_count] = place


def order_of_runs(order not None, bounds not None, starts not None):
    """Return (order, bounds) of rows, fewer than 2**31, from those of their runs; ``starts``: and the end of all."""
    cdef ArrowBatch runs = ArrowBatch.open(pa.RecordBatch.from_arrays([order], ["0"]))
    cdef ArrowBatch groups = ArrowBatch.open(pa.RecordBatch.from_arrays([bounds], ["0"]))
    cdef ArrowBatch rows = ArrowBatch.open(pa.RecordBatch.from_arrays([starts], ["0"]))
    cdef const int64_t* begins = <const int64_t*> rows.columns[0].values + rows.columns[0].offset
    cdef int64_t count = begins[rows.row_count - 1]
    buffer = pa.allocate_buffer(count * sizeof(int32_t))
    places = pa.allocate_buffer(groups.row_count * sizeof(int64_t))
    cdef int32_t* into = <int32_t*> <size_t> buffer.address
    cdef int64_t* placed = <int64_t*> <size_t> places.address
    with nogil:
        put_runs(<const int32_t*> runs.columns[0].values + runs.columns[0].offset,
                 <const int64_t*> groups.columns[0].values + groups.columns[0].offset, begins, groups.row_count - 1,
                 into, placed)
    return (
        pa.Array.from_buffers(pa.int32(), count, [None, buffer], null_count=0),
        pa.Array.from_buffers(pa.int64(), groups.row_count, [None, places], null_count=0),
    )
