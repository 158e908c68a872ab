# ReplicatedHashes: the hashes of replicated keys, as a set for kernels.

cimport cython
from libc.stdint cimport int64_t, uint64_t


@cython.final
cdef class ReplicatedHashes:
    cdef uint64_t* _cells           # 0: empty
    cdef uint64_t _mask
    cdef bint _has_zero             # whether hash 0 is in the set

    cdef bint contains(self, uint64_t hash) noexcept nogil
