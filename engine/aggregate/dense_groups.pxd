# DenseGroups: the groups of keys that have few values, found by their numbers.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t

from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch, ColumnView

cdef enum:
    NO_NUMBERS = -1             # of find(): rows are to be looked for in the table

# How values of one key column become numbers from 0 to capacity - 1. 0: null.
cdef struct KeyNumbers:
    bint is_text            # comes as codes of a dictionary
    bint is_bool            # else integers, dates and the like
    bint is_unsigned
    bint is_known           # integers: some value has been seen
    uint64_t lowest         # integers: of what has been seen
    uint64_t highest
    uint64_t base           # the integer whose number is 1
    int64_t capacity
    int64_t stride          # between neighbouring numbers of this column in the number of a row
    int64_t text_count      # texts: how many have a number
    int32_t* by_code        # and the numbers of the codes of the current dictionary
    uintptr_t[3] buffers    # of the current dictionary, which is kept
    int64_t first           # its first text in them
    int64_t code_count      # how many there are; -1: there is none

@cython.final
cdef class DenseGroups:
    cdef PagePool _pool
    cdef int32_t _key_count         # 0: keys have no numbers
    cdef bint has_texts             # some key is a text
    cdef KeyNumbers* _keys
    cdef list _texts                # for each key column, None: those that have numbers, in their order from 1 on
    cdef list _dictionaries         # and the current dictionary
    cdef uint8_t** _groups          # by number of a row, NULL: not known. NULL: none are laid out
    cdef int64_t _size              # of them, in bytes
    cdef uint32_t* numbers          # of the rows looked for last
    cdef bint are_numbered          # and whether there are any
    cdef int32_t _misses            # blocks in a row with hardly a known group
    cdef int32_t _rest              # blocks that are not looked at
    cdef int32_t _last_rest         # and how many there were after the last misses
    cdef bint _have_moved           # whether groups were laid out since then
    cdef int64_t layouts            # how often they were laid out

    # All numbers are below.
    cdef inline int64_t number_count(self) noexcept nogil:
        return self._size // 8

    # The key columns of a batch, by their places in it, with codes in place of texts; None: they have no numbers, rows
    # are to be looked for in the table.
    cdef ArrowBatch open(self, object batch, list places)
    # The groups of rows, and the rows of which none is known: how many, or NO_NUMBERS. keys: of open().
    cdef int64_t find(self, ArrowBatch keys, int64_t start, int64_t count, uint8_t** groups,
                      int32_t* missing) noexcept nogil
    # Remember the groups of the rows that were looked for last, as far as they have some.
    cdef void keep(self, int64_t count, uint8_t** groups) noexcept nogil
    # Groups have gone.
    cdef void forget(self) noexcept nogil
    # Groups have gone, and what lies in the pool is given back.
    cdef void release(self) noexcept nogil

    cdef bint _has_codes(self, int32_t column, object batch, int32_t place)
    cdef bint _learn_texts(self, int32_t column, object dictionary)
    cdef int _take_codes(self, int32_t column, object found) except -1
    cdef int64_t numbers_max(self) noexcept nogil
    cdef void _rest_after_misses(self) noexcept nogil
    cdef bint _number(self, ArrowBatch keys, int64_t start, int64_t count) noexcept nogil
    cdef bint _widen(self, ArrowBatch keys, int64_t start, int64_t count) noexcept nogil
    cdef bint _lay_out(self) noexcept nogil
