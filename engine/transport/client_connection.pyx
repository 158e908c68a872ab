"""ClientConnection and ReceiverChannel: the consumers' end of the one connection to another TaskManager.

    connection = ClientConnection(descriptor, peer, tls)  an authenticated socket, whose owner closes it at the end
    read_loop(), write_loop()                           each in a thread of its own, until the connection ends
    channel = connection.open_channel(ready, index, pool, exclusive, identity)
    channel.request(payload) ─► poll()* ─► release()    in the consumer's thread
    connection.shut_down(reason)                        from any thread

    reader   header ─► channel ─► a free buffer of it ─► payload received into it ─► filled ─► gate's ready queue
    writer   channels with unannounced credit ─► AddCredit, as many as there are with one call

Both loops run without the GIL; bytes of data are touched by the kernel and the checksum only. A buffer goes
free ─► in flight ─► filled ─► consumer ─► free again (exclusive ones, or while there is backlog) or back to the pool.

The rings of a channel always have room for all of its buffers and the end, so the reader allocates nothing. A frame for
a channel that was released meanwhile is received and thrown away. A channel's number is used again when its last frame
has come.

Locks: one per connection for channels and credits, held for some instructions; another one to send.

Source: Flink's CreditBasedPartitionRequestClientHandler.

Held by: tests/transport/test_remote_channels.py
"""

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.errno cimport errno
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

from engine.exchange.buffer_pool cimport Buffer, BufferRecycler, LocalBufferPool, new_buffer
from engine.transport.credit cimport (
    CREDIT_OK, CreditStatus, credit_text, receiver_add_buffer, receiver_begin, receiver_free, receiver_is_due,
    receiver_wanted,
)
from engine.transport.frames cimport (
    FRAME_AVAILABLE, FRAME_CANCEL_REQUEST, FRAME_PARTITION_REQUEST, FrameHeader, begin_frame, seal_frame, wire_text,
)
from engine.exchange.monitor cimport monitor_destroy, monitor_init, monitor_lock, monitor_unlock
from engine.exchange.ready_queue cimport ReadyQueue
from engine.transport.receiving cimport (
    CHANNELS_MAX, CHANNEL_ENDED, CHANNEL_IDLE, CHANNEL_READING, CHANNEL_RELEASED, READ_BROKEN, READ_CONTROL,
    READ_CREDIT, READ_ORPHAN, SCRATCH_BYTES, ReadOutcome, ReceiverSlot, ReceiverState, ReceiverTable, read_frames,
    ring_move, ring_put, ring_take, send_sealed, write_credits,
)
from engine.transport.wire cimport WIRE_OK, TlsSession, WireStatus, begin_wire
from engine.memory.segment cimport MemorySegment, allocate_segment

from engine.errors import TaskCancelledError

cdef extern from "<sys/socket.h>" nogil:
    int c_shutdown "shutdown"(int descriptor, int how)
    int SHUT_RDWR

@cython.final
cdef class ReceiverChannel(BufferRecycler):
    """One subpartition that comes from the other process; from ``ClientConnection.open_channel``."""

    cdef ReceiverState _state
    cdef ClientConnection _connection
    cdef LocalBufferPool _pool
    cdef ReadyQueue _ready
    cdef readonly uint32_t number           # in the connection
    cdef int32_t _buffer_count              # segments of this channel, wherever they are
    cdef list _own_segments                 # not from the pool, which had none
    #: error of the channel: (code, text) of an ErrorResponse, or (-1, text) for a broken connection
    cdef readonly object error
    cdef readonly bint is_available         # the producer said that what was not found is there now

    def __init__(self):
        raise TypeError("channels come from ClientConnection.open_channel()")

    def __dealloc__(self):
        free(self._state.unused.slots)
        free(self._state.filled.slots)

    def request(self, const uint8_t[::1] payload not None):
        """Ask for the data, with all free buffers as initial credit. Again after it was not found.

        Not at the same time as ``release``.
        """
        cdef FrameHeader header
        cdef int32_t credit
        self.is_available = False
        monitor_lock(&self._connection._table.lock)
        if self._state.phase == CHANNEL_ENDED:
            self._state.phase = CHANNEL_IDLE
        monitor_unlock(&self._connection._table.lock)
        if self._state.phase != CHANNEL_IDLE or self._connection.broken is not None:
            return
        self.error = None
        self._take_exclusive()
        monitor_lock(&self._connection._table.lock)
        credit = self._state.unused.count
        receiver_begin(&self._state.credit, credit, self._state.credit.exclusive)
        self._state.phase = CHANNEL_READING
        self._state.has_last_frame = False
        monitor_unlock(&self._connection._table.lock)
        begin_frame(&header, FRAME_PARTITION_REQUEST, self.number, <uint32_t> payload.shape[0])
        header.amount = <uint32_t> credit
        self._connection.send_frame(&header, &payload[0])

    def poll(self):
        """Return (buffer, kind, more): the next data, or (None, -1, False), or at the end (None, 5, False)."""
        cdef ReceiverSlot slot
        cdef bint is_filled, has_more
        cdef MemorySegment segment
        monitor_lock(&self._connection._table.lock)
        is_filled = self._state.filled.count > 0
        if is_filled:
            slot = ring_take(&self._state.filled)
        has_more = self._state.filled.count > 0 or self._state.phase == CHANNEL_ENDED   # the end, or an error
        monitor_unlock(&self._connection._table.lock)
        self.top_up()
        if not is_filled:
            return None, -1, False
        if slot.segment == NULL:
            return None, slot.kind, False
        segment = <MemorySegment> slot.segment
        Py_DECREF(segment)
        return new_buffer(segment, slot.size, slot.kind, self), slot.kind, has_more

    def release(self):
        """Return all buffers and tell the producer that its reader is gone. Idempotent. Thread: any."""
        cdef ReceiverSlot slot
        cdef FrameHeader header
        cdef int32_t phase
        monitor_lock(&self._connection._table.lock)
        phase = self._state.phase
        self._state.phase = CHANNEL_RELEASED
        if phase <= CHANNEL_ENDED and phase != CHANNEL_READING:
            self._state.has_last_frame = True
        monitor_unlock(&self._connection._table.lock)
        while True:
            monitor_lock(&self._connection._table.lock)
            slot.segment = NULL
            if self._state.unused.count > 0:
                slot = ring_take(&self._state.unused)
            elif self._state.filled.count > 0:
                slot = ring_take(&self._state.filled)
                if slot.segment == NULL:            # the end
                    monitor_unlock(&self._connection._table.lock)
                    continue
            monitor_unlock(&self._connection._table.lock)
            if slot.segment == NULL:
                break
            self.give_up(slot.segment)
        if phase == CHANNEL_READING:
            begin_frame(&header, FRAME_CANCEL_REQUEST, self.number, 0)
            self._connection.send_frame(&header, NULL)

    @property
    def buffer_count(self):
        """Segments that belong to the channel now, those with the consumer included."""
        return self._buffer_count

    # ------------------------------------------------------------------------------------------------------- buffers

    cdef int give_back(self, MemorySegment segment) except -1:
        """A buffer was recycled by the consumer: it waits for data again, or goes to the pool."""
        cdef bint is_kept
        monitor_lock(&self._connection._table.lock)
        is_kept = (self._state.phase == CHANNEL_READING
                   and receiver_free(&self._state.credit) < self._state.credit.exclusive)
        monitor_unlock(&self._connection._table.lock)
        Py_INCREF(segment)
        if is_kept:
            self.add_free(segment)
        else:
            self.give_up(<PyObject*> segment)
            self.top_up()
        return 0

    cdef int give_up(self, PyObject* raw) except -1:
        """Give a segment, and the reference to it, back to where it came from."""
        cdef MemorySegment segment = <MemorySegment> raw
        Py_DECREF(segment)
        self._buffer_count -= 1
        for position, own in enumerate(self._own_segments):
            if own is segment:
                del self._own_segments[position]
                return 0
        self._pool.give_back(segment)
        return 0

    cdef int add_free(self, MemorySegment segment) except -1:
        """Queue a segment for data; its reference belongs to the slot from now on."""
        cdef ReceiverSlot slot
        cdef bint is_due = False
        cdef bint is_taken
        slot.segment = <PyObject*> segment
        slot.data = segment.data
        slot.capacity = segment.size
        slot.size = 0
        slot.kind = 0
        monitor_lock(&self._connection._table.lock)
        is_taken = self._state.phase <= CHANNEL_READING
        if is_taken:
            ring_put(&self._state.unused, slot)
            receiver_add_buffer(&self._state.credit)
            is_due = self._state.phase == CHANNEL_READING and receiver_is_due(&self._state.credit)
        monitor_unlock(&self._connection._table.lock)
        if not is_taken:
            self.give_up(<PyObject*> segment)
        elif is_due:
            self._connection._outgoing.push(<int32_t> self.number)
        return 0

    cdef int top_up(self) except -1:
        """Take floating buffers while the sender has more than there are buffers for."""
        cdef int32_t wanted
        while True:
            monitor_lock(&self._connection._table.lock)
            wanted = receiver_wanted(&self._state.credit) if self._state.phase == CHANNEL_READING else 0
            monitor_unlock(&self._connection._table.lock)
            if wanted == 0 or not self.take_one():
                return 0

    cdef bint take_one(self) except -1:
        cdef Buffer buffer
        try:
            buffer = self._pool.take(0)
        except TaskCancelledError:
            return False
        if buffer is None:
            return False
        self.adopt(buffer.segment)
        return True

    cdef int adopt(self, MemorySegment segment) except -1:
        grow_ring(self, self._buffer_count + 2)
        self._buffer_count += 1
        Py_INCREF(segment)
        self.add_free(segment)
        return 0

    cdef int _take_exclusive(self) except -1:
        """Take the exclusive buffers, fewer when the pool has none, but one always."""
        cdef MemorySegment segment
        while self._state.unused.count < self._state.credit.exclusive and self.take_one():
            pass
        if self._state.unused.count == 0:
            segment = allocate_segment(self._pool.segment_size)
            self._own_segments.append(segment)
            self.adopt(segment)
        return 0


@cython.final
cdef class ClientConnection:
    """Args: descriptor: of a connected socket, not closed here; peer: for messages; tls: None: plain."""

    cdef readonly str peer
    #: error that ended the connection, or None
    cdef readonly object broken
    cdef ReceiverTable _table
    cdef TlsSession _tls                    # what the table's wire points to
    cdef list _channels                     # ReceiverChannel or None, keeps the states alive
    cdef ReadyQueue _outgoing               # channels with credit to announce

    def __cinit__(self, int descriptor, str peer not None, TlsSession tls=None):
        monitor_init(&self._table.lock)
        monitor_init(&self._table.send_lock)
        self.peer = peer
        self._tls = tls
        begin_wire(&self._table.wire, descriptor, tls)
        self._channels = []
        self._table.orphan = -1
        self._outgoing = ReadyQueue(16)
        self._table.outgoing = &self._outgoing.state
        self._table.scratch = <uint8_t*> malloc(SCRATCH_BYTES)
        if self._table.scratch == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._table.scratch)
        free(self._table.states)
        monitor_destroy(&self._table.lock)
        monitor_destroy(&self._table.send_lock)

    def open_channel(
        self, ReadyQueue ready not None, int32_t ready_channel, LocalBufferPool pool not None, int32_t exclusive,
        uint64_t identity
    ):
        """Return a channel that pushes ``ready_channel`` to ``ready`` when there is something to poll."""
        cdef ReceiverChannel channel = ReceiverChannel.__new__(ReceiverChannel)
        cdef int32_t number
        channel._connection = self
        channel._pool = pool
        channel._ready = ready
        channel._own_segments = []
        channel._state.ready = &ready.state
        channel._state.ready_channel = ready_channel
        channel._state.identity = identity
        channel._state.credit.exclusive = exclusive
        number = self._free_number()
        channel.number = <uint32_t> number
        self._channels[number] = channel
        grow_ring(channel, exclusive + 2)
        monitor_lock(&self._table.lock)
        self._table.states[number] = &channel._state
        monitor_unlock(&self._table.lock)
        if self.broken is not None:
            channel.error = (-1, self.broken)
        return channel

    def read_loop(self):
        """Receive until the connection ends; then every channel has an error."""
        cdef ReadOutcome outcome
        cdef WireStatus wire = WIRE_OK
        cdef CreditStatus credit = CREDIT_OK
        while True:
            with nogil:
                outcome = read_frames(&self._table, &wire, &credit)
            if outcome == READ_CONTROL:
                self._on_control()
            elif outcome == READ_ORPHAN:
                self._return_orphan()
            else:
                break
        self._return_orphan()
        if outcome == READ_BROKEN:
            text = wire_text(wire, self._table.error_number)
        elif outcome == READ_CREDIT:
            text = f"channel {self._table.header.channel}: {credit_text(credit)}"
        else:
            text = f"{self._table.header.size} bytes that channel {self._table.header.channel} has not asked for"
        self.shut_down(text)

    def write_loop(self):
        """Announce credits until the connection ends."""
        cdef WireStatus status
        with nogil:
            status = write_credits(&self._table)
        if status != WIRE_OK:
            self.shut_down(wire_text(status, self._table.error_number))

    def shut_down(self, str reason not None):
        """End both loops and give every channel that reads an error. Idempotent. Thread: any."""
        cdef ReceiverChannel channel
        cdef bint is_reading
        if self.broken is not None:
            return
        self.broken = reason
        c_shutdown(self._table.wire.descriptor, SHUT_RDWR)
        self._outgoing.close()
        for channel in list(self._channels):
            if channel is None:
                continue
            monitor_lock(&self._table.lock)
            is_reading = channel._state.phase <= CHANNEL_READING
            if is_reading:
                channel._state.phase = CHANNEL_ENDED
            monitor_unlock(&self._table.lock)
            if is_reading:
                channel.error = (-1, reason)
                channel._ready.push(channel._state.ready_channel)
                channel._ready.wake()

    def forget_descriptor(self):
        """Announce that the socket is about to be closed: nothing is sent any more. After both loops have ended."""
        with nogil:
            monitor_lock(&self._table.send_lock)
            self._table.wire.descriptor = -1
            monitor_unlock(&self._table.send_lock)

    # ------------------------------------------------------------------------------------------------------- private

    cdef int send_frame(self, FrameHeader* header, const uint8_t* payload) except -1:
        """Send one frame; a broken connection is the reader's to report."""
        cdef WireStatus status
        with nogil:
            seal_frame(header, payload)
            status = send_sealed(&self._table, header, payload)
        if status != WIRE_OK:
            self.shut_down(wire_text(status, errno))
        return 0

    cdef int32_t _free_number(self) except -1:
        """Return a channel number that is not in use, and forget channels that are through."""
        cdef ReceiverState** states
        cdef int32_t number, capacity
        cdef bint is_through
        for number in range(<int32_t> len(self._channels)):
            if self._channels[number] is not None:
                monitor_lock(&self._table.lock)
                is_through = is_state_through(self._table.states[number])
                if is_through:
                    self._table.states[number] = NULL
                monitor_unlock(&self._table.lock)
                if not is_through:
                    continue
                self._channels[number] = None
            return number
        number = <int32_t> len(self._channels)
        if number == CHANNELS_MAX:
            raise OverflowError(f"more than {CHANNELS_MAX} channels of one connection")
        if number >= self._table.capacity:
            capacity = max(16, 2 * self._table.capacity)
            self._outgoing.reserve(capacity)
            monitor_lock(&self._table.lock)
            states = <ReceiverState**> realloc(self._table.states, <size_t> capacity * sizeof(void*))
            if states != NULL:
                self._table.states = states
                while self._table.capacity < capacity:      # a peer may name any of them
                    states[self._table.capacity] = NULL
                    self._table.capacity += 1
            monitor_unlock(&self._table.lock)
            if states == NULL:
                raise MemoryError
        self._channels.append(None)
        return number

    cdef int _on_control(self) except -1:
        """Handle an ErrorResponse or PartitionAvailable, whose payload is in the scratch area."""
        cdef ReceiverChannel channel = None
        cdef int32_t phase
        if self._table.header.channel < <uint32_t> len(self._channels):
            channel = self._channels[self._table.header.channel]
        if channel is None:
            return 0
        if self._table.header.type == FRAME_AVAILABLE:
            channel.is_available = True
            channel._ready.wake()
            return 0
        text = self._table.scratch[:self._table.header.size].decode(errors="replace")
        channel.error = (self._table.header.kind, text)
        monitor_lock(&self._table.lock)
        phase = channel._state.phase
        if phase == CHANNEL_READING:
            channel._state.phase = CHANNEL_ENDED
        channel._state.has_last_frame = True
        monitor_unlock(&self._table.lock)
        if phase == CHANNEL_READING:
            channel._ready.push(channel._state.ready_channel)
            channel._ready.wake()
        return 0

    cdef int _return_orphan(self) except -1:
        """Give the buffer back that was in flight for a channel that was released meanwhile."""
        cdef ReceiverChannel channel
        cdef PyObject* segment
        if self._table.orphan < 0:
            return 0
        channel = self._channels[self._table.orphan]
        self._table.orphan = -1
        monitor_lock(&self._table.lock)
        segment = channel._state.in_flight.segment
        channel._state.is_receiving = False
        monitor_unlock(&self._table.lock)
        channel.give_up(segment)
        return 0


cdef inline bint is_state_through(const ReceiverState* state) noexcept nogil:
    return state.phase == CHANNEL_RELEASED and state.has_last_frame and not state.is_receiving


cdef int grow_ring(ReceiverChannel channel, int32_t wanted) except -1:
    """Make both rings of a channel that large."""
    cdef ReceiverSlot* unused
    cdef ReceiverSlot* filled
    cdef int32_t capacity = max(wanted, 2 * channel._state.filled.capacity)
    if wanted <= channel._state.filled.capacity:
        return 0
    unused = <ReceiverSlot*> calloc(<size_t> capacity, sizeof(ReceiverSlot))
    filled = <ReceiverSlot*> calloc(<size_t> capacity, sizeof(ReceiverSlot))
    if unused == NULL or filled == NULL:
        free(unused)
        free(filled)
        raise MemoryError
    monitor_lock(&channel._connection._table.lock)
    unused = ring_move(&channel._state.unused, unused, capacity)
    filled = ring_move(&channel._state.filled, filled, capacity)
    monitor_unlock(&channel._connection._table.lock)
    free(unused)
    free(filled)
    return 0
