"""ReadyQueue: the channels of an input gate with something to read, one native queue and condition per gate.

    push_channel(index) from producers ─► pop_channel(timeout) in the consumer's thread (waits without the GIL)

Fair: a channel that still has data after it was read is pushed again, behind the others. A channel is queued at most
once. ``wake`` lets a waiting consumer look around without data (a partition was registered), ``close`` ends every wait.

Source: the inputChannelsWithData queue of Flink's SingleInputGate.

Held by: tests/exchange/test_pipelined_subpartition.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from engine.exchange.monitor cimport (
    deadline_ns, monitor_destroy, monitor_init, monitor_lock, monitor_notify, monitor_unlock, monitor_wait,
)

TIMED_OUT = POP_TIMEOUT
CLOSED = POP_CLOSED
WOKEN = POP_WOKEN


@cython.final
cdef class ReadyQueue:
    """Channels with data, in the order in which they got it.

    Args:
        channel_count: channels of the gate, at least 1.
    """

    def __cinit__(self, int32_t channel_count):
        if channel_count < 1:
            raise ValueError(f"a gate has at least one channel, not {channel_count}")
        monitor_init(&self.state.monitor)
        self.state.channel_count = channel_count
        self.state.ring = <int32_t*> calloc(<size_t> channel_count, sizeof(int32_t))
        self.state.queued = <uint8_t*> calloc(<size_t> channel_count, 1)
        if self.state.ring == NULL or self.state.queued == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.state.ring)
        free(self.state.queued)
        monitor_destroy(&self.state.monitor)

    cdef void push(self, int32_t channel) noexcept nogil:
        ready_push(&self.state, channel)

    cdef int reserve(self, int32_t channel_count) except -1:
        cdef int32_t* ring
        cdef uint8_t* queued
        if channel_count <= self.state.channel_count:
            return 0
        ring = <int32_t*> malloc(<size_t> channel_count * sizeof(int32_t))
        queued = <uint8_t*> calloc(<size_t> channel_count, 1)
        if ring == NULL or queued == NULL:
            free(ring)
            free(queued)
            raise MemoryError
        move_channels(&self.state, &ring, &queued, channel_count)
        free(ring)
        free(queued)
        return 0

    @property
    def channel_count(self):
        """Channels that there may be."""
        return self.state.channel_count

    def push_channel(self, int32_t channel):
        """Say that a channel has something to read. Thread: any."""
        if not 0 <= channel < self.state.channel_count:
            raise IndexError(f"channel {channel} of {self.state.channel_count}")
        self.push(channel)

    def pop_channel(self, int64_t timeout_ms=-1):
        """Return the next channel with data, or TIMED_OUT, CLOSED or WOKEN.

        Args:
            timeout_ms: 0 does not wait, negative waits for ever.
        """
        cdef int64_t until_ns
        # At once, and mostly there is one: to give the GIL away and get it back takes longer than to look.
        cdef int32_t channel = ready_pop(&self.state, 0)
        if channel == POP_TIMEOUT and timeout_ms != 0:
            with nogil:
                until_ns = deadline_ns(timeout_ms)
                channel = ready_pop(&self.state, until_ns)
        return channel

    def wake(self):
        """Let the consumer look around: its wait, or the next one, returns WOKEN. Thread: any."""
        monitor_lock(&self.state.monitor)
        self.state.woken = True
        monitor_notify(&self.state.monitor)
        monitor_unlock(&self.state.monitor)

    def close(self):
        """End every wait with CLOSED, now and from now on. Idempotent. Thread: any."""
        monitor_lock(&self.state.monitor)
        self.state.closed = True
        monitor_notify(&self.state.monitor)
        monitor_unlock(&self.state.monitor)


# ------------------------------------------------------------------------------------------------------------ kernels


cdef bint ready_mark(ReadyState* ready, int32_t channel) noexcept nogil:
    cdef bint is_awaited = False
    monitor_lock(&ready.monitor)
    if not ready.queued[channel]:
        ready.queued[channel] = 1
        ready.ring[(ready.head + ready.count) % ready.channel_count] = channel
        ready.count += 1
        is_awaited = ready.is_awaited
    monitor_unlock(&ready.monitor)
    return is_awaited


cdef void ready_push(ReadyState* ready, int32_t channel) noexcept nogil:
    if ready_mark(ready, channel):
        monitor_notify(&ready.monitor)          # unlocked: the consumer that wakes does not wait for the lock


cdef int32_t ready_pop(ReadyState* ready, int64_t until_ns) noexcept nogil:
    cdef int32_t channel = POP_TIMEOUT
    cdef bint is_late = until_ns == 0
    monitor_lock(&ready.monitor)
    while not (ready.closed or ready.woken or ready.count > 0 or is_late):
        ready.is_awaited = True
        is_late = monitor_wait(&ready.monitor, until_ns)
    ready.is_awaited = False
    if ready.closed:
        channel = POP_CLOSED
    elif ready.woken:
        ready.woken = False
        channel = POP_WOKEN
    elif ready.count > 0:
        channel = ready.ring[ready.head]
        ready.head = (ready.head + 1) % ready.channel_count
        ready.count -= 1
        ready.queued[channel] = 0
    monitor_unlock(&ready.monitor)
    return channel


cdef void move_channels(ReadyState* ready, int32_t** ring, uint8_t** queued, int32_t channel_count) noexcept nogil:
    """Exchange the arrays for larger ones, and leave the old ones to the caller."""
    cdef int32_t* old_ring
    cdef uint8_t* old_queued
    cdef int32_t position
    monitor_lock(&ready.monitor)
    for position in range(ready.count):
        ring[0][position] = ready.ring[(ready.head + position) % ready.channel_count]
        queued[0][ring[0][position]] = 1
    old_ring, old_queued = ready.ring, ready.queued
    ready.ring, ready.queued = ring[0], queued[0]
    ready.head = 0
    ready.channel_count = channel_count
    ring[0], queued[0] = old_ring, old_queued
    monitor_unlock(&ready.monitor)
