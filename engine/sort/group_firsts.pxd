# GroupFirsts: of rows that come in any order the first ones of each group, for a sort whose reader wants no others.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.memory.page_pool cimport PagePool
from engine.records.comparator cimport KeyEquality, RowComparator
from engine.records.row_codec cimport RowCodec

cdef enum:
    FIRSTS_CHUNK = 256      # rows looked up together

cdef enum Verdict:
    VERDICT_TAKEN           # dropped, or written over one that is beyond the limit
    VERDICT_PLACE           # to be placed behind the others, then told
    VERDICT_UNTOLD          # the same, and not told: its group is not known

@cython.final
cdef class GroupFirsts:
    cdef RowCodec _codec
    cdef KeyEquality _groups        # equal: one group
    cdef RowComparator _order       # of the rows of a group
    cdef PagePool _pool
    cdef int32_t* _columns          # keys of groups
    cdef int32_t _column_count
    cdef int64_t _most              # rows of a group that are wanted
    cdef bint _keeps_peers          # rows that are equal to the last wanted one are wanted, too
    cdef bint _writes_over          # rows are of one size: a better one takes the place of the last one
    cdef uint64_t* _slots           # [_slot_count] of _width words: tag, addresses of rows
    cdef int64_t _slot_count        # a power of two, at least twice as many as groups; 0: not begun
    cdef int64_t _width
    cdef int64_t _group_count
    cdef bint _is_full              # no more groups are taken
    cdef int64_t _seen              # rows judged
    cdef int64_t _known             # of those, rows of groups that were known
    cdef int64_t _left_out          # of those, rows that were dropped or are written over another
    cdef uint8_t* _swapped          # a row's bytes
    cdef uint64_t* _found           # words of the group of the row judged last
    cdef int64_t pages              # taken of the pool

    # hashes[i] = hash of the group of row i.
    cdef void hash(self, uint8_t** rows, int64_t count, uint64_t* hashes) noexcept nogil
    # Whether rows may be judged: it pays so far.
    cdef bint pays(self) noexcept nogil
    # Make room for so many more groups: False where that takes more than page_limit pages, and then only groups that
    # are known are judged.
    cdef bint reserve(self, int64_t group_count, int64_t page_limit) noexcept nogil
    # What is to be done with a row; order of arrival.
    cdef Verdict judge(self, const uint8_t* row, uint64_t hash) noexcept nogil
    # Tell where the row judged last was placed.
    cdef void told(self, uint8_t* placed) noexcept nogil
    # Forget all rows and give the pages back.
    cdef void clear(self) noexcept nogil

    cdef int64_t _bytes_of(self, int64_t slot_count) noexcept nogil
    cdef uint64_t* _slot_of(self, const uint8_t* row, uint64_t tag) noexcept nogil
    cdef void _shift(self, uint64_t* rows, int64_t count, const uint8_t* row) noexcept nogil
