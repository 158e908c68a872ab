# BloomFilter: which keys the spilled build rows of a level have.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

from engine.memory.page_pool cimport PagePool

cdef enum:
    EXPECTED_ROWS = 256


@cython.final
cdef class BloomFilter:
    cdef readonly bint is_open
    cdef PagePool _pool
    cdef uint64_t** _pages
    cdef int64_t _page_count
    cdef int64_t _pages_max
    cdef int32_t _page_shift
    cdef uint64_t _page_mask
    cdef uint64_t _word_count
    cdef int64_t _rows
    cdef bint _is_given_up
    cdef int64_t _asked_rows                # in this trial
    cdef int64_t _kept_out_rows

    # So many rows will be added: open it, and double it until that is room for them, as often as the pool has the
    # pages. Without any page, or once it was given up, it stays closed.
    cdef void grow(self, int64_t rows) noexcept nogil
    # Rows' hashes; an open filter only. One that holds too much gives up.
    cdef void add_all(self, const uint64_t* hashes, int64_t count) noexcept nogil
    # These will be asked for next, no more of them than EXPECTED_ROWS: their words come to the cache.
    cdef void expect(self, const uint64_t* hashes, int64_t count) noexcept nogil
    # False: no row with this hash was added. Always True while it is closed. One that keeps too little out gives up.
    cdef bint may_contain(self, uint64_t hash) noexcept nogil
    # Give the pages back, for good.
    cdef void give_up(self) noexcept nogil
    cdef bint is_given_up(self) noexcept nogil

    cdef bint _begin(self) noexcept nogil
    cdef bint _double(self) noexcept nogil
    cdef uint64_t* _word(self, uint64_t mixed) noexcept nogil
