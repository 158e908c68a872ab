# KeyBytes: the sort keys of one row as bytes whose memcmp order is the order of the rows.
#
#     key 0                                  key 1
#     | marker | ordered value, big endian | marker | ordered value | ...        cut after KEY_BYTES_MAX bytes
#
# The marker (only of columns that may be null) is 0 or 1; a null has nothing behind it. Values of any length are
# escaped: 00 becomes 00 ff, and 00 00 ends the value, so what follows compares only when they are equal. Descending:
# the value's bytes inverted, its end included.

cimport cython
from libc.stdint cimport int32_t, uint8_t

from engine.records.comparator cimport RowComparator

cdef enum:
    KEY_BYTES_MAX = 64

@cython.final
cdef class KeyBytes:
    cdef RowComparator _comparator
    cdef uint8_t* _nullable         # [key columns]

    # Write the row's key to target (KEY_BYTES_MAX bytes of room); returns its size.
    cdef int32_t write(self, const uint8_t* row, uint8_t* target) noexcept nogil
    # < 0, 0, > 0 for the row's key against other bytes.
    cdef int compare(self, const uint8_t* row, const uint8_t* key, int32_t size) noexcept nogil

# < 0, 0, > 0 as bytes compare in Python.
cdef int compare_keys(const uint8_t* left, int32_t left_size, const uint8_t* right, int32_t right_size) noexcept nogil
