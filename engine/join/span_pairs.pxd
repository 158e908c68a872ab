# SpanPairs: the points of some intervals, and the pairs that follow from them.

cimport cython
from libc.stdint cimport int64_t, uint64_t

from engine.join.point_block cimport PointBlock
from engine.join.sorted_batch cimport SortedBatch

# The points of an interval in the block.
cdef struct Span:
    int64_t begin
    int64_t end
    bint goes_on                # it may have points behind the block


@cython.final
cdef class SpanPairs:
    cdef bint skips_matched             # a left row that has a match needs no more pairs
    cdef bint is_point_left
    cdef Span* spans                    # [PAIRS_MAX] of the intervals from begin on
    cdef int64_t begin
    cdef int64_t end
    cdef int64_t* intervals             # [PAIRS_MAX] the pairs: rows of the intervals' batch
    cdef int64_t* points                # and of the block
    cdef int64_t count
    cdef int64_t _interval              # where next_pairs goes on
    cdef int64_t _point

    # All points of the spans have a match, and the intervals that have any.
    cdef void mark_matched(self, PointBlock block, SortedBatch batch) noexcept nogil
    # Go back to the first pair.
    cdef void rewind(self) noexcept nogil
    # Fill in the next pairs; returns their count, 0 at the end.
    cdef int64_t next_pairs(self, PointBlock block, SortedBatch batch) noexcept nogil
    # Keep the pairs whose bit of a mask is set, and mark their rows as matched.
    cdef void keep_pairs(self, PointBlock block, SortedBatch batch, const uint64_t* words) noexcept nogil
    # Whether an interval in a state goes on behind the block.
    cdef bint goes_on(self, SortedBatch batch, int state) noexcept nogil
