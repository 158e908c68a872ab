# DenseTable: build rows by the number that is their key, where the keys lie close together.
#
#     cell of a key      uint32: (row - origin) / 8 of the first row with this key; 0: there is none

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from engine.join.entry_pages cimport EntryPages
from engine.join.direct_pages cimport DirectPages
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch


@cython.final
cdef class DenseTable:
    cdef PagePool _pool
    cdef DirectPages _cells                 # of uint32
    cdef uint64_t _lowest                # words of the keys seen by may_take
    cdef uint64_t _highest
    cdef bint _is_bounded                # rows come after may_take
    cdef uint64_t _origin                # address from which references count
    cdef int64_t _row_count
    cdef bint has_chains                 # links of rows have been written

    cdef bint is_open(self) noexcept nogil
    # Look at rows that are to be inserted. False: their keys (of `rows` rows in all) lie too far apart.
    cdef bint may_take(self, const EntryPages* entries, int64_t rows) noexcept nogil
    # Insert rows that were looked at. STATUS_FULL when the pool has too few pages.
    cdef int open(self) noexcept nogil
    # Insert rows with links of zero; returns how many keys are new, or -1: the rows do not fit, clear() comes next.
    cdef int64_t insert(self, uint8_t** rows, int64_t count) noexcept nogil
    # As TaggedTable.lookup, without hashes.
    cdef void lookup(self, ArrowBatch batch, int64_t start, const int64_t* positions, int64_t count,
                     uint8_t** heads) noexcept nogil
    # Look up in the rows of another one, which must stay as it is until clear().
    cdef int borrow(self, DenseTable owner) except -1
    cdef void clear(self) noexcept nogil

    cdef bint _is_near(self, const EntryPages* entries) noexcept nogil
    cdef void _note_keys(self, uint8_t** rows, int64_t count) noexcept nogil
    cdef uint32_t* _new_page(self, uint64_t number) noexcept nogil
