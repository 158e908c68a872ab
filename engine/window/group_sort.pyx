"""The rows of each group in the order of a column, which is made of the order that they have.

    sorted_in_groups(values, order, bounds, descending, nulls_last) -> order
    order, bounds       rows, group by group (``group_order``)
    values              of 8 bytes; nulls come first, or last, whichever the direction

Rows of equal values keep their order: so by several columns they are sorted by the last one first. Groups are sorted
one after the other, as words (``value_words``) beside their rows, by the radix sort of all sorts.

Held by: tests/window/test_group_sort.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove

from engine.records.arrow_batch cimport KIND_FLOAT64, ArrowBatch, ColumnView, column_is_null
from engine.records.normalized_key cimport Ties
from engine.sort.radix_sort cimport IndexEntry, sort_entries
from engine.window.value_words cimport word_of

import pyarrow as pa

# How rows are sorted, and memory for those of one group.
cdef struct GroupSort:
    bint is_real
    uint64_t flipped            # bits of words that are turned around
    bint nulls_last
    Ties ties                   # none: a word decides
    IndexEntry* entries
    IndexEntry* scratch


cdef void sort_group(const ColumnView* column, const GroupSort* how, const int32_t* order, int64_t count,
                     int32_t* into) noexcept nogil:
    """Write the rows of a group in order."""
    cdef const uint64_t* values = <const uint64_t*> column.values + column.offset
    cdef int64_t nulls = 0
    cdef int64_t index, row
    cdef IndexEntry* entry = how.entries
    for index in range(count):
        row = order[index]
        if column.validity != NULL and column_is_null(column, row):
            into[nulls] = <int32_t> row
            nulls += 1
            continue
        entry.prefix = word_of(values[row], how.is_real) ^ how.flipped
        entry.row = <uint8_t*> row
        entry += 1
    sort_entries(how.entries, how.scratch, count - nulls, None, &how.ties, None)
    if how.nulls_last:
        memmove(into + count - nulls, into, <size_t> nulls * sizeof(int32_t))
    else:
        into += nulls
    for index in range(count - nulls):
        into[index] = <int32_t> <int64_t> how.entries[index].row


def sorted_in_groups(values not None, order not None, bounds not None, bint descending, bint nulls_last):
    """Return the rows, group by group, in the order of values."""
    columns = [pa.RecordBatch.from_arrays([array], ["0"]) for array in (values, order, bounds)]
    cdef ArrowBatch opened = ArrowBatch.open(columns[0])
    cdef ArrowBatch rows = ArrowBatch.open(columns[1])
    cdef ArrowBatch places = ArrowBatch.open(columns[2])
    cdef const int32_t* given = <const int32_t*> rows.columns[0].values + rows.columns[0].offset
    cdef const int64_t* starts = <const int64_t*> places.columns[0].values + places.columns[0].offset
    cdef int64_t group, count
    cdef int64_t largest = 0
    cdef GroupSort how
    cdef int32_t* found
    assert opened.columns[0].width == 8, "values of 8 bytes"
    buffer = pa.allocate_buffer(rows.row_count * 4)
    found = <int32_t*> <size_t> buffer.address
    how.is_real = opened.columns[0].kind == KIND_FLOAT64
    how.flipped = ~<uint64_t> 0 if descending else 0
    how.nulls_last = nulls_last
    how.ties.any = False
    count = places.row_count - 1
    with nogil:
        for group in range(count):
            largest = max(largest, starts[group + 1] - starts[group])
    how.entries = <IndexEntry*> malloc(<size_t> (2 * largest + 1) * sizeof(IndexEntry))
    if how.entries == NULL:
        raise MemoryError()
    how.scratch = how.entries + largest
    with nogil:
        for group in range(count):
            sort_group(&opened.columns[0], &how, given + starts[group], starts[group + 1] - starts[group],
                       found + starts[group])
    free(how.entries)
    return pa.Array.from_buffers(pa.int32(), rows.row_count, [None, buffer], null_count=0)
