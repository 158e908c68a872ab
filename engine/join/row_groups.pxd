# RowGroups: numbers for rows by their keys.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.join_side cimport JoinSide
from engine.records.comparator cimport KeyEquality

cdef enum:
    NO_GROUP = -1

# Groups are counted from 1, so that a slot of zeros is free.
cdef struct GroupSlot:
    uint64_t hash
    int64_t group


@cython.final
cdef class RowGroups:
    cdef readonly int64_t count         # groups
    cdef JoinSide _left                 # its keys are those of the groups
    cdef JoinSide _right
    cdef KeyEquality _of_left
    cdef KeyEquality _across
    cdef GroupSlot* _slots
    cdef int64_t _slot_count            # a power of two, more than twice as many as groups
    cdef uint8_t** _first_rows          # [_slot_count / 2] of the left
    cdef uint64_t* _hashes              # [CHUNK_ROWS]

    # numbers[i] = group of left row i, from 0, a new one where it is the first; NO_GROUP where skipped[i]. False:
    # there is no memory.
    cdef bint add(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    # The same of right rows; NO_GROUP where no left row is of the group.
    cdef void find(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    # Forget the groups, whose rows go.
    cdef void clear(self) noexcept nogil
    cdef bint _grow(self) noexcept nogil
    cdef bint _add_chunk(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    cdef void _find_chunk(self, uint8_t** rows, int64_t count, const uint8_t* skipped,
                          int32_t* numbers) noexcept nogil
