"""SpillFile: a finished file of blocks.

    file = writer.finish()
    with file.reader(prefetch=2) as reader: ...          several readers at a time
    file.reader(2, file.place(mark), block_count)        from a block on that was marked when it was written
    file.delete()                                        or the space's close deletes it
    file.share(count) ... file.release()                 for several owners: deleted when each has released it

There is no index of its blocks: a reader goes from each to the one behind it, whose header it reads with the payload,
in one call. So a file takes the same memory however long it is. A file consists of one extent, or of several when a
disk became full while it was written; readers do not see the difference. Extents are opened when they are read
(``open_files``), by their names: so a file that is deleted is removed when its last reader has left.

Source: Flink's FileIOChannel and BlockChannelReader; marks are ours.

Held by: tests/iomanager/test_spill_round_trip.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from engine.iomanager.block_format cimport BlockHeader

import os
import threading

from engine.errors import SpillError


@cython.final
cdef class SpillFile:

    def __init__(self):
        raise TypeError("a SpillFile comes from SpillWriter.finish()")

    def __dealloc__(self):
        free(self._marks)
        free(self._files)
        free(self._first_blocks)

    cdef int enter(self) except -1:
        with self._lock:
            self._check_there()
            for file, _ in self._extents:
                try:
                    with file:
                        pass
                except OSError as failure:
                    raise SpillError(f"the spill file {file.path} cannot be opened: {failure.strerror}") from failure
            self._reader_count += 1
        return 0

    def _check_there(self):
        if self.deleted:
            raise SpillError(f"the spill file {self.label} has been deleted")

    cdef int leave(self) except -1:
        with self._lock:
            self._reader_count -= 1
        return self._remove_unused()

    cdef int _remove_unused(self) except -1:
        with self._lock:
            if not self.deleted or self._reader_count > 0 or self._is_removed:
                return 0
            self._is_removed = True
        self._space.remove_file(self)
        return 0

    @property
    def paths(self):
        """Paths of the extents, in order; empty when no row was written."""
        return tuple([file.path for file, _ in self._extents])

    @property
    def extents(self):
        """(OpenFile, SpillDirectory) of each extent, in order."""
        return self._extents

    @property
    def file_number(self):
        """The number in the header of this file's blocks."""
        return self._identity.file

    def place(self, int64_t mark):
        """Return (block number, offset, extent) of the block that was the next one when the writer made a mark."""
        if not 0 <= mark < self._mark_count:
            raise IndexError(f"mark {mark} of {self._mark_count} in {self!r}")
        place = self._marks[mark]
        return place.sequence, place.offset, place.extent

    def reader(self, int32_t prefetch=2, place=(0, 0, 0), block_count=None):
        """Return a SpillReader from a place on, over so many blocks (all of them by default).

        Args: prefetch: blocks read ahead, each of which takes memory of one block beside the one in use; with 0 the
            caller's thread reads.
        Raises: SpillError when a file is gone or has been deleted.
        """
        cdef int64_t first_block = place[0]
        cdef int64_t end = self.block_count if block_count is None else first_block + block_count
        if not 0 <= first_block <= end <= self.block_count or prefetch < 0:
            raise ValueError(f"blocks {first_block} to {end} of {self.block_count}, prefetch {prefetch}")
        self._check_there()
        return self._space.open_reader(self, prefetch, place, end)

    def delete(self):
        """Remove the files from disk; idempotent. Readers that are open go on: the last one removes them."""
        self.deleted = True
        self._remove_unused()

    def share(self, int32_t count):
        """Have so many owners, each of which calls ``release`` once."""
        self._owner_count = count

    def release(self):
        """Say that one owner has no use for it any more; the last one's word deletes it."""
        self._owner_count -= 1
        if self._owner_count == 0:
            self.delete()

    def __repr__(self):
        return f"<SpillFile {self.label!r}: {self.block_count} blocks, {self.raw_bytes} bytes>"


cdef SpillFile new_file(
    object space, str label, tuple extents, list first_blocks, const BlockHeader* identity, int64_t block_count,
    int64_t raw_bytes, int64_t stored_bytes
):
    cdef SpillFile file = SpillFile.__new__(SpillFile)
    cdef int32_t extent
    file._first_blocks = <int64_t*> calloc(len(first_blocks) + 1, sizeof(int64_t))
    file._files = <void**> calloc(len(extents) + 1, sizeof(void*))
    if file._first_blocks == NULL or file._files == NULL:
        raise MemoryError(f"no memory for the spill file {label}")
    file._extent_count = <int32_t> len(first_blocks)
    for extent in range(file._extent_count):
        file._first_blocks[extent] = first_blocks[extent]
        file._files[extent] = <void*> (<OpenFile?> extents[extent][0])
    file._first_blocks[file._extent_count] = block_count
    file._space = space
    file.label = label
    file._extents = extents
    file._identity = identity[0]
    file.block_count = block_count
    file.raw_bytes = raw_bytes
    file.stored_bytes = stored_bytes
    file._owner_count = 1
    file._lock = threading.RLock()      # a reader that was not closed leaves when it is collected, wherever that is
    return file
