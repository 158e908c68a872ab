# Buffers and the pools they come from: see buffer_pool.pyx for the mechanism.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.exchange.monitor cimport Monitor
from engine.exchange.waiting_line cimport Waiter
from engine.memory.segment cimport MemorySegment


cdef enum:
    KIND_ROWS = 0                   # whole rows, one after the other
    KIND_FRAGMENT = 1               # a piece of a row larger than a buffer
    KIND_LAST_FRAGMENT = 2          # its last piece
    KIND_BATCH = 3                  # a piece of a RecordBatch as an Arrow IPC stream
    KIND_LAST_BATCH = 4             # its last piece


# Where a buffer's segment goes back to.
cdef class BufferRecycler:
    cdef int give_back(self, MemorySegment segment) except -1


# Part of a segment with rows in it. Owned by one holder, which recycles it exactly once.
@cython.final
cdef class Buffer:
    cdef readonly MemorySegment segment     # None after recycle
    cdef readonly int32_t size              # bytes used, from the segment's start
    cdef readonly int32_t kind              # KIND_*
    cdef BufferRecycler _recycler
    cdef Buffer _whole                      # the buffer that this one is a share of, or None
    cdef int32_t _share_count               # of a whole: shares not yet recycled, itself included (under the GIL)

    cdef int give_back(self) except -1
    cdef Buffer another_share(self)


# A buffer with one owner; the recycler gets the segment back at the end.
cdef Buffer new_buffer(MemorySegment segment, int32_t size, int32_t kind, BufferRecycler recycler)


@cython.final
cdef class NetworkBufferPool:
    cdef readonly int32_t segment_count     # limit of segments in use, unless pools' minima need more
    cdef readonly int32_t segment_size      # bytes
    cdef readonly int32_t allocated_count   # segments that exist
    cdef readonly int32_t peak_count        # most segments in use at a time
    cdef Monitor _monitor
    cdef int32_t _in_use                    # guarded by _monitor, like the counts of the local pools
    cdef int32_t _waiting                   # threads in a request
    cdef Waiter* _waiters                   # the same threads
    cdef bint _closed
    cdef list _free                         # MemorySegment; guarded by the GIL
    cdef list _pools                        # LocalBufferPool, open ones

    cdef MemorySegment next_segment(self)
    cdef bint redistribute(self) except -1
    cdef int release_overdue(self) except -1


@cython.final
cdef class LocalBufferPool(BufferRecycler):
    cdef readonly str owner                 # shown in logs and errors
    cdef readonly int32_t required          # always there for the pool
    cdef readonly int32_t maximum           # never more
    cdef readonly int32_t size              # may be held now, required <= size <= maximum
    cdef readonly int32_t in_use            # held now; above size after the pool shrank
    cdef readonly int32_t peak_count        # most of them at a time
    cdef readonly int64_t blocked_ns        # time that requests have waited
    cdef readonly bint is_closed
    cdef readonly bint is_waiting           # a request waits now
    cdef NetworkBufferPool _network
    cdef object _release_memory             # owner's callback(count), or None

    # A buffer of kind ROWS and size 0, or None when the time has passed. Raises TaskCancelledError after close.
    cdef Buffer take(self, int64_t timeout_ms)
