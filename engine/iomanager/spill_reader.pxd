# SpillReader: the blocks of a SpillFile, in order, read ahead. Comes from SpillFile.reader(prefetch, place).
#
#     slot 0  the caller's (until its next call)       prefetch + 1 slots, each with memory for one raw block
#     slot 1  read and checked, waiting
#     slot 2  in the directory's request queue: preadv, checks, decompress
#
#     cursor ──► │ header │ payload │ header │ payload │      a call reads a payload and the header behind it
#                         └──── one call ────┘

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.iomanager.block_format cimport BlockHeader
from engine.iomanager.io_buffers cimport IoBuffers
from engine.iomanager.request_queue cimport IoRequest, RequestQueue
from engine.iomanager.spill_file cimport BlockPlace, SpillFile

# Where a reader is in its file; used by one thread, the queue's or the caller's. All that points is the reader's.
cdef struct BlockCursor:
    BlockPlace place                # of the block that is read next
    BlockHeader header              # its header, if has_header
    bint has_header
    const BlockHeader* identity
    const int64_t* first_blocks     # of the extents, and behind them how many blocks there are
    int32_t extent_count
    int64_t length_max              # bytes: a block that says that it has more lies
    void** files                    # OpenFile of each extent; NULL: the reader has left
    void* buffers                   # IoBuffers
    int fault                       # BlockFault of the block at the place, 0 when it is good: nothing behind is read
    int error                       # errno


cdef struct ReadSlot:
    IoRequest request               # first: what the queue knows
    BlockCursor* cursor
    uint8_t* memory                 # NULL until the first block
    int64_t capacity
    int64_t size                    # bytes of the block
    int32_t pending                 # 1 while the request is in a queue
    bint is_bad                     # what is wrong is in the cursor


cdef enum:
    READER_OPEN = 0
    READER_CANCELLED = 1
    READER_CLOSED = 2


@cython.final
cdef class SpillReader:
    cdef readonly int64_t next_index            # of the block that next_block gives
    cdef readonly int64_t end_index             # one behind the last
    cdef SpillFile _file
    cdef object _space
    cdef IoBuffers _buffers
    cdef RequestQueue _queue                    # of the first extent's directory; serves the others too
    cdef BlockCursor _cursor
    cdef ReadSlot* _slots
    cdef int32_t _slot_count
    cdef int64_t _requested_index               # one behind the last block that was asked for
    cdef int32_t _prefetch
    cdef int _state                             # READER_*; cancel may come from any thread

    # 1 with the next block's rows, or 0 at the end. The memory is valid until the next call or close.
    # With or without the GIL. Raises CorruptBlockError naming file and offset, SpillError, TaskCancelledError.
    cdef int next_block(self, const uint8_t** data, int64_t* size) except -1 nogil

    cdef int _request(self, int64_t index) except -1 nogil
    cdef int _refuse(self) except -1
    cdef int _raise_failure(self) except -1
    cdef int _release(self) except -1
