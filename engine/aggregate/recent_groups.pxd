# RecentGroups: the groups of short texts that came before, found without hash and table.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.arrow_batch cimport ColumnView

cdef struct RecentGroup:
    uint64_t first              # the text's first and last bytes, which overlap or meet: all of it
    uint64_t last
    uint64_t size               # of the text, and 1: 0 is an empty place
    uint8_t* group

@cython.final
cdef class RecentGroups:
    cdef RecentGroup* _places       # NULL: keys are not one text
    cdef int32_t _misses        # blocks in a row that had a text which was not here
    cdef int32_t _rest          # blocks that are not looked at

    # Whether all rows are here; their groups then. The column is of keys.
    cdef bint find(self, const ColumnView* column, int64_t start, int64_t count, uint8_t** groups) noexcept nogil
    # Remember the groups of rows.
    cdef void keep(self, const ColumnView* column, int64_t start, int64_t count, uint8_t** groups) noexcept nogil
    # Groups have gone.
    cdef void forget(self) noexcept nogil
