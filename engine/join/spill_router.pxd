# SpillRouter: probe rows that wait for a spilled partition, taken as rows.

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.join.hash_join cimport HashJoin
from engine.join.partition_set cimport PartitionSet
from engine.records.row_router cimport RowRouter


@cython.final
cdef class SpillRouter(RowRouter):
    cdef public bint drops_all           # the join's output is not needed any more
    cdef HashJoin _join

    # The rows of one chunk that are left go to kept; returns how many.
    cdef int64_t _sift_chunk(self, uint8_t** rows, int64_t count, uint8_t** kept) except -1
    # Sort them: left, waiting for a spilled partition (join._rows with join._hashes), dropped.
    cdef int64_t _choose(self, HashJoin join, PartitionSet level, uint8_t** rows, int64_t count, uint8_t** kept,
                         int64_t* waiting) noexcept nogil
