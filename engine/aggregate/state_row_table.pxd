# StateRowTable: the groups of rows of states, in pages of rows that a directory finds.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.aggregate.group_directory cimport GroupDirectory
from engine.aggregate.row_partitions cimport KeptRows, RowPage
from engine.aggregate.state_combiner cimport StateCombiner
from engine.memory.page_pool cimport PagePool
from engine.records.row_codec cimport RowCodec

cdef enum:
    CHUNK_ROWS = 1024           # rows hashed together

# What the merging of one page works with; many StateRowTable that take turns have one.
@cython.final
cdef class MergeScratch:
    cdef uint8_t** rows                 # [CHUNK_ROWS], as the others
    cdef uint64_t* hashes
    cdef int64_t* positions             # where a row's slot is, or further on

@cython.final
cdef class StateRowTable:
    cdef PagePool _pool
    cdef RowCodec _codec
    cdef StateCombiner _combiner
    cdef int32_t _key_count
    cdef int32_t* _key_columns          # 0, 1, 2 ...
    cdef uint64_t _null_mask            # of the keys, in the first word of a row
    cdef int32_t _word_slot             # of a single key of 8 bytes, -1: keys are others
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
    cdef bint _find_rows(self, uint8_t* page, int64_t count) noexcept nogil
    cdef int64_t _merge_rows(self, int64_t count, int* failure) noexcept nogil
    cdef inline void _look_ahead(self, int64_t row, int64_t count) noexcept nogil
    cdef inline bint _is_same(self, const uint8_t* group, const uint8_t* row) noexcept nogil
    cdef uint8_t* _place(self, const uint8_t* row) noexcept nogil
    cdef void _grow(self, int64_t new_groups) noexcept nogil
    cdef void _fill(self) noexcept nogil
    cdef int _check(self, int64_t done, int failure) except -1
    cdef int64_t _merge_pages(self, KeptRows kept, int* failure) noexcept nogil
    cdef int _put_back(self, KeptRows kept) except -1
    cdef void _give_pages(self) noexcept nogil
