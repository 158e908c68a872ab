"""Kernels over the positions of a block's rows: rankings, bounds by rows, places of single values.

    offset_from(starts) -> int64 array       1 for the first row of its group       row_number, and of peers: rank
    ranks(starts, peers)                     1 + rows before the peers
    percent_ranks(starts, peers, ends)       (rank - 1) / (rows - 1), 0.0 for one row
    cumulative(starts, peer_ends, ends)      rows up to the last peer / rows
    tiles(starts, ends, n)                   n buckets in order, the first ones a row larger where it does not divide
    shifted(starts, ends, offset, missing)   row + offset, held within the partition, or with missing -1 beyond it
    frame_rows(starts, ends)                 how many rows a frame has
    cut(starts, ends, cuts, is_behind)       the end of what lies before cuts (None: the row), or where the rest begins
    nth_rows(starts, ends, n)                the frame's n-th row from 1, of -1 its last; -1: it has none

Starts and ends are Positions of partitions, peers or frames. Cost: a few instructions a row.

Held by: tests/window/test_group_bounds.py
"""

from libc.stdint cimport int64_t

from engine.window.row_block cimport Positions

import pyarrow as pa


cdef Positions like(Positions other):
    cdef Positions made = Positions.__new__(Positions)
    made.start = other.start
    made.count = other.count
    made.buffer = pa.allocate_buffer(other.count * 8)
    made.values = <int64_t*> <size_t> made.buffer.address
    return made


def offset_from(Positions starts not None):
    """Return the number of each row in its group, from 1."""
    cdef Positions found = like(starts)
    cdef int64_t index
    with nogil:
        for index in range(found.count):
            found.values[index] = starts.start + index - starts.values[index] + 1
    return found.array()


def ranks(Positions starts not None, Positions peers not None):
    """Return 1 + the rows of the partition before each row's peers."""
    cdef Positions found = like(starts)
    cdef int64_t index
    with nogil:
        for index in range(found.count):
            found.values[index] = peers.values[index] - starts.values[index] + 1
    return found.array()


def percent_ranks(Positions starts not None, Positions peers not None, Positions ends not None):
    """Return (rank - 1) / (rows - 1) as float64."""
    cdef Positions found = like(starts)
    cdef double* shares = <double*> found.values
    cdef int64_t index, others
    with nogil:
        for index in range(found.count):
            others = ends.values[index] - starts.values[index] - 1
            shares[index] = (peers.values[index] - starts.values[index]) / <double> others if others > 0 else 0.0
    return pa.Array.from_buffers(pa.float64(), found.count, [None, found.buffer], null_count=0)


def cumulative(Positions starts not None, Positions peer_ends not None, Positions ends not None):
    """Return the share of rows up to the last peer as float64."""
    cdef Positions found = like(starts)
    cdef double* shares = <double*> found.values
    cdef int64_t index
    with nogil:
        for index in range(found.count):
            shares[index] = (
                (peer_ends.values[index] - starts.values[index]) / <double> (ends.values[index] - starts.values[index])
            )
    return pa.Array.from_buffers(pa.float64(), found.count, [None, found.buffer], null_count=0)


def tiles(Positions starts not None, Positions ends not None, int64_t bucket_count):
    """Return the bucket of each row, from 1."""
    cdef Positions found = like(starts)
    cdef int64_t index, rows, place, size, larger
    with nogil:
        for index in range(found.count):
            rows = ends.values[index] - starts.values[index]
            place = starts.start + index - starts.values[index]
            size, larger = rows // bucket_count, rows % bucket_count
            if place < larger * (size + 1):
                found.values[index] = place // (size + 1) + 1
            else:
                found.values[index] = larger + (place - larger * (size + 1)) // size + 1
    return found.array()


def shifted(Positions starts not None, Positions ends not None, int64_t offset, bint missing=False):
    """Return each row + offset; beyond its partition the partition's bound, or -1 where missing is asked for."""
    cdef Positions found = like(starts)
    cdef int64_t index, row
    with nogil:
        for index in range(found.count):
            # an offset may be as large as it likes
            if offset < 0 and offset < starts.values[index] - starts.start - index:
                found.values[index] = -1 if missing else starts.values[index]
            elif offset > 0 and offset >= ends.values[index] - starts.start - index:
                found.values[index] = -1 if missing else ends.values[index]
            else:
                row = starts.start + index + offset
                found.values[index] = row
    return found


def frame_rows(Positions starts not None, Positions ends not None):
    """Return the number of rows of each frame."""
    cdef Positions found = like(starts)
    cdef int64_t index
    with nogil:
        for index in range(found.count):
            found.values[index] = max(<int64_t> 0, ends.values[index] - starts.values[index])
    return found.array()


def cut(Positions starts not None, Positions ends not None, Positions cuts, bint is_behind):
    """Return the end of the rows of each frame before those that are left out, or the start of the rows behind."""
    cdef Positions found = like(starts)
    cdef int64_t index, place
    with nogil:
        for index in range(found.count):
            place = starts.start + index + is_behind if cuts is None else cuts.values[index]
            if is_behind:
                found.values[index] = min(ends.values[index], max(starts.values[index], place))
            else:
                found.values[index] = max(starts.values[index], min(ends.values[index], place))
    return found


def nth_rows(Positions starts not None, Positions ends not None, int64_t place):
    """Return the row at a place of each frame, from 1, or with -1 the last one; -1 where there is none."""
    cdef Positions found = like(starts)
    cdef int64_t index, rows
    with nogil:
        for index in range(found.count):
            rows = ends.values[index] - starts.values[index]
            if place == -1:
                found.values[index] = ends.values[index] - 1 if rows > 0 else -1
            else:
                found.values[index] = starts.values[index] + place - 1 if rows >= place else -1
    return found


def frames_until(Positions starts not None, Positions ends not None, int64_t row, int64_t most):
    """Return the row behind those whose frames have no more than so many rows together, at least one."""
    cdef int64_t index = row - starts.start
    cdef int64_t rows = 0
    with nogil:
        while index < starts.count:
            rows += max(<int64_t> 0, ends.values[index] - starts.values[index])
            if rows > most and index > row - starts.start:
                break
            index += 1
    return starts.start + index


def frame_places(Positions starts not None, Positions ends not None, int64_t row, int64_t stop):
    """Return the rows of the frames of rows [row, stop), one frame behind the other, and where each one begins.

    They are counted from a first row, and lie before another one: (places, offsets, first, behind).
    """
    cdef int64_t begin = row - starts.start
    cdef int64_t end = stop - starts.start
    cdef int64_t index, each
    cdef int64_t first = -1, behind = 0, total = 0
    cdef int64_t* places
    cdef int64_t* offsets
    for index in range(begin, end):
        if ends.values[index] > starts.values[index]:
            first = starts.values[index] if first < 0 else min(first, starts.values[index])
            behind = max(behind, ends.values[index])
            total += ends.values[index] - starts.values[index]
    found, bounds = pa.allocate_buffer(total * 8), pa.allocate_buffer((end - begin + 1) * 8)
    places = <int64_t*> <size_t> found.address
    offsets = <int64_t*> <size_t> bounds.address
    total = 0
    with nogil:
        for index in range(begin, end):
            offsets[index - begin] = total
            for each in range(starts.values[index], ends.values[index]):
                places[total] = each - first
                total += 1
        offsets[end - begin] = total
    places_array = pa.Array.from_buffers(pa.int64(), total, [None, found])
    return places_array, pa.Array.from_buffers(pa.int64(), end - begin + 1, [None, bounds]), max(first, 0), behind
