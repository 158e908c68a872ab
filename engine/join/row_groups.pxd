# RowGroups: numbers for rows by their keys.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.join_side cimport JoinSide
from engine.records.comparator cimport KeyEquality
from engine.records.group_slots cimport GroupSlots

cdef enum:
    NO_GROUP = -1


@cython.final
cdef class RowGroups:
    cdef JoinSide _left                 # its keys are those of the groups
    cdef JoinSide _right
    cdef KeyEquality _of_left
    cdef KeyEquality _across
    cdef GroupSlots _groups             # first rows: addresses of rows of the left
    cdef uint64_t* _hashes              # [CHUNK_ROWS]

    cdef inline int64_t group_count(self) noexcept nogil:
        return self._groups.count

    # numbers[i] = group of left row i, from 0, a new one where it is the first; NO_GROUP where skipped[i]. False:
    # there is no memory.
    cdef bint add(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    # The same of right rows; NO_GROUP where no left row is of the group.
    cdef void find(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    # Forget the groups, whose rows go.
    cdef void clear(self) noexcept nogil
    cdef bint _add_chunk(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil
    cdef void _find_chunk(self, uint8_t** rows, int64_t count, const uint8_t* skipped,
                          int32_t* numbers) noexcept nogil
