# FetchedBytes: bytes of a file that were fetched, as kernels read them.

from libc.stdint cimport int64_t, uint8_t

# bytes of a file that are in memory
cdef struct Part:
    int64_t begin, end          # in the file
    const uint8_t* data

cdef struct Parts:
    Part* parts                 # by their places; none of them overlap
    int64_t count


cdef int64_t read_bytes(int descriptor, const Parts* parts, uint8_t* target, int64_t size,
                        int64_t position) noexcept nogil


cdef class FetchedBytes:
    cdef Parts _parts
    cdef list _begins, _found   # begins; (begin, end, bytes, of which the first is this one)
    cdef list _kept             # views of what the parts point to
    cdef const Parts* parts(self)
