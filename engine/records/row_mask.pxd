# Mask: the rows of a batch that are meant, as bits of words.

cimport cython
from libc.stdint cimport int64_t, uint64_t


@cython.final
cdef class Mask:
    cdef uint64_t* words            # 64 rows each, and one more; bits behind the last row are 0
    cdef readonly int64_t rows, kept

    cdef int _take(self, int64_t rows) except -1
    # For so many rows, its words to be written, and then counted.
    @staticmethod
    cdef Mask unset(int64_t rows)
    # Of all rows.
    @staticmethod
    cdef Mask whole(int64_t rows)
    # The same rows.
    cdef Mask copy(self)
    # Count the rows of words that have been written; bits behind the last row do not matter.
    cdef int count(self) except -1

# A mask of a pyarrow.BooleanArray, where null is false, or the Mask itself.
cdef Mask mask_from(object mask)
# Masks of rows that follow one another.
cdef Mask joined_masks(list masks)
