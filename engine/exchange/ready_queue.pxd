# ReadyQueue: which channels of a gate have something to read; producers push, the consumer's thread waits.
#
#     ring of channel indexes   [ 2 | 0 | . | . ]    a channel stands in it at most once (flags), so it never overflows
#
# push comes from any thread, with or without the GIL; pop from the consumer's. Callers without the GIL use the kernels
# on `state`, and keep the ReadyQueue alive.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.exchange.monitor cimport Monitor


cdef enum PopResult:                # what pop returns when it is not a channel index
    POP_TIMEOUT = -1
    POP_CLOSED = -2
    POP_WOKEN = -3                  # wake() was called: the consumer has to look around


cdef struct ReadyState:
    Monitor monitor
    int32_t channel_count
    int32_t* ring                   # guarded by monitor, like the rest
    uint8_t* queued
    int32_t head
    int32_t count
    bint closed
    bint woken
    bint is_awaited                 # the consumer sleeps


# Queue a channel; ready_mark says whether the consumer sleeps and needs monitor_notify, ready_push wakes it.
cdef bint ready_mark(ReadyState* ready, int32_t channel) noexcept nogil
cdef void ready_push(ReadyState* ready, int32_t channel) noexcept nogil
# A channel or a PopResult; until_ns as in monitor_wait, 0 does not wait.
cdef int32_t ready_pop(ReadyState* ready, int64_t until_ns) noexcept nogil


@cython.final
cdef class ReadyQueue:
    cdef ReadyState state

    cdef void push(self, int32_t channel) noexcept nogil
    # Make room for more channels; those that are queued stay.
    cdef int reserve(self, int32_t channel_count) except -1
