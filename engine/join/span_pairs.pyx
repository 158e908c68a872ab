"""SpanPairs: the pairs of intervals with their points, which lie side by side in a block, in bounded portions.

    spans of intervals, begin to end
    mark_matched(...)                                   where the range alone decides
    rewind() ─► next_pairs(...) ─► keep_pairs(...) where a condition decides too ─► next_pairs(...) ─► ... ─► 0

    intervals   0  1  2            pairs   (0,3) (0,4) (2,4) (2,5) (2,6)
    spans      3-5 -  4-7

Invariants: at most PAIRS_MAX pairs of about PAIRS_BYTES at a time. Thread: one.

Held by: tests/join/test_range_join.py
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from engine.join.key_groups cimport PAIRS_BYTES, PAIRS_MAX
from engine.join.point_block cimport PointBlock
from engine.join.sorted_batch cimport ROW_MATCHED, SortedBatch


@cython.final
cdef class SpanPairs:
    """Pairs of a batch of intervals with a block; the methods are for the join (see the .pxd)."""

    def __cinit__(self, bint skips_matched, bint is_point_left):
        self.skips_matched = skips_matched
        self.is_point_left = is_point_left
        self.spans = <Span*> calloc(PAIRS_MAX, sizeof(Span))
        self.intervals = <int64_t*> calloc(PAIRS_MAX, sizeof(int64_t))
        self.points = <int64_t*> calloc(PAIRS_MAX, sizeof(int64_t))
        if self.spans == NULL or self.intervals == NULL or self.points == NULL:
            raise MemoryError("scratch of a range join")

    def __dealloc__(self):
        free(self.spans)
        free(self.intervals)
        free(self.points)

    cdef void mark_matched(self, PointBlock block, SortedBatch batch) noexcept nogil:
        cdef int64_t index
        cdef Span* span
        for index in range(self.begin, self.end):
            span = &self.spans[index - self.begin]
            if span.begin < span.end:
                batch.states[index] = ROW_MATCHED
                block.cover(span.begin, span.end)

    cdef void rewind(self) noexcept nogil:
        self._interval = self.begin
        self._point = self.spans[0].begin

    cdef int64_t next_pairs(self, PointBlock block, SortedBatch batch) noexcept nogil:
        cdef int64_t used = 0
        cdef Span* span
        self.count = 0
        while self._interval < self.end:
            span = &self.spans[self._interval - self.begin]
            while self._point < span.end:
                if self.skips_matched:
                    if not self.is_point_left and batch.states[self._interval] == ROW_MATCHED:
                        break
                    if self.is_point_left and block.states[self._point] == ROW_MATCHED:
                        self._point += 1
                        continue
                used += batch.sizes[self._interval] + block.sizes[self._point]
                if self.count == PAIRS_MAX or (self.count > 0 and used > PAIRS_BYTES):
                    return self.count
                self.intervals[self.count] = self._interval
                self.points[self.count] = self._point
                self.count += 1
                self._point += 1
            self._interval += 1
            if self._interval < self.end:
                self._point = self.spans[self._interval - self.begin].begin
        return self.count

    cdef void keep_pairs(self, PointBlock block, SortedBatch batch, const uint64_t* words) noexcept nogil:
        cdef int64_t kept = 0
        cdef int64_t index
        for index in range(self.count):
            if (words[index >> 6] >> (index & 63)) & 1:
                batch.states[self.intervals[index]] = ROW_MATCHED
                block.states[self.points[index]] = ROW_MATCHED
                self.intervals[kept] = self.intervals[index]
                self.points[kept] = self.points[index]
                kept += 1
        self.count = kept

    cdef bint goes_on(self, SortedBatch batch, int state) noexcept nogil:
        cdef int64_t index
        for index in range(self.begin, self.end):
            if self.spans[index - self.begin].goes_on and batch.states[index] == state:
                return True
        return False
