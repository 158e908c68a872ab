# SideBySide, for kernels that write its columns themselves.

cimport cython


@cython.final
cdef class SideBySide:
    cdef list _names
    cdef list _schemas              # of the batches before
    cdef list places                # of each column: the batch, its column
    cdef object schema              # of the result
    # Find out schema and places, where the schemas are others than before.
    cdef int settle(self, list schemas) except -1
