# BatchProber: looks the rows of a probe batch up in what is in memory, and gives their matches out.

cimport cython
from libc.stdint cimport int64_t

from engine.join.join_roles cimport JoinRoles
from engine.join.matched_rows cimport MatchedRows
from engine.join.partition_set cimport PartitionSet
from engine.join.probe_matches cimport ProbeMatches
from engine.records.arrow_batch cimport ArrowBatch


@cython.final
cdef class BatchProber:
    cdef JoinRoles roles                         # as what is joined now has them
    cdef PartitionSet level                      # the partitions in work; None: no probe row waits for one
    cdef MatchedRows matched                     # of earlier passes over the same rows; None: this is the only one
    cdef bint drops_null_keys                    # a probe row without key is never returned
    cdef int64_t null_key_count
    cdef int64_t rows_spilled                    # on all levels
    cdef int64_t rows_filtered                   # answered by a Bloom filter instead
    cdef object turn                             # lock of a level that others write to as well; None: nothing does
    cdef bint _has_copies
    cdef ProbeMatches _matches

    # Stop a pass over the rows of several: matched goes.
    cdef int end_passes(self) except -1

    # Other threads probe and mark the same build rows; level: of spilled partitions, None: there are none.
    cdef int share_marks(self, PartitionSet level, turn) except -1

    cdef bint _finds_indices(self, ArrowBatch batch) noexcept
    cdef object _of_indices(self, ArrowBatch batch, int64_t start, int64_t count)
    cdef int _look_up(self, ArrowBatch batch, int64_t start, int64_t count, bint emit_unmatched) except -1
    cdef bint _any_spilled(self) noexcept nogil
    cdef void _choose(self, ProbeMatches matches, int64_t null_count) noexcept nogil
    cdef int64_t _keep_spilled(self, ProbeMatches matches, int64_t begin, int64_t count) noexcept nogil
    cdef int _spill_rows(self, ArrowBatch batch) except -1
