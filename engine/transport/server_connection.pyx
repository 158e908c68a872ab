"""ServerConnection: the producers' end of a connection from another TaskManager, for all channels that it reads.

    connection = ServerConnection(descriptor, peer, source, tls)   an authenticated socket, closed by its owner
    read_loop(), write_loop()                                   each in a thread of its own, until the connection ends
    connection.shut_down(reason)                                from any thread

    reader   PartitionRequest ─► source.open_view() ─► SenderChannel;  AddCredit ─► credit ─► ready;  Cancel ─► ready
    writer   ready channel ─► view.poll() while there is credit ─► frames ─► one call to the system ─► buffers recycled

A channel is ready when its view has something or it got credit. Each has a turn of some frames, then the next one has.
The element after the last frame is fetched already: so it is known whether it is the end, which needs no credit, and
otherwise, without credit, the backlog is announced.

Row pages travel as they lie in their buffer. A RecordBatch passed by reference becomes an Arrow IPC stream
(``source.batch_bytes``), cut into pieces of the receiver's buffers.

No view waits for a disk here: files are read elsewhere (read_ahead), and the channel is ready when something came.

The writer takes the GIL once for some thirty frames, to fetch and to recycle; checksums and sending run without it. It
alone uses the views, and releases them all at its end. Source: Flink's PartitionRequestQueue.

Held by: tests/transport/test_stalled_peers.py
"""

cimport cython
from libc.errno cimport errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from posix.uio cimport iovec

from engine.exchange.buffer_pool cimport Buffer
from engine.transport.credit cimport (
    CREDIT_MAX, CREDIT_OK, CreditStatus, SenderCredit, credit_text, sender_add_credit, sender_announces, sender_begin,
    sender_may_send, sender_next,
)
from engine.transport.frames cimport (
    DATA_BATCH, DATA_END, DATA_LAST_BATCH, FRAME_ADD_CREDIT, FRAME_AVAILABLE, FRAME_BACKLOG_ANNOUNCEMENT,
    FRAME_BUFFER_RESPONSE, FRAME_CANCEL_REQUEST, FRAME_CLOSE_REQUEST, FRAME_CONTROL_BYTES_MAX, FRAME_ERROR_RESPONSE,
    FRAME_HEADER_BYTES, FRAME_PARTITION_REQUEST, FrameHeader, begin_frame, check_payload, receive_header, seal_frame,
    wire_text,
)
from engine.exchange.monitor cimport Monitor, monitor_destroy, monitor_init, monitor_lock, monitor_unlock
from engine.exchange.ready_queue cimport POP_CLOSED, ReadyQueue, ReadyState, ready_pop, ready_push
from engine.transport.wire cimport (
    WIRE_CLOSED, WIRE_OK, WIRE_TOO_LARGE, TlsSession, Wire, WireStatus, begin_wire, receive_bytes, send_parts,
)

from engine.exchange.elements import END_OF_PARTITION

cdef extern from "<sys/socket.h>" nogil:
    int c_shutdown "shutdown"(int descriptor, int how)
    int SHUT_RDWR

cdef enum:
    FRAMES_AT_ONCE = 32             # of one call to the system
    FRAMES_PER_TURN = 8             # of one channel before the next has its turn
    CHANNELS_MAX = 1 << 16
    CODE_CANCELLED = 1              # of an ErrorResponse that answers a CancelPartitionRequest


cdef struct SenderEntry:
    SenderCredit credit
    bint is_open


cdef struct OutFrames:
    FrameHeader[FRAMES_AT_ONCE] headers
    const uint8_t* payloads[FRAMES_AT_ONCE]
    int32_t count


@cython.final
cdef class SenderChannel:
    """One subpartition that the peer reads."""

    cdef object view                # SubpartitionView, None until it is open
    cdef object pending             # Buffer, bytes of a batch or END_OF_PARTITION; None: nothing was fetched
    cdef const uint8_t[::1] content # of the batch
    cdef int64_t offset             # of the next piece in it
    cdef uint64_t identity
    cdef int32_t buffer_size        # of the receiver
    cdef bint is_cancelled


@cython.final
cdef class ServerConnection:
    """Args: descriptor: of a connected socket, not closed here; peer: its name; source: opens views, names errors;
    tls: None: plain.
    """

    cdef readonly str peer
    #: error that ended the connection, or None
    cdef readonly object broken
    cdef object _source
    cdef Wire _wire
    cdef TlsSession _tls                    # what the wire points to
    cdef Monitor _lock
    cdef Monitor _send_lock
    cdef SenderEntry* _entries              # [_capacity], by channel number; guarded by _lock
    cdef int32_t _capacity
    cdef list _channels                     # SenderChannel or None
    cdef ReadyQueue _ready
    cdef set _available                     # numbers of requests whose partition is there now, to be sent
    cdef OutFrames _out                     # the writer's, like the next two
    cdef list _owners                       # of the payloads in _out
    cdef list _ended                        # channels whose end is in _out
    cdef uint8_t* _scratch                  # payload of control frames
    cdef FrameHeader _header                # the reader's
    cdef int32_t _error_number

    def __cinit__(self, int descriptor, str peer not None, source not None, TlsSession tls=None):
        monitor_init(&self._lock)
        monitor_init(&self._send_lock)
        self.peer = peer
        self._source = source
        self._tls = tls
        begin_wire(&self._wire, descriptor, tls)
        self._channels = []
        self._owners = []
        self._ended = []
        self._ready = ReadyQueue(16)
        self._available = set()
        self._scratch = <uint8_t*> malloc(FRAME_CONTROL_BYTES_MAX)
        if self._scratch == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._entries)
        free(self._scratch)
        monitor_destroy(&self._lock)
        monitor_destroy(&self._send_lock)

    @property
    def channel_count(self):
        """Channels that are being read."""
        return sum([channel is not None for channel in self._channels])

    def shut_down(self, str reason not None):
        """End both loops. Idempotent. Thread: any."""
        if self.broken is None:
            self.broken = reason
            c_shutdown(self._wire.descriptor, SHUT_RDWR)
            self._ready.close()

    def forget_descriptor(self):
        """Announce that the socket is about to be closed: nothing is sent any more. After both loops have ended."""
        with nogil:
            monitor_lock(&self._send_lock)
            self._wire.descriptor = -1
            monitor_unlock(&self._send_lock)

    def announce_available(self, uint32_t number):
        """Make the writer report that a missing partition exists now: no other reader waits. Thread: any."""
        self._available.add(number)
        self._ready.push(<int32_t> number)

    # -------------------------------------------------------------------------------------------------------- reading

    def read_loop(self):
        """Handle requests until the connection ends."""
        cdef ReadyState* ready = &self._ready.state
        cdef WireStatus wire = WIRE_OK
        cdef CreditStatus credit = CREDIT_OK
        while True:
            with nogil:
                wire = read_requests(self, ready, &credit)
            if wire != WIRE_OK or credit != CREDIT_OK:
                break
            if self._header.type == FRAME_PARTITION_REQUEST:
                if not self._open(<int32_t> self._header.channel):
                    break
            elif self._header.type == FRAME_CANCEL_REQUEST:
                self._cancel(self._header.channel)
            elif self._header.type == FRAME_CLOSE_REQUEST:
                wire = WIRE_CLOSED
                break
        self.shut_down(wire_text(wire, self._error_number) if wire != WIRE_OK else
                       credit_text(credit) if credit != CREDIT_OK else "a request that does not fit")

    cdef bint _open(self, int32_t number) except -1:
        """Begin to send a subpartition; False when the request breaks the rules."""
        cdef SenderChannel channel
        if self._header.channel >= CHANNELS_MAX or self._header.amount == 0 or self._header.amount > CREDIT_MAX:
            return False
        self._reserve(number + 1)
        if self._channels[number] is not None:
            return False
        channel = SenderChannel.__new__(SenderChannel)
        self._channels[number] = channel
        monitor_lock(&self._lock)
        sender_begin(&self._entries[number].credit, <int32_t> self._header.amount)
        self._entries[number].is_open = True
        monitor_unlock(&self._lock)
        payload = self._scratch[:self._header.size]
        try:
            view, channel.identity, channel.buffer_size = self._source.open_view(payload, self, self._ready, number)
        except Exception as error:
            self._forget(number)
            self._send_error(number, error)
            return True
        channel.view = view
        self._ready.push(number)
        return True

    cdef int _cancel(self, uint32_t number) except -1:
        cdef SenderChannel channel = None
        if number < <uint32_t> len(self._channels):
            channel = self._channels[number]
        if channel is not None:
            channel.is_cancelled = True
            self._ready.push(<int32_t> number)
        return 0

    cdef int _reserve(self, int32_t count) except -1:
        cdef SenderEntry* entries
        cdef int32_t capacity = max(count, 2 * self._capacity)
        if count > self._capacity:
            self._ready.reserve(max(capacity, 16))
            monitor_lock(&self._lock)
            entries = <SenderEntry*> realloc(self._entries, <size_t> capacity * sizeof(SenderEntry))
            if entries != NULL:
                self._entries = entries
                while self._capacity < capacity:
                    entries[self._capacity].is_open = False
                    self._capacity += 1
            monitor_unlock(&self._lock)
            if entries == NULL:
                raise MemoryError
        while len(self._channels) < count:
            self._channels.append(None)
        return 0

    cdef int _forget(self, int32_t number) except -1:
        self._channels[number] = None
        monitor_lock(&self._lock)
        self._entries[number].is_open = False
        monitor_unlock(&self._lock)
        return 0

    cdef int _send_error(self, int32_t number, error) except -1:
        cdef FrameHeader header
        cdef bytes text
        cdef const uint8_t* payload
        cdef WireStatus status
        cdef iovec[2] parts
        code, text = self._source.error_response(error)
        payload = text
        begin_frame(&header, FRAME_ERROR_RESPONSE, <uint32_t> number, <uint32_t> len(text))
        header.kind = code
        seal_frame(&header, payload)
        parts[0].iov_base = &header
        parts[0].iov_len = FRAME_HEADER_BYTES
        parts[1].iov_base = <void*> payload
        parts[1].iov_len = header.size
        with nogil:
            monitor_lock(&self._send_lock)
            status = send_parts(&self._wire, parts, 2 if header.size > 0 else 1)
            monitor_unlock(&self._send_lock)
        if status != WIRE_OK:
            self.shut_down(wire_text(status, errno))
        return 0

    # -------------------------------------------------------------------------------------------------------- writing

    def write_loop(self):
        """Send what there are credits for until the connection ends; then all views are released."""
        cdef ReadyState* ready = &self._ready.state
        cdef int32_t number
        cdef WireStatus status = WIRE_OK
        try:
            while status == WIRE_OK:
                with nogil:
                    number = ready_pop(ready, -1)
                if number == POP_CLOSED:
                    break
                while number >= 0:
                    self._collect(number)
                    number = -1 if self._out.count >= FRAMES_AT_ONCE - FRAMES_PER_TURN else ready_pop(ready, 0)
                if self._out.count > 0:
                    with nogil:
                        status = send_frames(self)
                    self._after_sending(status == WIRE_OK)
            if status != WIRE_OK:
                self.shut_down(wire_text(status, self._error_number))
        except BaseException as error:
            self.shut_down(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._after_sending(False)
            self._release_all()

    cdef int _collect(self, int32_t number) except -1:
        """Add frames of a channel to what is sent next, as many as its turn and its credits allow."""
        cdef SenderChannel channel = self._channels[number] if number < len(self._channels) else None
        cdef int32_t turns = FRAMES_PER_TURN
        cdef int32_t backlog
        cdef bint is_end, may_send, is_announced
        cdef uint32_t sequence = 0
        if len(self._available) > 0 and number in self._available:
            self._available.discard(number)
            self._add_frame(FRAME_AVAILABLE, number, 0, NULL)
            turns -= 1
        if channel is None or channel.view is None:
            return 0
        while turns > 0:
            if channel.is_cancelled:
                return self._end(number, channel, CODE_CANCELLED, b"")
            try:
                if channel.pending is None and not self._fetch(channel):
                    return 0
                backlog = self._backlog(channel)
            except Exception as error:
                code, payload = self._source.error_response(error)
                return self._end(number, channel, code, payload)
            is_end = channel.pending is END_OF_PARTITION
            is_announced = False
            monitor_lock(&self._lock)
            may_send = sender_may_send(&self._entries[number].credit, is_end)
            if may_send:
                sequence = sender_next(&self._entries[number].credit, is_end)
            else:
                is_announced = sender_announces(&self._entries[number].credit, backlog)
            monitor_unlock(&self._lock)
            if not may_send:
                if is_announced:
                    self._add_frame(FRAME_BACKLOG_ANNOUNCEMENT, number, 0, NULL).amount = <uint32_t> backlog
                return 0
            self._add_data(number, channel, sequence, max(backlog - 1, 0))
            if is_end:
                self._ended.append(channel)
                self._forget(number)
                return 0
            turns -= 1
        self._ready.push(number)
        return 0

    cdef bint _fetch(self, SenderChannel channel) except -1:
        """Take the view's next element, if there is one."""
        element, _ = channel.view.poll()
        if element is None:
            return False
        if not isinstance(element, Buffer) and element is not END_OF_PARTITION:
            element = self._source.batch_bytes(element)
            channel.content = element
            channel.offset = 0
        elif isinstance(element, Buffer) and (<Buffer> element).size > channel.buffer_size:
            size = (<Buffer> element).size
            element.recycle()
            raise ValueError(f"a buffer of {size} bytes for a consumer with buffers of {channel.buffer_size}: "
                             "taskmanager.memory.segment-size must be the same everywhere")
        channel.pending = element
        return True

    cdef int32_t _backlog(self, SenderChannel channel) except -1:
        """Return the frames of data that are ready, the one fetched included."""
        cdef int64_t count = min(<int64_t> channel.view.backlog(), <int64_t> CREDIT_MAX)
        if channel.pending is END_OF_PARTITION:
            return 0
        if isinstance(channel.pending, Buffer):
            return <int32_t> count + 1
        return <int32_t> min(count + (channel.content.shape[0] - channel.offset + channel.buffer_size - 1)
                             // channel.buffer_size, <int64_t> CREDIT_MAX)

    cdef int _add_data(self, int32_t number, SenderChannel channel, uint32_t sequence, int32_t backlog) except -1:
        """Add the next frame of the element that was fetched."""
        cdef FrameHeader* header
        cdef Buffer buffer
        cdef int64_t size
        if channel.pending is END_OF_PARTITION:
            header = self._add_frame(FRAME_BUFFER_RESPONSE, number, 0, NULL)
            header.kind = DATA_END
            channel.pending = None
        elif isinstance(channel.pending, Buffer):
            buffer = channel.pending
            header = self._add_frame(FRAME_BUFFER_RESPONSE, number, <uint32_t> buffer.size, buffer.segment.data)
            header.kind = <uint8_t> buffer.kind
            self._owners.append(buffer)
            channel.pending = None
        else:
            size = min(channel.content.shape[0] - channel.offset, <int64_t> channel.buffer_size)
            header = self._add_frame(FRAME_BUFFER_RESPONSE, number, <uint32_t> size, &channel.content[channel.offset])
            channel.offset += size
            self._owners.append(channel.pending)
            if channel.offset < channel.content.shape[0]:
                header.kind = DATA_BATCH
            else:
                header.kind = DATA_LAST_BATCH
                channel.pending = None
                channel.content = None
        header.sequence = sequence
        header.amount = <uint32_t> backlog
        header.identity = channel.identity
        return 0

    cdef FrameHeader* _add_frame(self, uint8_t type, int32_t number, uint32_t size, const uint8_t* payload) noexcept:
        cdef FrameHeader* header = &self._out.headers[self._out.count]
        self._out.payloads[self._out.count] = payload
        self._out.count += 1
        begin_frame(header, type, <uint32_t> number, size)
        return header

    cdef int _end(self, int32_t number, SenderChannel channel, uint8_t code, bytes payload) except -1:
        """Send the last frame of a channel that ends before its end."""
        self._forget(number)
        self._release(channel)
        self._add_frame(FRAME_ERROR_RESPONSE, number, <uint32_t> len(payload), payload).kind = code
        self._owners.append(payload)
        return 0

    cdef int _after_sending(self, bint is_sent) except -1:
        """Recycle what was sent; the views that were read to their end are through."""
        cdef SenderChannel channel
        owners, self._owners = self._owners, []
        self._out.count = 0
        for owner in owners:
            if isinstance(owner, Buffer):
                (<Buffer> owner).give_back()
        ended, self._ended = self._ended, []
        for channel in ended:
            if is_sent:
                channel.view.consumed()
            self._release(channel)
        return 0

    cdef int _release(self, SenderChannel channel) except -1:
        pending, channel.pending, channel.content = channel.pending, None, None
        if isinstance(pending, Buffer):
            (<Buffer> pending).give_back()
        if channel.view is not None:
            channel.view.release()
        return 0

    cdef int _release_all(self) except -1:
        cdef SenderChannel channel
        for number in range(len(self._channels)):
            channel, self._channels[number] = self._channels[number], None
            if channel is not None:
                self._release(channel)
        return 0


# ------------------------------------------------------------------------------------------------------------ kernels


cdef WireStatus read_requests(ServerConnection connection, ReadyState* ready, CreditStatus* credit) noexcept nogil:
    """Receive credits until another frame or the end comes; its payload is in the scratch area then."""
    cdef FrameHeader* header = &connection._header
    cdef WireStatus status
    while True:
        status = receive_header(&connection._wire, header, 0)
        if status == WIRE_OK and header.type == FRAME_ADD_CREDIT and header.size == 0:
            credit[0] = add_credit(connection, ready, header)
            if credit[0] != CREDIT_OK:
                return WIRE_OK
            continue
        if status == WIRE_OK and header.size > <uint32_t> FRAME_CONTROL_BYTES_MAX:
            status = WIRE_TOO_LARGE
        if status == WIRE_OK:
            status = receive_bytes(&connection._wire, connection._scratch, header.size)
        if status == WIRE_OK:
            status = check_payload(header, connection._scratch)
        if status != WIRE_OK:
            connection._error_number = errno
        return status


cdef CreditStatus add_credit(ServerConnection connection, ReadyState* ready, const FrameHeader* header) noexcept nogil:
    cdef CreditStatus status = CREDIT_OK
    cdef bint is_open
    monitor_lock(&connection._lock)
    is_open = header.channel < <uint32_t> connection._capacity and connection._entries[header.channel].is_open
    if is_open:
        status = sender_add_credit(&connection._entries[header.channel].credit, header.amount)
    monitor_unlock(&connection._lock)
    if is_open:
        ready_push(ready, <int32_t> header.channel)
    return status


cdef WireStatus send_frames(ServerConnection connection) noexcept nogil:
    cdef iovec[2 * FRAMES_AT_ONCE] parts
    cdef OutFrames* out = &connection._out
    cdef int32_t frame
    cdef int32_t count = 0
    cdef WireStatus status
    for frame in range(out.count):
        seal_frame(&out.headers[frame], out.payloads[frame])
        parts[count].iov_base = &out.headers[frame]
        parts[count].iov_len = FRAME_HEADER_BYTES
        count += 1
        if out.headers[frame].size > 0:
            parts[count].iov_base = <void*> out.payloads[frame]
            parts[count].iov_len = out.headers[frame].size
            count += 1
    monitor_lock(&connection._send_lock)
    status = send_parts(&connection._wire, parts, count)
    connection._error_number = errno
    monitor_unlock(&connection._send_lock)
    return status
