"""PipelinedSubpartition: a bounded native queue between one producer and one consumer.

    add_buffer(buffer)*  add_batch(batch, bytes)*  ─► finish()        in the producer's thread
    add_pages(queues, [(buffer, index), ...])      to several, whose consumers are woken afterwards
    pass_batch(queues, batch, bytes)               to all of several
                │ ring of references
    attach(ready, channel) ─► poll()* ─► release()                    in the consumer's thread
                              poll_pages(pages, ...)*  pages behind the last element, together

Back pressure has two sources: buffers are bounded by the producer's pool (``add_buffer`` never waits, the producer
waits for its next buffer), batches by reference are bounded here, by count and by bytes (``add_batch`` waits without
the GIL until the consumer has taken one; a batch larger than the bound passes alone).

States     OPEN ─finish─► ENDED       OPEN, ENDED ─fail─► FAILED: data is dropped, poll raises ProducerFailedError
           any ─release─► RELEASED    data is dropped, every call raises PartitionReleasedError, waiters too

Invariants: order is kept; END_OF_PARTITION is the last element and there is one; an element is owned by exactly one of
producer, ring and consumer: a refused one goes back to its pool before the error is raised.

Source: Flink's PipelinedSubpartition and PipelinedSubpartitionView.
"""

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from engine.errors import IllegalTransitionError, PartitionReleasedError, ProducerFailedError
from engine.exchange.buffer_pool cimport Buffer, KIND_ROWS
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.monitor cimport (
    monitor_destroy, monitor_init, monitor_lock, monitor_notify, monitor_unlock, monitor_wait, monotonic_ns,
)
from engine.exchange.ready_queue cimport ReadyQueue, ReadyState, ready_mark

cdef enum:
    ASLEEP_MAX = 64             # consumers that are woken together

cdef int32_t FIRST_CAPACITY = 4


@cython.final
cdef class PipelinedSubpartition:
    """Queue of one consumer of a PIPELINED result partition.

    Args:
        index: position in the result partition.
        batch_count_max: batches by reference that may wait here.
        batch_bytes_max: bytes of them.
    """

    def __cinit__(self, int32_t index, int32_t batch_count_max=4, int64_t batch_bytes_max=4 << 20):
        monitor_init(&self._monitor)
        self.index = index
        self.batch_count_max = batch_count_max
        self.batch_bytes_max = batch_bytes_max
        self._capacity = FIRST_CAPACITY
        self._entries = <QueueEntry*> malloc(<size_t> FIRST_CAPACITY * sizeof(QueueEntry))
        if self._entries == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int32_t position
        if self._entries != NULL:
            for position in range(self._count):
                Py_DECREF(<object> self._entries[(self._head + position) & (self._capacity - 1)].element)
            free(self._entries)
        monitor_destroy(&self._monitor)

    # ------------------------------------------------------------------------------------------------ producer's side

    def add_buffer(self, Buffer buffer not None):
        """Queue a buffer; ownership passes in any case. Never waits. Thread: the producer's.

        Raises:
            PartitionReleasedError, IllegalTransitionError: released, or finished before.
        """
        try:
            self.append(buffer, buffer.size, ENTRY_PAGE if buffer.kind == KIND_ROWS else ENTRY_BUFFER)
        except:
            buffer.give_back()
            raise

    def add_batch(self, object batch not None, int64_t size):
        """Queue a batch by reference; waits (without the GIL) while the queue holds its bound. Thread: the producer's.

        Args:
            size: bytes of the batch.
        """
        self.wait_for_room(size)
        self.append(batch, size, ENTRY_BATCH)

    def finish(self):
        """Queue the end of the partition."""
        self.append(END_OF_PARTITION, 0, ENTRY_END)

    def fail(self, error not None):
        """Drop what is queued; reading raises ProducerFailedError with this cause from now on. Thread: any."""
        if self._state == QUEUE_RELEASED:
            return
        self.error = error
        self.drop_all(QUEUE_FAILED)

    def release(self):
        """Drop what is queued and wake waiters; every later call raises PartitionReleasedError. Idempotent."""
        if self._state != QUEUE_RELEASED:
            self.drop_all(QUEUE_RELEASED)

    cdef int wait_for_room(self, int64_t size) except -1:
        cdef int64_t began_ns
        cdef bint waits
        # With the GIL: mostly there is room, and to give the GIL away and get it back takes longer than to look.
        monitor_lock(&self._monitor)
        waits = must_wait(self, size)
        monitor_unlock(&self._monitor)
        if waits:
            self.is_awaited = True
            with nogil:
                began_ns = monotonic_ns()
                monitor_lock(&self._monitor)
                while must_wait(self, size):
                    monitor_wait(&self._monitor, -1)
                monitor_unlock(&self._monitor)
                self.blocked_ns += monotonic_ns() - began_ns
            self.is_awaited = False
        return 0

    cdef int append(self, object element, int64_t size, int32_t kind) except -1:
        if self.put_last(element, size, kind):
            self.notify_listener()
        return 0

    cdef bint put_last(self, object element, int64_t size, int32_t kind) except -1:
        cdef QueueEntry* spare = NULL
        cdef bint is_open
        cdef bint was_empty
        if self._count == self._capacity:       # only the producer's thread appends: no race with another append
            spare = <QueueEntry*> malloc(2 * <size_t> self._capacity * sizeof(QueueEntry))
            if spare == NULL:
                raise MemoryError
        Py_INCREF(element)
        monitor_lock(&self._monitor)
        is_open = self._state == QUEUE_OPEN
        if is_open:
            if spare != NULL:
                spare = grow_ring(self, spare)
            put(self, <PyObject*> element, size, kind)
        was_empty = self._count == 1
        monitor_unlock(&self._monitor)
        free(spare)
        if not is_open:
            Py_DECREF(element)
            self.raise_state("written")
        return was_empty

    # ------------------------------------------------------------------------------------------------ consumer's side

    def attach(self, ReadyQueue listener not None, int32_t channel):
        """Make a gate's channel the reader; it is pushed now and whenever the empty queue gets something."""
        if self._listener is not None:
            raise IllegalTransitionError(f"subpartition {self.index} has a reader already")
        if not 0 <= channel < listener.state.channel_count:
            raise IndexError(f"channel {channel} of {listener.state.channel_count}")
        self._channel = channel
        self._listener = listener
        self.notify_listener()

    def poll(self):
        """Return (element, more): the next element or None, and whether another one is queued behind it.

        Raises:
            ProducerFailedError: the producer failed.
            PartitionReleasedError: the partition was released.
        """
        cdef PyObject* raw = NULL
        cdef bint has_more
        cdef int32_t state
        monitor_lock(&self._monitor)
        state = self._state
        if self._count > 0 and state <= QUEUE_ENDED:
            raw = take_first(self)
        has_more = self._count > 0
        monitor_unlock(&self._monitor)
        if state > QUEUE_ENDED:
            self.raise_state("read")
        if raw == NULL:
            return None, False
        element = <object> raw
        Py_DECREF(element)                      # the ring's reference
        return element, has_more

    def poll_pages(self, list pages not None, int32_t count_max, int64_t bytes_max):
        """Add pages of rows that are next to a list, without waiting; return their bytes.

        Args:
            pages: their owner from now on; has at most count_max at the end.
            bytes_max: enough, not more than that by one page.
        """
        cdef PyObject* raw
        cdef Buffer page
        cdef int64_t size = 0
        while len(pages) < count_max and size < bytes_max:
            monitor_lock(&self._monitor)
            raw = NULL
            if self._count > 0 and self._state <= QUEUE_ENDED and self._entries[self._head].kind == ENTRY_PAGE:
                raw = take_first(self)
            monitor_unlock(&self._monitor)
            if raw == NULL:
                break
            page = <Buffer> raw
            Py_DECREF(page)                     # the ring's reference
            size += page.size
            pages.append(page)
        return size

    # ---------------------------------------------------------------------------------------------------------- both

    cdef int drop_all(self, int32_t state) except -1:
        cdef list dropped = []
        cdef PyObject* raw
        cdef Buffer buffer
        monitor_lock(&self._monitor)
        self._state = state
        monitor_notify(&self._monitor)
        monitor_unlock(&self._monitor)
        while True:
            monitor_lock(&self._monitor)
            raw = take_first(self) if self._count > 0 else NULL
            monitor_unlock(&self._monitor)
            if raw == NULL:
                break
            dropped.append(<object> raw)
            Py_DECREF(<object> raw)
        for element in dropped:
            if isinstance(element, Buffer):
                buffer = element
                buffer.give_back()
        self.notify_listener()
        return 0

    cdef int notify_listener(self) except -1:
        cdef ReadyState* ready
        if self._listener is not None:
            ready = &self._listener.state
            if ready_mark(ready, self._channel):
                # Without the GIL: the consumer wants it at once, and the system may let it run in place of this thread.
                with nogil:
                    monitor_notify(&ready.monitor)
        return 0

    cdef int raise_state(self, str what) except -1:
        if self._state == QUEUE_FAILED:
            raise ProducerFailedError(
                f"the producer of subpartition {self.index} failed: {type(self.error).__name__}: {self.error}"
            ) from self.error
        if self._state == QUEUE_RELEASED:
            raise PartitionReleasedError(f"subpartition {self.index} was released and cannot be {what}")
        raise IllegalTransitionError(f"subpartition {self.index} is finished and cannot be {what}")

    @property
    def queued_count(self):
        """Elements in the queue, the end event included."""
        return self._count

    @property
    def data_count(self):
        """Buffers and batches in the queue."""
        return self._count - (self._count > 0 and self._state == QUEUE_ENDED)

    @property
    def is_released(self):
        """Whether ``release`` was called."""
        return self._state == QUEUE_RELEASED


def pass_batch(tuple queues not None, object batch not None, int64_t size):
    """Queue a batch by reference in each of several queues; waits as ``add_batch``, for one after the other."""
    cdef PipelinedSubpartition queue
    for queue in queues:
        queue.wait_for_room(size)
        queue.append(batch, size, ENTRY_BATCH)


def add_pages(tuple queues not None, list pages not None):
    """Queue buffers, each (buffer, index of its queue) and taken out of the list, and wake sleeping consumers once.

    Raises: as ``add_buffer``; a buffer that is refused stays in the list, as those behind it do.
    """
    cdef PipelinedSubpartition queue
    cdef Buffer buffer
    cdef ReadyState* asleep[ASLEEP_MAX]
    cdef int32_t asleep_count = 0
    cdef Py_ssize_t taken = 0
    try:
        for buffer, index in pages:
            queue = queues[index]
            if queue.put_last(buffer, buffer.size, ENTRY_PAGE if buffer.kind == KIND_ROWS else ENTRY_BUFFER):
                if queue._listener is not None and ready_mark(&queue._listener.state, queue._channel):
                    asleep[asleep_count] = &queue._listener.state
                    asleep_count += 1
            taken += 1
            if asleep_count == ASLEEP_MAX:
                asleep_count = wake(asleep, asleep_count)
    finally:
        del pages[:taken]
        wake(asleep, asleep_count)


cdef int32_t wake(ReadyState** asleep, int32_t count) except -1:
    """Wake consumers without the GIL, see ``notify_listener``; returns 0."""
    cdef int32_t index
    if count:
        with nogil:
            for index in range(count):
                monitor_notify(&asleep[index].monitor)
    return 0


# ------------------------------------------------------------------------- kernels: called with the monitor held


cdef inline bint must_wait(PipelinedSubpartition queue, int64_t size) noexcept nogil:
    if queue._state != QUEUE_OPEN or queue._batch_count == 0:
        return False
    return queue._batch_count >= queue.batch_count_max or queue._batch_bytes + size > queue.batch_bytes_max


cdef inline void put(PipelinedSubpartition queue, PyObject* element, int64_t size, int32_t kind) noexcept nogil:
    cdef QueueEntry* entry = &queue._entries[(queue._head + queue._count) & (queue._capacity - 1)]
    entry.element = element
    entry.size = size
    entry.kind = kind
    queue._count += 1
    if kind == ENTRY_BATCH:
        queue._batch_count += 1
        queue._batch_bytes += size
    elif kind == ENTRY_END:
        queue._state = QUEUE_ENDED


cdef inline PyObject* take_first(PipelinedSubpartition queue) noexcept nogil:
    cdef QueueEntry* entry = &queue._entries[queue._head]
    queue._head = (queue._head + 1) & (queue._capacity - 1)
    queue._count -= 1
    if entry.kind == ENTRY_BATCH:
        queue._batch_count -= 1
        queue._batch_bytes -= entry.size
        monitor_notify(&queue._monitor)
    return entry.element


cdef QueueEntry* grow_ring(PipelinedSubpartition queue, QueueEntry* larger) noexcept nogil:
    """Move the entries to a ring of twice the size; returns the old one, for the caller to free."""
    cdef QueueEntry* old = queue._entries
    cdef int32_t position
    for position in range(queue._count):
        larger[position] = old[(queue._head + position) & (queue._capacity - 1)]
    queue._entries = larger
    queue._capacity *= 2
    queue._head = 0
    return old
