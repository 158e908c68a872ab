"""KeyPart: which rows of one input a pass over spilled files is for.

    KeyPart(side, level, part, parts)           partition `part` of `parts` that the hash of a level makes
    count = part.choose(rows, count)

A pair of files that needs several passes is joined part by part of its keys: of both files those rows are taken whose
key falls into the part, so that each row is looked up once, and the others cost no more than a hash. Rows of equal keys
are in one part, on both sides.

Kernel only, no Python face. Rows have no null keys, or none that matter: they fall into a part as well.

Held by: tests/join/test_join_passes.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.join_side cimport JoinSide
from engine.records.hashing cimport partition_of_hash

cdef enum:
    CHUNK_ROWS = 512


@cython.final
cdef class KeyPart:
    """One part of the keys, for the rows of one side."""

    def __cinit__(self, JoinSide side not None, int32_t level, int32_t part, int32_t parts):
        self._side = side
        self._level = level
        self._part = part
        self._parts = parts

    cdef int64_t choose(self, uint8_t** rows, int64_t count) noexcept nogil:
        cdef uint64_t hashes[CHUNK_ROWS]
        cdef int64_t begin = 0
        cdef int64_t chosen = 0
        cdef int64_t chunk, index
        if self._parts == 1:
            return count
        while begin < count:
            chunk = min(<int64_t>CHUNK_ROWS, count - begin)
            self._side.hash_rows(rows + begin, chunk, hashes)
            for index in range(chunk):
                if partition_of_hash(hashes[index], self._level, self._parts) == self._part:
                    rows[chosen] = rows[begin + index]
                    chosen += 1
            begin += chunk
        return chosen
