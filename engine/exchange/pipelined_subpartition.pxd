# PipelinedSubpartition: see pipelined_subpartition.pyx for the mechanism.

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t

from engine.exchange.buffer_pool cimport Buffer
from engine.exchange.monitor cimport Monitor
from engine.exchange.ready_queue cimport ReadyQueue


cdef enum EntryKind:
    ENTRY_BUFFER = 0                # bounded by the producer's pool
    ENTRY_BATCH = 1                 # by reference: bounded by count and bytes here
    ENTRY_END = 2                   # nothing comes after it
    ENTRY_PAGE = 3                  # a buffer of whole rows


cdef struct QueueEntry:
    PyObject* element               # a reference that the queue owns
    int64_t size                    # bytes
    int32_t kind                    # EntryKind


cdef enum QueueState:
    QUEUE_OPEN = 0                  # takes elements
    QUEUE_ENDED = 1                 # end of partition is queued or was read
    QUEUE_FAILED = 2                # the producer failed: reading raises
    QUEUE_RELEASED = 3              # nothing may be written or read


@cython.final
cdef class PipelinedSubpartition:
    cdef readonly int32_t index             # of this subpartition in its result partition
    cdef readonly int32_t batch_count_max
    cdef readonly int64_t batch_bytes_max
    cdef readonly int64_t blocked_ns        # time that add_batch has waited
    cdef readonly bint is_awaited           # add_batch waits now; read by any thread
    cdef Monitor _monitor
    cdef QueueEntry* _entries               # ring, guarded by _monitor like the rest
    cdef int32_t _capacity                  # a power of two
    cdef int32_t _head
    cdef int32_t _count
    cdef int32_t _batch_count               # batches by reference in the ring
    cdef int64_t _batch_bytes
    cdef int32_t _state                     # QueueState
    cdef readonly object error              # the producer's, with QUEUE_FAILED
    cdef ReadyQueue _listener               # the reader's gate, or None
    cdef int32_t _channel

    cdef int append(self, object element, int64_t size, int32_t kind) except -1
    # Returns whether the queue was empty; its listener has not heard.
    cdef bint put_last(self, object element, int64_t size, int32_t kind) except -1
    cdef int wait_for_room(self, int64_t size) except -1
    cdef int drop_all(self, int32_t state) except -1
    cdef int notify_listener(self) except -1
    cdef int raise_state(self, str what) except -1
