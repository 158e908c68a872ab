# TaggedTable: a directory of tagged pointers over rows that lie in pages.
#
#     cell = 63..48 tag (low 16 bits of the hash)   47..0 row pointer        0: empty
#     the directory is an array of pages of cells; linear probing runs over page ends and wraps at the end

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.join.build_table cimport BuildTable
from engine.records.comparator cimport KeyEquality

cdef enum:
    LOOKUP_BLOCK = 1024         # rows looked up at one time: their prefetched lines stay in the cache

cdef extern from *:
    """
    #define DREY_CELL_POINTER 0x0000FFFFFFFFFFFFULL
    #define DREY_SCALE(hash, cells) ((((hash) >> 32) * (uint64_t)(cells)) >> 32)
    """
    const uint64_t CELL_POINTER "DREY_CELL_POINTER"
    uint64_t scale "DREY_SCALE" (uint64_t hash, uint64_t cells) noexcept nogil


@cython.final
cdef class TaggedTable(BuildTable):
    cdef KeyEquality _build_equality     # build rows among themselves
    cdef KeyEquality _probe_equality     # probe batch with build rows
    cdef bint _hash_is_key               # equal hashes are equal keys
    cdef uint64_t** _pages
    cdef int64_t _page_count
    cdef bint _is_borrowed               # the pages are another table's
    cdef int32_t _page_shift
    cdef uint64_t _page_mask
    cdef uint64_t _cell_count
    cdef int64_t* _positions             # scratch of one lookup block
    cdef int64_t* _batch_rows
    cdef uint64_t* _cursors
    cdef uint8_t** _candidates
    cdef uint8_t* _flags

    # Pages of a directory for that many rows: at the least, and for quick probing.
    cdef int64_t pages_needed(self, int64_t rows) noexcept nogil
    cdef int64_t pages_wanted(self, int64_t rows) noexcept nogil

    cdef int64_t _next_block(self, const int64_t* positions, int64_t* begin, int64_t count,
                             const uint64_t* hashes) noexcept nogil
    cdef uint64_t* _cell(self, uint64_t index) noexcept nogil
    cdef uint64_t _next(self, uint64_t index) noexcept nogil
    cdef void _insert_row(self, uint8_t* row, uint64_t hash) noexcept nogil
    cdef int64_t _candidates_of(self, int64_t start, int64_t pending, const uint64_t* hashes,
                                uint8_t** heads) noexcept nogil
    cdef int64_t _accept(self, int64_t count, uint8_t** heads) noexcept nogil
