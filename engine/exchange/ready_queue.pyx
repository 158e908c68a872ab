"""Which channels of an input gate have something to read: one native queue and condition per gate.

    push_channel(index) from producers ─► pop_channel(timeout) in the consumer's thread (waits without the GIL)

Fair: a channel that still has data after it was read is pushed again, behind the others. A channel is queued at most
once. ``wake`` lets a waiting consumer look around without data (a partition was registered), ``close`` ends every wait.

Source: the inputChannelsWithData queue of Flink's SingleInputGate.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

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
        self.channel_count = channel_count
        monitor_init(&self._monitor)
        self._ring = <int32_t*> calloc(<size_t> channel_count, sizeof(int32_t))
        self._queued = <uint8_t*> calloc(<size_t> channel_count, 1)
        if self._ring == NULL or self._queued == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._ring)
        free(self._queued)
        monitor_destroy(&self._monitor)

    cdef void push(self, int32_t channel) noexcept nogil:
        monitor_lock(&self._monitor)
        if not self._queued[channel]:
            self._queued[channel] = 1
            self._ring[(self._head + self._count) % self.channel_count] = channel
            self._count += 1
            monitor_notify(&self._monitor)
        monitor_unlock(&self._monitor)

    cdef int32_t pop(self, int64_t until_ns) noexcept nogil:
        cdef int32_t channel = POP_TIMEOUT
        cdef bint is_late = False
        monitor_lock(&self._monitor)
        while not (self._closed or self._woken or self._count > 0 or is_late):
            is_late = monitor_wait(&self._monitor, until_ns)
        if self._closed:
            channel = POP_CLOSED
        elif self._woken:
            self._woken = False
            channel = POP_WOKEN
        elif self._count > 0:
            channel = self._ring[self._head]
            self._head = (self._head + 1) % self.channel_count
            self._count -= 1
            self._queued[channel] = 0
        monitor_unlock(&self._monitor)
        return channel

    def push_channel(self, int32_t channel):
        """Say that a channel has something to read. Thread: any."""
        if not 0 <= channel < self.channel_count:
            raise IndexError(f"channel {channel} of {self.channel_count}")
        self.push(channel)

    def pop_channel(self, int64_t timeout_ms=-1):
        """Return the next channel with data, or TIMED_OUT, CLOSED or WOKEN.

        Args:
            timeout_ms: 0 does not wait, negative waits for ever.
        """
        cdef int64_t until_ns = deadline_ns(timeout_ms)
        cdef int32_t channel
        with nogil:
            channel = self.pop(until_ns)
        return channel

    def wake(self):
        """Let the consumer look around: its wait, or the next one, returns WOKEN. Thread: any."""
        monitor_lock(&self._monitor)
        self._woken = True
        monitor_notify(&self._monitor)
        monitor_unlock(&self._monitor)

    def close(self):
        """End every wait with CLOSED, now and from now on. Idempotent. Thread: any."""
        monitor_lock(&self._monitor)
        self._closed = True
        monitor_notify(&self._monitor)
        monitor_unlock(&self._monitor)
