# ReadyQueue: which channels of a gate have something to read; producers push, the consumer's thread waits.
#
#     ring of channel indexes   [ 2 | 0 | . | . ]    a channel stands in it at most once (flags), so it never overflows
#
# push comes from any thread, with or without the GIL; pop from the consumer's.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.exchange.monitor cimport Monitor


cdef enum PopResult:                # what pop returns when it is not a channel index
    POP_TIMEOUT = -1
    POP_CLOSED = -2
    POP_WOKEN = -3                  # wake() was called: somebody wants the consumer to look around


@cython.final
cdef class ReadyQueue:
    cdef readonly int32_t channel_count
    cdef Monitor _monitor
    cdef int32_t* _ring             # guarded by _monitor, like the rest
    cdef uint8_t* _queued
    cdef int32_t _head
    cdef int32_t _count
    cdef bint _closed
    cdef bint _woken

    cdef void push(self, int32_t channel) noexcept nogil
    cdef int32_t pop(self, int64_t until_ns) noexcept nogil
