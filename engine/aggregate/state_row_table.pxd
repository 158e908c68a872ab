# StateRowTable: the groups of rows of states, in pages of rows that a directory finds.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.accumulators.state_combiner cimport StateCombiner
from engine.aggregate.group_directory cimport GroupDirectory
from engine.aggregate.merge_scratch cimport MergeScratch
from engine.aggregate.state_row_keys cimport RowKeys
from engine.memory.page_pool cimport PagePool
from engine.partitions.row_page cimport RowPage
from engine.partitions.row_partitions cimport KeptRows
from engine.records.row_codec cimport RowCodec

@cython.final
cdef class StateRowTable:
    cdef PagePool _pool
    cdef RowCodec _codec
    cdef StateCombiner _combiner
    cdef int32_t _key_count
    cdef int32_t* _key_columns          # 0, 1, 2 ...
    cdef RowKeys _keys
    cdef bint _is_fixed                 # rows are of one size
    cdef int64_t _row_size              # of a row, about
    cdef int64_t _rows_merged           # of this source
    cdef bint _has_dead                 # some rows are dead
    cdef int64_t _group_limit
    cdef GroupDirectory _directory
    cdef RowPage* _pages                # [_page_count] rows of groups; all but the last are full
    cdef int64_t _page_count
    cdef int64_t _page_capacity
    cdef readonly int64_t group_count
    cdef MergeScratch _scratch
    cdef uint8_t** _rows                # of the scratch, as these
    cdef uint64_t* _hashes
    cdef int64_t* _positions

    cdef void _begin(self, int64_t groups_expected) noexcept nogil
    cdef bint _fits(self, int64_t groups) noexcept nogil
    cdef int64_t _merge_page(self, uint8_t* page, int64_t used, int* failure) noexcept nogil
    cdef int64_t _merge_any_page(self, uint8_t* page, int64_t used, int* failure) noexcept nogil
    cdef bint _find_rows(self, uint8_t* page, int64_t count) noexcept nogil
    cdef int64_t _merge_rows(self, int64_t count, int* failure) noexcept nogil
    cdef inline void _look_ahead(self, int64_t row, int64_t count) noexcept nogil
    cdef uint8_t* _combine_any(self, uint8_t* group, const uint8_t* row, int* failure) noexcept nogil
    cdef uint8_t* _rewritten(self, uint8_t* group, int64_t room) noexcept nogil
    cdef uint8_t* _place(self, const uint8_t* row) noexcept nogil
    cdef inline uint8_t* _place_at(self, int64_t size) noexcept nogil
    cdef void _move_together(self) noexcept nogil
    cdef void _grow(self, int64_t new_groups) noexcept nogil
    cdef void _make_room(self, int64_t groups) noexcept nogil
    cdef void _resize(self, int64_t slot_count) noexcept nogil
    cdef void _fill(self) noexcept nogil
    cdef int _check(self, int64_t done, int failure) except -1
    cdef int64_t _merge_pages(self, KeptRows kept, int* failure) noexcept nogil
    cdef int _put_back(self, KeptRows kept) except -1
    cdef void _give_pages(self) noexcept nogil
