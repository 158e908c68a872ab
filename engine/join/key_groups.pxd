# KeyGroups: where two sorted batches have equal keys, and the pairs of rows that follow from it.

cimport cython
from libc.stdint cimport int64_t, uint64_t

from engine.join.sorted_batch cimport KeyOrder, SortedBatch

cdef enum:
    GROUPS_MAX = 1024           # groups found at one time
    PAIRS_MAX = 8192            # pairs returned at one time
    PAIRS_BYTES = 1 << 20       # their bytes, exceeded only by a single pair

cdef enum MergeStop:
    STOP_BATCH_ENDS = 0         # all rows of one batch are merged
    STOP_OPEN_GROUP = 1         # at rows with equal keys that may go on in the next batch of a side
    STOP_GROUPS_FULL = 2

cdef struct KeyGroup:
    int64_t left_begin
    int64_t left_end
    int64_t right_begin
    int64_t right_end


@cython.final
cdef class KeyGroups:
    cdef KeyGroup groups[GROUPS_MAX]
    cdef int64_t group_count
    cdef bint skips_matched             # a left row that has a match needs no more pairs
    cdef int64_t pair_count
    cdef int64_t pair_bytes             # of the pairs, with what lies outside and is given out
    cdef int64_t* left_rows             # [PAIRS_MAX] the pairs: row numbers in both batches
    cdef int64_t* right_rows
    cdef int64_t _group                 # where next_pairs goes on
    cdef int64_t _left
    cdef int64_t _right

    # Merge two batches from their positions on, which move behind what is merged.
    cdef int merge(self, KeyOrder order, SortedBatch left, SortedBatch right) noexcept nogil
    # One group of all pairs of two ranges.
    cdef void set_group(self, int64_t left_begin, int64_t left_end, int64_t right_begin,
                        int64_t right_end) noexcept nogil
    # All rows of the groups have a match.
    cdef void mark_matched(self, SortedBatch left, SortedBatch right) noexcept nogil
    # Go back to the first pair.
    cdef void rewind(self) noexcept nogil
    # Fill in the next pairs; returns their count, 0 at the end.
    cdef int64_t next_pairs(self, SortedBatch left, SortedBatch right) noexcept nogil
    # Keep the pairs whose bit of a mask is set, and mark their rows as matched.
    cdef void keep_pairs(self, SortedBatch left, SortedBatch right, const uint64_t* words) noexcept nogil
