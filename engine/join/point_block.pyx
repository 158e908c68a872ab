"""PointBlock: as many sorted points as fit, and where the bounds of intervals lie among them.

    block.append(batch) ...             rows without null keys, in order
    block.first_from(order, ...)        kernel: binary search by prefix, by row on ties
    block.cover(begin, end)             kernel: all of a range have a match, in constant work
    block.count_covers()                kernel: sets states of points that were covered

Memory: 40 bytes for each row, and its batches until clear(). Thread: one.

Held by: tests/join/test_range_join.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from engine.join.sorted_batch cimport ROW_MATCHED, KeyOrder, SortedBatch
from engine.records.comparator cimport KeyEquality

cdef enum:
    ROW_BYTES = 40              # of a row beside itself


@cython.final
cdef class PointBlock:
    """Sorted points; the methods are for the join (see the .pxd)."""

    def __cinit__(self):
        self._batches = []

    def __dealloc__(self):
        free(self.rows)
        free(self.prefixes)
        free(self.sizes)
        free(self.states)
        free(self._covers)

    cdef int clear(self) except -1:
        self._batches = []
        self.count = 0
        self.total_bytes = 0
        return 0

    cdef int append(self, SortedBatch batch) except -1:
        cdef int64_t index
        self._reserve(self.count + batch.count)
        self._batches.append(batch)
        self.total_bytes += batch.total_bytes + ROW_BYTES * batch.count
        with nogil:
            for index in range(batch.count):
                if batch.null_keys[index]:
                    continue
                self.rows[self.count] = batch.rows[index]
                self.prefixes[self.count] = batch.prefixes[index]
                self.sizes[self.count] = batch.sizes[index]
                self.states[self.count] = 0
                self._covers[self.count] = 0
                self.count += 1
            self._covers[self.count] = 0
        return 0

    cdef int _reserve(self, int64_t count) except -1:
        cdef size_t capacity = <size_t> max(count, min(2 * self._capacity, count + (1 << 20)))
        if count <= self._capacity and self._capacity:
            return 0
        self.rows = <uint8_t**> grown(self.rows, (capacity + 1) * sizeof(uint8_t*))
        self.prefixes = <uint64_t*> grown(self.prefixes, (capacity + 1) * sizeof(uint64_t))
        self.sizes = <uint32_t*> grown(self.sizes, (capacity + 1) * sizeof(uint32_t))
        self.states = <uint8_t*> grown(self.states, capacity + 1)
        self._covers = <int64_t*> grown(self._covers, (capacity + 1) * sizeof(int64_t))
        self._capacity = <int64_t> capacity
        return 0

    cdef void cover(self, int64_t begin, int64_t end) noexcept nogil:
        self._covers[begin] += 1
        self._covers[end] -= 1

    cdef void count_covers(self) noexcept nogil:
        cdef int64_t covers = 0
        cdef int64_t index
        for index in range(self.count):
            covers += self._covers[index]
            if covers > 0:
                self.states[index] = ROW_MATCHED
        memset(self._covers, 0, <size_t> (self.count + 1) * sizeof(int64_t))

    cdef int64_t first_from(self, KeyOrder order, uint64_t prefix, const uint8_t* bound, bint at_equal,
                            int64_t begin) noexcept nogil:
        cdef int64_t end = self.count
        cdef int64_t middle
        cdef int compared
        while begin < end:
            middle = (begin + end) >> 1
            if self.prefixes[middle] != prefix:
                compared = -1 if self.prefixes[middle] < prefix else 1
            else:
                compared = order.across.order_of(self.rows[middle], bound) if order.ties else 0
            if compared > 0 or (compared == 0 and at_equal):
                end = middle
            else:
                begin = middle + 1
        return begin

    cdef int64_t first_of_keys(self, KeyEquality keys, const uint8_t* bound, bint at_equal) noexcept nogil:
        cdef int64_t begin = 0
        cdef int64_t end = self.count
        cdef int64_t middle
        cdef int compared
        while begin < end:
            middle = (begin + end) >> 1
            compared = keys.order_of(self.rows[middle], bound)
            if compared > 0 or (compared == 0 and at_equal):
                end = middle
            else:
                begin = middle + 1
        return begin


cdef void* grown(void* memory, size_t size) except NULL:
    cdef void* larger = realloc(memory, size)
    if larger == NULL:
        raise MemoryError(f"{size} bytes for rows of a range join")
    return larger
