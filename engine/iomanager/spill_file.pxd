# SpillFile: the index of a finished file, in memory: where each block is.

cimport cython
from libc.stdint cimport int32_t, int64_t

from engine.iomanager.block_format cimport BlockHeader

cdef struct BlockEntry:
    int64_t offset              # of the header in its extent
    int64_t stored_length       # payload bytes on disk; less than raw_length exactly when compressed
    int64_t raw_length          # bytes that were written
    int32_t extent              # number of the extent


@cython.final
cdef class SpillFile:
    cdef readonly str label
    cdef readonly int64_t raw_bytes
    cdef readonly int64_t stored_bytes      # headers included
    cdef readonly int64_t block_count
    cdef readonly bint deleted
    cdef BlockEntry* _blocks
    cdef BlockHeader _identity
    cdef object _lock
    cdef int* _fds                          # of each extent, while a reader is open; guarded by _lock
    cdef int32_t _reader_count              # guarded by _lock
    cdef int32_t _owner_count               # that have not released it
    cdef object _space
    cdef tuple _extents                     # (path, directory) of each

    # Descriptors of the extents for one more reader, until it calls leave. Raises SpillError when a file is gone.
    cdef int* enter(self) except NULL
    cdef void leave(self) noexcept
    cdef int _open(self) except -1
    cdef void _close(self, int32_t opened) noexcept

# A file of the space over an index, which becomes the file's.
cdef SpillFile new_file(
    object space, str label, tuple extents, const BlockHeader* identity, BlockEntry* blocks, int64_t block_count,
    int64_t raw_bytes, int64_t stored_bytes
)
