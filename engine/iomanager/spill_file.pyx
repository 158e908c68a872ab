"""SpillFile: a finished file of blocks and its index.

    file = writer.finish()
    with file.reader(prefetch=2) as reader: ...          several readers at a time, which share its descriptors
    file.read_block(index)                               one block, read now
    file.delete()                                        or the space's close deletes it
    file.share(count) ... file.release()                 for several owners: deleted when each has released it

The index (32 bytes for each block) stays in memory: a reader knows where each block is and how long, so it reads a
block with one call and refuses one that is not the expected. A file consists of one extent, or of several when a disk
became full while it was written; readers do not see the difference. Its descriptors are open while a reader is.

Source: Flink's FileIOChannel and BlockChannelReader; the index is ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from engine.iomanager.block_format cimport BLOCK_HEADER_BYTES, BlockHeader

import os
import threading

from engine.errors import SpillError


@cython.final
cdef class SpillFile:

    def __init__(self):
        raise TypeError("a SpillFile comes from SpillWriter.finish()")

    def __dealloc__(self):
        free(self._blocks)

    cdef int* enter(self) except NULL:
        with self._lock:
            if self._reader_count == 0:
                self._open()
            self._reader_count += 1
        return self._fds

    cdef int _open(self) except -1:
        cdef int32_t opened = 0
        self._fds = <int*> calloc(len(self._extents) + 1, sizeof(int))
        if self._fds == NULL:
            raise MemoryError(f"no memory for a reader of {self.label}")
        try:
            for path, _ in self._extents:
                self._fds[opened] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                opened += 1
        except OSError as failure:
            self._close(opened)
            raise SpillError(f"the spill file {path} cannot be opened: {failure.strerror}") from failure
        return 0

    cdef void leave(self) noexcept:
        with self._lock:
            self._reader_count -= 1
            if self._reader_count == 0:
                self._close(<int32_t> len(self._extents))

    cdef void _close(self, int32_t opened) noexcept:
        cdef int32_t extent
        for extent in range(opened):
            os.close(self._fds[extent])
        free(self._fds)
        self._fds = NULL

    @property
    def paths(self):
        """Paths of the extents, in order; empty when no row was written."""
        return tuple([path for path, _ in self._extents])

    @property
    def extents(self):
        """(path, SpillDirectory) of each extent, in order."""
        return self._extents

    @property
    def file_number(self):
        """The number in the header of this file's blocks."""
        return self._identity.file

    def block_sizes(self, int64_t first_block=0, count=None):
        """Return the raw lengths of blocks (all of them by default), for whoever keeps an index of ranges."""
        cdef int64_t end = self.block_count if count is None else first_block + count
        if not 0 <= first_block <= end <= self.block_count:
            raise IndexError(f"blocks {first_block} to {end} of {self.block_count}")
        return [self._blocks[index].raw_length for index in range(first_block, end)]

    def block_place(self, int64_t index):
        """Return (path, offset, bytes on disk with header) of a block."""
        if not 0 <= index < self.block_count:
            raise IndexError(f"block {index} of {self.block_count}")
        entry = self._blocks[index]
        return self._extents[entry.extent][0], entry.offset, entry.stored_length + BLOCK_HEADER_BYTES

    def reader(self, int32_t prefetch=2, int64_t first_block=0, block_count=None):
        """Return a SpillReader over a range of blocks (all of them by default).

        Args: prefetch: blocks read ahead, each of which takes memory of one block beside the one in use; with 0 the
            caller's thread reads.
        Raises: SpillError when a file is gone or has been deleted.
        """
        cdef int64_t end = self.block_count if block_count is None else first_block + block_count
        if not 0 <= first_block <= end <= self.block_count or prefetch < 0:
            raise ValueError(f"blocks {first_block} to {end} of {self.block_count}, prefetch {prefetch}")
        if self.deleted:
            raise SpillError(f"the spill file {self.label} has been deleted")
        return self._space.open_reader(self, prefetch, first_block, end)

    def read_block(self, int64_t index):
        """Return the rows of one block. Raises: CorruptBlockError, SpillError, IndexError."""
        if not 0 <= index < self.block_count:
            raise IndexError(f"block {index} of {self.block_count}")
        with self.reader(0, index, 1) as reader:
            return reader.read_block(index)

    def delete(self):
        """Remove the files from disk; idempotent. Readers that are open go on."""
        if not self.deleted:
            self.deleted = True
            self._space.remove_file(self)

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
    object space, str label, tuple extents, const BlockHeader* identity, BlockEntry* blocks, int64_t block_count,
    int64_t raw_bytes, int64_t stored_bytes
):
    cdef SpillFile file = SpillFile.__new__(SpillFile)
    file._space = space
    file.label = label
    file._extents = extents
    file._identity = identity[0]
    file._blocks = blocks
    file.block_count = block_count
    file.raw_bytes = raw_bytes
    file.stored_bytes = stored_bytes
    file._owner_count = 1
    file._lock = threading.RLock()      # a reader that nobody closed leaves when it is collected, wherever that is
    return file
