"""RecentRows: rows that came before, left out of a build side that is only asked whether a key is there.

    hash of the key ──► place (128 bytes)           equal bytes: this row is there already, it is left out
                        [ the last row of this place ]    others: it takes the place, and stays

Semi and anti joins that build on the right ask a key for nothing but its presence, so one row of each key is enough.
Which rows are equal is not looked up in a table, as there is none before the build side has ended: the rows that came
last are remembered. That finds every repetition of a key that is frequent, whatever the memory is, and it is the
frequent key that hurts: no hash takes its rows apart, so they would be joined in as many passes over the probe file as
there are memories of them.

Rows of equal columns are equal bytes (``records.layout``); a build side of these joins has no other columns than keys,
or it has rows that differ, and they stay. Keys that are equal without equal bytes (0.0 and -0.0) stay, too.

Source: the hashed relation of Spark's left semi join, which ignores a key that it has; the places are those of a
direct-mapped cache.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from engine.records.row_codec cimport row_size

cdef enum:
    PLACES = 1024


@cython.final
cdef class RecentRows:
    """The last rows of one join's build side; the methods are kernels (see the .pxd)."""

    def __cinit__(self):
        self._places = <uint8_t*>calloc(PLACES, RECENT_ROW_BYTES_MAX)
        if self._places == NULL:
            raise MemoryError("recent rows of a join's build side")

    def __dealloc__(self):
        free(self._places)

    cdef int64_t leave_out(self, uint8_t** rows, uint64_t* hashes, int64_t count) noexcept nogil:
        cdef int64_t index, size, kept = 0
        cdef uint8_t* place
        for index in range(count):
            size = row_size(rows[index])
            if size <= RECENT_ROW_BYTES_MAX:
                place = self._places + (hashes[index] & (PLACES - 1)) * RECENT_ROW_BYTES_MAX
                if memcmp(place, rows[index], size) == 0:       # a place begins with the size of its row
                    continue
                memcpy(place, rows[index], size)
            rows[kept] = rows[index]
            hashes[kept] = hashes[index]
            kept += 1
        return kept

    cdef void forget(self) noexcept nogil:
        memset(self._places, 0, PLACES * RECENT_ROW_BYTES_MAX)
