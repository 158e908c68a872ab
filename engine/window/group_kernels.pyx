"""Kernels over whole groups of sorted rows: where they begin, how many rows of each count, which is the first.

    group_starts(levels, key_count) -> int64 array       rows that begin a group
    kept_before(kept, bounds) -> int32 array             how many of a bool array's rows are true before each bound
    first_kept(kept, bounds) -> int64 array              first row between two bounds that is true, or null

Bounds are rows, one more than there are groups. Cost: a few instructions a row, or a group.

Held by: tests/window/test_sorted_groups.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.arrow_batch cimport ArrowBatch, ColumnView

import pyarrow as pa


cdef uint8_t* buffer_address(object buffer) except? NULL:
    """Return the address of an Arrow buffer made by pa.allocate_buffer."""
    return <uint8_t*> <size_t> buffer.address


cdef ArrowBatch opened(array):
    return ArrowBatch.open(pa.RecordBatch.from_arrays([array], ["0"]))


cdef inline bint is_true(const ColumnView* kept, int64_t row) noexcept nogil:
    cdef int64_t position = kept.offset + row
    return (kept.values[position >> 3] >> (position & 7)) & 1


def group_starts(levels not None, uint8_t key_count):
    """Return the rows whose level is at most the number of keys."""
    cdef ArrowBatch batch = opened(levels)
    cdef const uint8_t* values = batch.columns[0].values + batch.columns[0].offset
    cdef int64_t count = batch.row_count
    cdef int64_t row
    cdef int64_t found = 0
    cdef int64_t* starts
    buffer = pa.allocate_buffer(count * 8)
    starts = <int64_t*> buffer_address(buffer)
    with nogil:
        for row in range(count):
            starts[found] = row
            found += values[row] <= key_count
    return pa.Array.from_buffers(pa.int64(), found, [None, buffer], null_count=0)


def kept_before(kept not None, bounds not None):
    """Return the number of true rows before each bound; bounds do not decrease, the first one counts as 0."""
    cdef ArrowBatch mask = opened(kept)
    cdef ArrowBatch places = opened(bounds)
    cdef const int64_t* rows = <const int64_t*> places.columns[0].values + places.columns[0].offset
    cdef int64_t count = places.row_count
    cdef int64_t index
    cdef int64_t row
    cdef int32_t total = 0
    cdef int32_t* found
    buffer = pa.allocate_buffer(count * 4)
    found = <int32_t*> buffer_address(buffer)
    with nogil:
        row = rows[0] if count else 0
        for index in range(count):
            while row < rows[index]:
                total += is_true(&mask.columns[0], row)
                row += 1
            found[index] = total
    return pa.Array.from_buffers(pa.int32(), count, [None, buffer], null_count=0)


def first_kept(kept not None, bounds not None):
    """Return the first row of each group that is true, null where none is."""
    cdef ArrowBatch mask = opened(kept)
    cdef ArrowBatch places = opened(bounds)
    cdef const int64_t* rows = <const int64_t*> places.columns[0].values + places.columns[0].offset
    cdef int64_t count = max(<int64_t> 0, places.row_count - 1)
    cdef int64_t group, row
    cdef int64_t nulls = 0
    cdef int64_t* found
    cdef uint8_t* bits
    buffer, validity = pa.allocate_buffer(count * 8), pa.allocate_buffer((count + 7) >> 3)
    found, bits = <int64_t*> buffer_address(buffer), buffer_address(validity)
    with nogil:
        for group in range((count + 7) >> 3):
            bits[group] = 0
        for group in range(count):
            row = rows[group]
            while row < rows[group + 1] and not is_true(&mask.columns[0], row):
                row += 1
            found[group] = row if row < rows[group + 1] else 0
            nulls += row == rows[group + 1]
            bits[group >> 3] |= <uint8_t> ((row < rows[group + 1]) << (group & 7))
    return pa.Array.from_buffers(pa.int64(), count, [validity, buffer], null_count=nulls)
