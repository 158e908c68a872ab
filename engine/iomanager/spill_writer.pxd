# SpillWriter: rows in, blocks on disk. Comes from SpillSpace.writer(label, block_size=...).
#
#     write(rows) ─► fill buffer ─(full: cut)─► request queue of the directory ─► thread: compress, CRC32C, pwrite
#
# A block is cut between two calls of write and never inside one, so a caller that passes whole rows finds whole
# rows in every block. A call larger than the block size is a block of its own, written from the caller's memory.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.iomanager.block_format cimport BlockHeader
from engine.iomanager.io_buffers cimport IoBuffers
from engine.iomanager.open_files cimport OpenFile
from engine.iomanager.request_queue cimport IoRequest, RequestQueue
from engine.iomanager.spill_file cimport BlockPlace

cdef struct WriteStream:            # what the I/O thread works on; the task's thread reads `failed` only
    void* owner                     # the SpillWriter, alive until nothing is pending
    void* buffers                   # its IoBuffers
    void* file                      # OpenFile of the current extent, which _extents holds
    void* share                     # its DiskShare, which its directory holds; `position` bytes of it are taken
    int32_t extent                  # number of the current extent, -1 before the first block
    int64_t position                # in bytes, from the start of the current extent
    BlockHeader identity
    int64_t block_count
    BlockPlace* marks               # [mark_count]
    int64_t mark_count
    int64_t mark_capacity
    int64_t stored_bytes            # headers included
    bint compress
    int32_t poor_streak             # KiB that compression did not shrink by a tenth lately, at most 64 of a block
    int failed                      # errno that poisoned the writer, 0 when all is well


@cython.final
cdef class SpillWriter:
    cdef readonly str label
    cdef readonly int64_t raw_bytes         # passed to write
    cdef readonly int64_t blocks_cut        # the index of the block that is being filled
    cdef readonly int64_t block_size        # bytes, before compression
    cdef object _space
    cdef RequestQueue _queue                # of the first extent's directory; None before the first block
    cdef IoBuffers _buffers
    cdef uint8_t* _fill                     # NULL between blocks
    cdef int64_t _fill_size
    cdef WriteStream* _stream
    cdef int32_t* _pending
    cdef object _error                      # what poisoned the writer, set by the I/O thread
    cdef bint _ended
    cdef int32_t _file_number
    cdef list _extents                      # (path, directory) of each, in order
    cdef list _first_blocks                 # number of the first block of each
    cdef int64_t _mark_count
    cdef int32_t _new_marks                 # of the block that is cut next
    cdef BlockPlace* _note                  # where its place is to be written, or NULL
    cdef set _full                          # directories that had no room for a block of this file

    # Append whole rows. With or without the GIL; waits when the disk is behind.
    # Raises what an earlier block met: DiskFullError, SpillError.
    cdef int write(self, const uint8_t* data, int64_t size) except -1 nogil
    # End the current block here, so that the next row begins a new one (its number is blocks_cut).
    cdef int cut(self) except -1 nogil
    # Whether so many bytes would begin a new block.
    cdef inline bint begins_block(self, int64_t size) noexcept nogil:
        return self._fill_size == 0 or self._fill_size + size > self.block_size
    # End the current block and mark the next one; returns the number of the mark, for SpillFile.place.
    cdef int64_t mark(self) except -1 nogil
    # End the current block and have the place of the next one written there, when it is on disk. It is known to the
    # writer's thread after settle, and to the memory passed to write_own; the memory stays until one or the other.
    cdef int note_next(self, BlockPlace* place) except -1 nogil
    # Write a block, after cut or mark, from memory of the IoBuffers (of that capacity), which is given back, also when
    # this raises.
    cdef int write_own(self, uint8_t* data, int64_t size, int64_t capacity) except -1 nogil
    # Wait until nothing is on its way to the disk.
    cdef void settle(self) noexcept nogil

    cdef int _take_buffer(self) except -1 nogil
    cdef int _queue_block(self, uint8_t* data, int64_t size, int64_t capacity) except -1 nogil
    cdef int _open_first(self, int64_t need) noexcept
    cdef int _raise_failure(self) except -1
    cdef int _next_extent(self, int error, int64_t need) noexcept
    cdef void _poison(self, failure) noexcept
    cdef void _fail(self, int error) noexcept
    cdef void _free(self) noexcept
