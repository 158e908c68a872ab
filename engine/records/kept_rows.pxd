# A mask of rows, for kernels elsewhere.

cimport cython
from libc.stdint cimport int64_t, uint64_t


@cython.final
cdef class Mask:
    cdef uint64_t* words            # 64 rows each; bits behind the last row are 0
    cdef readonly int64_t rows, kept
    cdef object array(self)
