# RowGroups: numbers for rows by their keys.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.join_side cimport JoinSide
from engine.join.short_groups cimport ShortGroups
from engine.records.comparator cimport KeyEquality
from engine.records.group_slots cimport GroupSlots

cdef enum:
    NO_GROUP = -1
    GROUP_CHUNK_ROWS = 512      # rows of a call of add or find, at most: they stay in the nearest cache

# Rows of a chunk that the groups of short texts do not tell.
cdef struct OtherRows:
    int64_t count
    int32_t places[GROUP_CHUNK_ROWS]
    uint8_t* rows[GROUP_CHUNK_ROWS]
    uint64_t hashes[GROUP_CHUNK_ROWS]


@cython.final
cdef class RowGroups:
    cdef JoinSide _left                 # its keys are those of the groups
    cdef JoinSide _right
    cdef KeyEquality _of_left
    cdef KeyEquality _across
    cdef bint _by_texts                 # the key is one text: short ones are groups by themselves
    cdef ShortGroups _short
    cdef GroupSlots _long               # all others; first rows: addresses of rows of the left
    cdef int64_t count                  # groups of both
    cdef OtherRows _others
    cdef int64_t* _long_numbers         # [_long_capacity] of the groups of _long
    cdef int64_t _long_capacity

    # numbers[i] = group of left row i, from 0, a new one where it is the first; NO_GROUP where skipped[i]. False:
    # there is no memory.
    cdef bint add(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    # The same of right rows; NO_GROUP where no left row is of the group.
    cdef void find(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    # Forget the groups, whose rows go.
    cdef void clear(self) noexcept nogil
    cdef bint _add_short(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    cdef bint _add_others(self, int32_t* numbers) noexcept nogil
    cdef void _find_short(self, uint8_t** rows, int64_t count, const uint8_t* skipped,
                          int32_t* numbers) noexcept nogil
    cdef void _find_others(self, int32_t* numbers) noexcept nogil
    cdef bint _reserve_long(self) noexcept nogil
    cdef void _take_all(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
