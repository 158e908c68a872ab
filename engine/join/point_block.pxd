# PointBlock: sorted points in memory, and where bounds lie among them.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from engine.join.sorted_batch cimport KeyOrder, SortedBatch
from engine.records.comparator cimport KeyEquality


@cython.final
cdef class PointBlock:
    cdef int64_t count
    cdef int64_t total_bytes
    cdef uint8_t** rows                 # [count], no key of which is null, in order
    cdef uint64_t* prefixes
    cdef uint32_t* sizes
    cdef uint8_t* states                # RowState
    cdef int64_t* _covers               # [count + 1] intervals that begin at a point, less those that end before it
    cdef int64_t _capacity
    cdef list _batches                  # that have the rows

    cdef int clear(self) except -1
    cdef int _reserve(self, int64_t count) except -1
    # Add the rows of a batch whose keys are not null.
    cdef int append(self, SortedBatch batch) except -1
    # Note that all points of a range have a match; counted() sets their states.
    cdef void cover(self, int64_t begin, int64_t end) noexcept nogil
    cdef void count_covers(self) noexcept nogil
    # The first point that is greater than a bound, or with at_equal equal to it, from begin on.
    cdef int64_t first_from(self, KeyOrder order, uint64_t prefix, const uint8_t* bound, bint at_equal,
                            int64_t begin) noexcept nogil
    # The same by keys that have no prefixes here.
    cdef int64_t first_of_keys(self, KeyEquality keys, const uint8_t* bound, bint at_equal) noexcept nogil
