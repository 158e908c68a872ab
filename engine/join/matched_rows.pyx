"""MatchedRows: which probe rows of a file matched in an earlier pass, in file order, in constant memory.

    begin_pass(last) ─► read(before) ─► write(before, matched) for each chunk, in one order in all passes ─► release()

A block-wise join sees every probe row once in each pass; an outer probe row may come out unmatched only when no pass
found a match, and one of a semi join in the first pass that did, so what passes found is carried from one to the next.
The bits lie in a spill file, read along with the probe rows and written anew for the next pass: memory stays constant
however many probe rows there are, at one bit for each row and pass.

    record of a chunk = [ uint64 rows ][ bits, padded to 8 bytes ]          chunks are the same in every pass

Held by: tests/join/test_hash_join_spill.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from engine.join.partition_set cimport CHUNK_ROWS

from engine.errors import CorruptBlockError


@cython.final
cdef class MatchedRows:
    """Bits of one probe file; the methods are for the join (see the .pxd)."""

    def __cinit__(self, space):
        self._space = space
        self._record = <uint8_t*>malloc(8 + CHUNK_ROWS // 8)
        if self._record == NULL:
            raise MemoryError("scratch of a block-wise join")

    def __dealloc__(self):
        free(self._record)

    cdef int begin_pass(self, bint last) except -1:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            self._file.delete()
            self._file = None
        if self._writer is not None:
            self._file = self._writer.finish()
            self._writer = None
            self._reader = self._file.reader()
            self._size = 0
            self._offset = 0
        if not last:
            self._writer = self._space.writer("join-matched")
        return 0

    cdef int read(self, uint8_t* before, int64_t count) except -1:
        cdef int64_t length = 8 + (count + 63) // 64 * 8
        cdef const uint8_t* bits
        cdef int64_t index
        if self._reader is None:
            memset(before, 0, count)
            return 0
        if self._offset == self._size:
            self._offset = 0
            self._size = 0
            with nogil:
                self._reader.next_block(&self._data, &self._size)
        if self._size - self._offset < length or (<uint64_t*>(self._data + self._offset))[0] != <uint64_t>count:
            raise CorruptBlockError("the matched rows of a block-wise join do not fit its probe rows")
        bits = self._data + self._offset + 8
        for index in range(count):
            before[index] = (bits[index >> 3] >> (index & 7)) & 1
        self._offset += length
        return 0

    cdef int write(self, const uint8_t* before, const uint8_t* matched, int64_t count) except -1:
        cdef int64_t length = 8 + (count + 63) // 64 * 8
        cdef int64_t index
        if self._writer is None:
            return 0
        memset(self._record, 0, length)
        (<uint64_t*>self._record)[0] = count
        for index in range(count):
            if before[index] or matched[index]:
                self._record[8 + (index >> 3)] |= 1 << (index & 7)
        with nogil:
            self._writer.write(self._record, length)
        return 0

    cdef int release(self) except -1:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._writer is not None:
            self._file = self._writer.finish()
            self._writer = None
        if self._file is not None:
            self._file.delete()
            self._file = None
        return 0


cdef int recall_matches(ProbeMatches matches, MatchedRows matched, ReplicatedHashes copies,
                        bint has_condition) except -1:
    cdef int64_t index
    if matched is not None:
        matched.read(matches.matched_before, matches.count)
    else:
        memset(matches.matched_before, 0, matches.count)
    if copies is not None:
        with nogil:
            for index in range(matches.count):
                matches.matched_before[index] |= copies.contains(matches.hashes[index])
    if matched is not None and not has_condition:
        matches.mark_matched()
        matched.write(matches.matched_before, matches.matched, matches.count)
    return 0
