"""NetworkBufferPool, LocalBufferPool and Buffer: the memory in which rows travel, and why a slow consumer slows down.

    NetworkBufferPool(2048, 32768)                   one per TaskExecutor; slabs are mapped when they are first needed
        ├── local_pool("v1-0 output 0", 5, 16) ──► request() ─► Buffer ─► ... ─► buffer.recycle()
        └── local_pool("v2-0 output 0", 5, 16)

    required <= size <= maximum      size: what the pool may hold now; changes whenever pools come and go
    rest = segment_count - sum(required), divided equally among the pools, none beyond its maximum

A local pool is a limit: what it does not use lies in the network pool's free list, so a pool that shrinks gives
back by not taking again. When a pool holds more than its size after shrinking, its owner is told
(``release_memory(count)``) and may spill; a pipelined owner need not do anything, since its consumers give back.

Invariants
    a pool that holds less than ``required`` always gets a segment, if need be beyond ``segment_count`` (others
    hold more than their size at that moment): no job stands still for want of a minimum;
    required is cut to what is left when the pool is opened, but never below 1 (logged): degrade, never fail;
    in_use of the network pool is the sum over the local pools, closed ones with buffers still travelling included;
    a segment is mapped memory as long as it is in use: slabs are unmapped with their last segment.

The network pool is the kind IO of the process's ``Budget``, in accounts of its own: it is divided again whenever pools
come and go, and a buffer travels through queues and sockets without the GIL. Waiting in ``request`` is back pressure,
not a wait for memory. A pool's minimum is its own, so ``request`` waits for the consumer of what the pool has sent and
never for another pool. A thread in a step of the budget sends nothing, so it never waits here.

Locks: the counts of all pools are guarded by one native monitor (held for some instructions); lists of segments by the
GIL. ``request`` waits without the GIL. ``close`` wakes waiters with TaskCancelledError.

Source: Flink's NetworkBufferPool and LocalBufferPool (redistributeBuffers); here without a second free list per pool.
"""

import functools
import logging
from enum import IntEnum

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.closing import close_all
from engine.errors import ConfigurationError, IllegalTransitionError, TaskCancelledError
from engine.exchange.monitor cimport (
    condition_wait, deadline_ns, monitor_destroy, monitor_init, monitor_lock, monitor_unlock, monotonic_ns,
)
from engine.exchange.waiting_line cimport join_line, leave_line, wake_all, wake_first
from engine.memory.segment cimport MemorySegment, wrap_memory

cdef extern from *:
    """
    #include <sys/mman.h>

    #ifndef MADV_POPULATE_WRITE
    #define MADV_POPULATE_WRITE 23
    #endif

    /* Anonymous memory, resident: the first touch of a page costs ten times a warm write. */
    static void* drey_map_network_slab(size_t size)
    {
        void* start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED)
            return NULL;
        madvise(start, size, MADV_POPULATE_WRITE);
        return start;
    }
    """
    void* drey_map_network_slab(size_t size) noexcept nogil
    int munmap(void* start, size_t size) noexcept nogil

LOGGER = logging.getLogger(__name__)

cdef int32_t SLAB_BYTES = 1 << 20

#: a thread that waits for a buffer looks at least so often, and more rarely the more of them there are
cdef int64_t LOOK_NS = 10000000
cdef int32_t LOOKERS = 8


class BufferKind(IntEnum):
    """The content of a buffer."""

    ROWS = KIND_ROWS
    FRAGMENT = KIND_FRAGMENT
    LAST_FRAGMENT = KIND_LAST_FRAGMENT
    BATCH = KIND_BATCH
    LAST_BATCH = KIND_LAST_BATCH


# ------------------------------------------------------------------------------------------------------------ buffers


cdef class BufferRecycler:
    cdef int give_back(self, MemorySegment segment) except -1:
        raise NotImplementedError


@cython.final
cdef class Buffer:
    """A used part of a segment. Its holder calls ``recycle`` exactly once, or passes it on."""

    def __init__(self):
        raise TypeError("buffers come from a pool's request()")

    cdef int give_back(self) except -1:
        cdef Buffer whole = self if self._whole is None else self._whole
        cdef MemorySegment segment
        if self.segment is None:
            raise IllegalTransitionError("a buffer was recycled twice")
        segment = self.segment
        self.segment = None
        whole._share_count -= 1
        if whole._share_count == 0:
            whole._recycler.give_back(segment)
        return 0

    cdef Buffer another_share(self):
        cdef Buffer whole = self if self._whole is None else self._whole
        cdef Buffer share = new_buffer(self.segment, self.size, self.kind, None)
        share._whole = whole
        whole._share_count += 1
        return share

    def recycle(self):
        """Give the buffer back; the segment returns to its pool with the last share.

        Raises:
            IllegalTransitionError: this buffer was recycled before.
        """
        self.give_back()

    def share(self):
        """Return another buffer over the same bytes, recycled on its own. The bytes are read-only from now on."""
        if self.segment is None:
            raise IllegalTransitionError("a recycled buffer cannot be shared")
        return self.another_share()

    def fill(self, const uint8_t[::1] content not None, int32_t kind=KIND_ROWS):
        """Copy bytes to the start of the segment and set size and kind; content: at most len(segment) bytes."""
        if self.segment is None:
            raise IllegalTransitionError("a recycled buffer cannot be filled")
        self.segment.put_bytes(0, content)
        self.size = <int32_t> content.shape[0]
        self.kind = kind

    @property
    def is_recycled(self):
        """Whether ``recycle`` was called."""
        return self.segment is None

    def to_bytes(self):
        """Return a copy of the bytes used."""
        if self.segment is None:
            raise IllegalTransitionError("a recycled buffer cannot be read")
        return self.segment.get_bytes(0, self.size)

    def __len__(self):
        return self.size

    def __repr__(self):
        state = " recycled" if self.segment is None else ""
        return f"<Buffer {BufferKind(self.kind).name} {self.size} bytes{state}>"


cdef Buffer new_buffer(MemorySegment segment, int32_t size, int32_t kind, BufferRecycler recycler):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.segment = segment
    buffer.size = size
    buffer.kind = kind
    buffer._recycler = recycler
    buffer._share_count = 1
    return buffer


@cython.final
cdef class UnpooledRecycler(BufferRecycler):
    """Takes segments that belong to no pool; their memory goes with the last reference."""

    cdef int give_back(self, MemorySegment segment) except -1:
        return 0


cdef UnpooledRecycler UNPOOLED = UnpooledRecycler()


def unpooled_buffer(const uint8_t[::1] content not None, int32_t kind=KIND_ROWS):
    """Return a buffer with memory of its own that holds a copy of content (at least one byte)."""
    cdef MemorySegment segment = MemorySegment(content.shape[0])
    segment.put_bytes(0, content)
    return new_buffer(segment, <int32_t> content.shape[0], kind, UNPOOLED)


# --------------------------------------------------------------------------------------------------------------- slabs


@cython.final
cdef class NetworkSlab:
    """Mapped memory that several segments lie in; unmapped when the last of them is gone."""

    cdef uint8_t* start
    cdef size_t byte_count

    def __cinit__(self, size_t byte_count):
        self.start = <uint8_t*> drey_map_network_slab(byte_count)
        if self.start == NULL:
            raise MemoryError(f"the operating system refuses {byte_count} bytes for network buffers")
        self.byte_count = byte_count

    def __dealloc__(self):
        if self.start != NULL:
            munmap(self.start, self.byte_count)


# --------------------------------------------------------------------------------------------------------------- pools


@cython.final
cdef class NetworkBufferPool:
    """All network buffers of a process.

    Args:
        segment_count: limit of segments in use, 1 or more.
        segment_size: bytes, a multiple of 64 and at least 512.
    """

    def __cinit__(self, int32_t segment_count, int32_t segment_size=32768):
        monitor_init(&self._monitor)
        if segment_count < 1:
            raise ConfigurationError(f"a network pool of {segment_count} buffers: at least 1 is needed")
        if segment_size < 512 or segment_size % 64:
            raise ConfigurationError(f"network buffers of {segment_size} bytes: a multiple of 64, at least 512")
        self.segment_count = segment_count
        self.segment_size = segment_size
        self._free = []
        self._pools = []

    def __dealloc__(self):
        monitor_destroy(&self._monitor)

    def local_pool(self, int32_t required, int32_t maximum, str owner=""):
        """Open a local pool and divide the rest of the segments anew.

        Args:
            required: segments that it gets in any case, 1 or more; cut to what is left (logged).
            maximum: segments to hold at most, at least ``required``.
            owner: name for logs and errors.
        """
        cdef LocalBufferPool pool
        cdef LocalBufferPool other
        cdef int32_t left = self.segment_count
        if required < 1 or maximum < required:
            raise ConfigurationError(f"a pool of {required} to {maximum} buffers for {owner!r}")
        if self._closed:
            raise TaskCancelledError(f"the network pool is closed: no buffers for {owner!r}")
        for other in self._pools:
            left -= other.required
        if required > left:
            LOGGER.info("network pool of %d buffers: %r wants %d, %d are left, it gets %d",
                        self.segment_count, owner, required, max(left, 0), max(left, 1))
            required = max(left, 1)
        pool = LocalBufferPool.__new__(LocalBufferPool)
        pool.owner = owner
        pool.required = required
        pool.maximum = maximum
        pool._network = self
        self._pools.append(pool)
        self.redistribute()
        try:
            self.release_overdue()
        except BaseException:       # no other code has the pool yet to close it
            pool.close()
            raise
        return pool

    cdef bint redistribute(self) except -1:
        """Divide the rest of the segments equally among the open pools, none beyond its maximum."""
        cdef list growing = sorted(self._pools, key=pool_growth)
        cdef list sizes = []
        cdef int32_t rest = self.segment_count
        cdef int32_t index, extra
        cdef LocalBufferPool pool
        for pool in growing:
            rest -= pool.required
        rest = max(rest, 0)
        for index in range(len(growing)):           # the one that can take least first: the others have its rest
            pool = growing[index]
            extra = min(pool.maximum - pool.required, rest // (<int32_t> len(growing) - index))
            rest -= extra
            sizes.append(pool.required + extra)
        monitor_lock(&self._monitor)
        for index in range(len(growing)):
            (<LocalBufferPool> growing[index]).size = sizes[index]
        wake_all(self._waiters)
        monitor_unlock(&self._monitor)
        return True

    cdef int release_overdue(self) except -1:
        """Tell owners of pools that hold more than their size. Called without locks: owners may write to disk."""
        cdef LocalBufferPool pool
        overdue = []
        for pool in list(self._pools):
            if pool.in_use > pool.size and pool._release_memory is not None:
                overdue.append(functools.partial(pool._release_memory, pool.in_use - pool.size))
        close_all(overdue)
        return 0

    cdef MemorySegment next_segment(self):
        """Return a segment off the free list; caller has counted it."""
        cdef int32_t count, index
        cdef NetworkSlab slab
        cdef uint8_t* start
        if not self._free:
            count = max(1, min(SLAB_BYTES // self.segment_size, self.segment_count - self.allocated_count))
            slab = NetworkSlab(<size_t> count * self.segment_size)
            for index in range(count - 1, -1, -1):
                start = slab.start + <int64_t> index * self.segment_size
                self._free.append(wrap_memory(start, self.segment_size, slab))
            self.allocated_count += count
        return self._free.pop()

    @property
    def in_use(self):
        """Segments held by owners of buffers now."""
        return self._in_use

    @property
    def pools(self):
        """Open local pools."""
        return tuple(self._pools)

    def close(self):
        """Close all local pools, wake their waiters and drop the free segments. Idempotent.

        Buffers that are still out keep their memory until they are recycled or dropped; they are logged as a leak.
        """
        cdef LocalBufferPool pool
        if self._closed:
            return
        self._closed = True
        for pool in list(self._pools):
            pool.close()
        self._free.clear()
        if self._in_use > 0:
            LOGGER.error("network pool closed with %d buffers not recycled", self._in_use)

    def __repr__(self):
        return (f"<NetworkBufferPool {self._in_use} of {self.segment_count} segments of {self.segment_size} bytes in "
                f"use, {len(self._pools)} pools>")


def pool_growth(LocalBufferPool pool not None):
    """Return the number of segments beyond its minimum a pool may hold."""
    return pool.maximum - pool.required


@cython.final
cdef class LocalBufferPool(BufferRecycler):
    """The segments that one result partition or input gate may hold; from ``NetworkBufferPool.local_pool``."""

    def __init__(self):
        raise TypeError("local pools come from NetworkBufferPool.local_pool()")

    cdef Buffer take(self, int64_t timeout_ms):
        cdef NetworkBufferPool network = self._network
        cdef int64_t until_ns, began_ns
        cdef bint is_reserved
        cdef MemorySegment segment
        monitor_lock(&network._monitor)
        is_reserved = reserve_segment(network, self)
        monitor_unlock(&network._monitor)
        if not is_reserved and not self.is_closed and timeout_ms != 0:
            with nogil:
                began_ns = monotonic_ns()
                until_ns = deadline_ns(timeout_ms)
                is_reserved = wait_for_segment(network, self, until_ns)
                self.blocked_ns += monotonic_ns() - began_ns
        if not is_reserved:
            if self.is_closed:
                raise TaskCancelledError(f"the buffer pool of {self.owner!r} is closed")
            return None
        try:
            segment = network.next_segment()
        except MemoryError:
            uncount(network, self)
            raise
        return new_buffer(segment, 0, KIND_ROWS, self)

    cdef int give_back(self, MemorySegment segment) except -1:
        if not self._network._closed:
            self._network._free.append(segment)
        else:
            self._network.allocated_count -= 1
        uncount(self._network, self)
        return 0

    def request(self, int64_t timeout_ms=-1):
        """Return a buffer, or None when none came free in time.

        Args:
            timeout_ms: 0 does not wait, negative waits for ever. Waits without the GIL.

        Raises:
            TaskCancelledError: the pool is or was closed.
        """
        return self.take(timeout_ms)

    def set_required(self, int32_t required):
        """Change the guaranteed minimum: 0 for an owner that only keeps finished data. The rest is divided anew."""
        if not 0 <= required <= self.maximum:
            raise ConfigurationError(f"{required} of {self.maximum} buffers required by {self.owner!r}")
        self.required = required
        if not self.is_closed:
            self._network.redistribute()

    def set_owner(self, release_memory):
        """Set what to call with a count of segments when the pool holds more than its size (None: nothing)."""
        self._release_memory = release_memory

    @property
    def segment_size(self):
        """Bytes of a buffer."""
        return self._network.segment_size

    @property
    def available(self):
        """Segments that may be requested before the size is reached."""
        return max(self.size - self.in_use, 0)

    def close(self):
        """Hold no more and wake waiters with TaskCancelledError. Idempotent; buffers out may still come."""
        cdef NetworkBufferPool network = self._network
        if self.is_closed:
            return
        self._release_memory = None
        monitor_lock(&network._monitor)
        self.is_closed = True
        self.required = 0
        self.size = 0
        wake_all(network._waiters)
        monitor_unlock(&network._monitor)
        network._pools.remove(self)
        network.redistribute()

    def __repr__(self):
        return f"<LocalBufferPool {self.owner!r} {self.in_use} in use, {self.required}..{self.size}..{self.maximum}>"


cdef inline bint reserve_segment(NetworkBufferPool network, LocalBufferPool pool) noexcept nogil:
    """Count one segment for the pool if it may have one. Called with the monitor held."""
    if pool.is_closed:
        return False
    if pool.in_use < pool.required or (pool.in_use < pool.size and network._in_use < network.segment_count):
        pool.in_use += 1
        if pool.in_use > pool.peak_count:
            pool.peak_count = pool.in_use
        network._in_use += 1
        if network._in_use > network.peak_count:
            network.peak_count = network._in_use
        return True
    return False


cdef bint wait_for_segment(NetworkBufferPool network, LocalBufferPool pool, int64_t until_ns) noexcept nogil:
    cdef Waiter waiter
    cdef bint is_reserved = False
    cdef bint is_late = False
    cdef int64_t look_ns
    monitor_lock(&network._monitor)
    join_line(&network._waiters, &waiter, &pool.in_use, &pool.size)
    network._waiting += 1
    pool.is_waiting = True
    while True:
        is_reserved = reserve_segment(network, pool)
        if is_reserved or is_late or pool.is_closed:
            break
        waiter.is_woken = False
        look_ns = monotonic_ns() + LOOK_NS * (1 + network._waiting // LOOKERS)
        if until_ns >= 0 and until_ns < look_ns:
            is_late = condition_wait(&waiter.condition, &network._monitor, until_ns)
        else:
            condition_wait(&waiter.condition, &network._monitor, look_ns)
    pool.is_waiting = False
    network._waiting -= 1
    leave_line(&network._waiters, &waiter)
    monitor_unlock(&network._monitor)
    return is_reserved


cdef void uncount(NetworkBufferPool network, LocalBufferPool pool) noexcept nogil:
    """Take a segment back, and wake a thread that may have it now: the first of those that wait for any segment.

    A producer at the end of its pool is woken once a quarter of it is free, not for every buffer: it would take one,
    fill it and wait again. It looks by itself after LOOK_NS, since the rest may stay with a consumer for long.
    """
    cdef bint own_may
    monitor_lock(&network._monitor)
    own_may = network._in_use >= network.segment_count
    pool.in_use -= 1
    network._in_use -= 1
    own_may = own_may or pool.in_use <= pool.size - pool.size // 4
    if network._in_use < network.segment_count:
        wake_first(network._waiters, &pool.in_use, own_may)
    monitor_unlock(&network._monitor)
