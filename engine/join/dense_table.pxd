# DenseTable: build rows by the number that is their key, where the keys lie close together (a perfect hash).
#
#     cell of a key      uint32: (row - origin) / 8 of the last row with this key; 0: there is none

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from engine.join.build_table cimport BuildTable
from engine.join.direct_pages cimport DirectPages
from engine.join.entry_pages cimport EntryPages

# Words of keys, and of how many rows; lowest > highest: of none.
cdef struct KeyRange:
    uint64_t lowest
    uint64_t highest
    int64_t rows


@cython.final
cdef class DenseTable(BuildTable):
    cdef DirectPages _cells              # of uint32
    cdef KeyRange _seen                  # of rows as they came
    cdef KeyRange _taken                 # of those that are to be inserted
    cdef int64_t _row_bytes              # of a row with its link, at least
    cdef bint _lacks_room                # reserve was refused for want of pages, with rows spilled already
    cdef bint _is_bounded                # rows come after reserve
    cdef uint64_t _origin                # address from which references count
    cdef bint has_chains                 # links of rows have been written

    # Note the keys of rows that come, while they are in the cache: where reserve is asked for as many rows, it need not
    # walk over them.
    cdef void see(self, uint8_t** rows, int64_t count) noexcept nogil
    cdef void see_all(self, const EntryPages* entries) noexcept nogil
    cdef void forget_seen(self) noexcept nogil
    # After reserve was refused for so many rows, while others are spilled: whether to spill more of them for its sake.
    cdef bint is_worth_spilling_for(self, int64_t rows) noexcept nogil
    # Look at rows that are to be inserted. False: their keys (of `rows` rows in all) lie too far apart.
    cdef bint _may_take(self, const EntryPages* entries, int64_t rows) noexcept nogil
    cdef int _take_pages(self) noexcept nogil
    cdef bint _is_near(self, const EntryPages* entries) noexcept nogil
    cdef uint32_t* _new_page(self, uint64_t number) noexcept nogil
