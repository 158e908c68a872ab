# TextKeyCache: the groups of short texts that came before, found without hash and table.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.arrow_batch cimport ColumnView
from engine.records.short_text cimport ShortText

cdef struct CachedGroup:
    ShortText text
    uint8_t* group

@cython.final
cdef class TextKeyCache:
    cdef CachedGroup* _places       # NULL: keys are not one text
    cdef int32_t _misses        # blocks in a row that had a text which was not here
    cdef int32_t _rest          # blocks that are not looked at

    # Whether all rows are here; their groups then. The column is of keys.
    cdef bint find(self, const ColumnView* column, int64_t start, int64_t count, uint8_t** groups) noexcept nogil
    # Remember the groups of rows.
    cdef void keep(self, const ColumnView* column, int64_t start, int64_t count, uint8_t** groups) noexcept nogil
    # Groups have gone.
    cdef void forget(self) noexcept nogil
