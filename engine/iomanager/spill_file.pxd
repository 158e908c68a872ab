# SpillFile: a finished file. Each block says how long it is, so the next one is found behind it:
#
#     │ header │ payload │ header │ payload │ ...      one extent; the next one begins with the block that follows
#              ▲ place of a marked block

cimport cython
from libc.stdint cimport int32_t, int64_t

from engine.iomanager.block_format cimport BlockHeader

cdef struct BlockPlace:
    int64_t sequence            # number of the block in its file
    int64_t offset              # of its header in its extent
    int64_t extent              # number of the extent


@cython.final
cdef class SpillFile:
    cdef readonly str label
    cdef readonly int64_t raw_bytes
    cdef readonly int64_t stored_bytes      # headers included
    cdef readonly int64_t block_count
    cdef readonly bint deleted
    cdef BlockPlace* _marks                 # [_mark_count]
    cdef int64_t _mark_count
    cdef int64_t* _first_blocks             # number of the first block of each extent; behind them block_count
    cdef int32_t _extent_count
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

# A file of the space; first_blocks: of its extents.
cdef SpillFile new_file(
    object space, str label, tuple extents, list first_blocks, const BlockHeader* identity, int64_t block_count,
    int64_t raw_bytes, int64_t stored_bytes
)
