"""ReplicatedHashes: the hashes of replicated keys (``replicated_keys.py``), as a set that kernels ask without the GIL.

    ReplicatedHashes(hashes) ─► contains(hash)        open addressing, at most half full

A row of a copied key counts as one that has already matched: a copied build row carries the matched bit from the moment
it is in the table, a copied probe row the flag of an earlier pass. So it joins, and is never returned for its own sake.

Limits: heavy keys are few; the set has no way to grow. Immutable, may be read from any thread.

Held by: tests/join/test_join_condition.py
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free


@cython.final
cdef class ReplicatedHashes:
    """A set of 64-bit hashes."""

    def __cinit__(self, hashes):
        cdef uint64_t hash, index
        cdef uint64_t capacity = 8
        while capacity < 2 * <uint64_t>len(hashes):
            capacity *= 2
        self._mask = capacity - 1
        self._cells = <uint64_t*>calloc(capacity, sizeof(uint64_t))
        if self._cells == NULL:
            raise MemoryError("hashes of replicated keys")
        for hash in hashes:
            if hash == 0:
                self._has_zero = True
                continue
            index = hash & self._mask
            while self._cells[index] != 0 and self._cells[index] != hash:
                index = (index + 1) & self._mask
            self._cells[index] = hash

    def __dealloc__(self):
        free(self._cells)

    cdef bint contains(self, uint64_t hash) noexcept nogil:
        cdef uint64_t index = hash & self._mask
        if hash == 0:
            return self._has_zero
        while self._cells[index] != 0:
            if self._cells[index] == hash:
                return True
            index = (index + 1) & self._mask
        return False
