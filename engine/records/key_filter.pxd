# KeyFilter: which values a key column has, in a few bits for each.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.arrow_batch cimport ArrowBatch, ColumnView
from engine.records.row_mask cimport Mask


@cython.final
cdef class KeyFilter:
    cdef readonly object data_type       # pyarrow.DataType of the keys
    cdef readonly int64_t value_count    # as they came, repeated ones too
    cdef readonly int64_t size_bytes     # of its bits
    cdef readonly bint is_exact          # one bit for each number from the lowest to the highest key
    cdef bytes _format                   # of the keys' type in the Arrow C data interface
    cdef int32_t _kind
    cdef int32_t _width                  # of an integer: bytes; 0: no integer
    cdef uint64_t _sign                  # of an integer: the bit that, turned over, makes words compare as numbers do
    cdef uint64_t _lowest                # such words; lowest > highest: there is no key
    cdef uint64_t _highest
    cdef object _least                   # of other keys with an order: scalars, else None
    cdef object _greatest
    cdef uint8_t* _bits                  # exact: by word - lowest, and one bit more that is never set
    cdef uint64_t* _words                # else a blocked Bloom filter
    cdef int32_t _word_shift             # there are 1 << it of them

    cdef int _find_bounds(self, list arrays) except -1
    cdef int _take_bits(self) except -1
    cdef int _take_words(self, int64_t rows, int64_t bytes_max) except -1
    cdef int _set_numbers(self, object array) except -1
    cdef int _set_hashes(self, object array) except -1
    cdef object _numbers(self)
    cdef uint64_t _word_at(self, object array, int64_t index)
    cdef void _look_up(self, ArrowBatch batch, const ColumnView* column, int64_t count, uint8_t* found) noexcept nogil
    cdef void _look_up_within(self, const ColumnView* column, Mask found, bint are_all) noexcept nogil
    cdef bint _has_place_for_bits(self, int64_t bytes_max) noexcept
    cdef int _merge_bits(self, KeyFilter other) except -1
    cdef int _merge_words(self, KeyFilter other) except -1
