# SpillFile: a finished file. Each block says how long it is, so the next one is found behind it:
#
#     │ header │ payload │ header │ payload │ ...      one extent; the next one begins with the block that follows
#              ▲ place of a marked block

cimport cython
from libc.stdint cimport int32_t, int64_t

from engine.iomanager.block_format cimport BlockHeader
from engine.iomanager.open_files cimport OpenFile

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
    cdef void** _files                      # OpenFile of each extent, which _extents holds
    cdef int32_t _reader_count              # guarded by _lock
    cdef bint _is_removed                   # guarded by _lock
    cdef int32_t _owner_count               # that have not released it
    cdef object _space
    cdef tuple _extents                     # (OpenFile, directory) of each

    # One more reader, until it calls leave: the files stay. Raises SpillError when one cannot be opened.
    cdef int enter(self) except -1
    cdef int leave(self) except -1
    cdef int _remove_unused(self) except -1

# A file of the space; first_blocks: of its extents.
cdef SpillFile new_file(
    object space, str label, tuple extents, list first_blocks, const BlockHeader* identity, int64_t block_count,
    int64_t raw_bytes, int64_t stored_bytes
)
