"""Wire: the bytes of one data connection, plain or within TLS, for the loops that run without the GIL.

    plain    send_parts ─► sendmsg, receive_bytes ─► recv           no copy but the kernel's
    TLS      send_parts ─► gathered ─► SSL_write ─► sealed ─► send        one trip to the GIL for 256 KiB
             recv ─► received ─► SSL_read ─► the target                   one for each 256 KiB that came

    session = TlsSession(ssl_object, incoming, outgoing)        a greeted ssl.SSLObject with its two MemoryBIOs

Frames and credits know nothing of TLS: it lies under them, where a plain connection has the socket. OpenSSL is Python's
own, so the chunks that it seals and opens are as large as may be: it works without the GIL, but is called with it.

Invariants
    the sender waits for the socket and the receiver waits for it without holding the session's lock: OpenSSL sees
    memory only, so neither direction of a connection waits for the other;
    the lock is taken without the GIL, so that its holder gets the GIL while others wait for the lock.

A connection that ends without close_notify is one that was closed: each channel has an end of its own, so a cut is
noticed there.

Silence between two frames has no limit: a side without credit sends nothing. Within a frame or a TLS record it
is an error after the socket's receive time-out. Else a record whose length was damaged on its way, which TLS notices
when all of it is there, would be waited for by one side while the other waits for credit.

Limits: 512 KiB for each TLS connection. A connection keeps its first keys: after 2^24 records (256 GiB) the margin that
TLS 1.3 plans for AES-GCM is used up.

Source: Flink's SSLHandler in front of its frame decoder.

Held by: tests/transport/test_data_tls.py
"""

cimport cython
from cpython.ref cimport PyObject
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from posix.uio cimport iovec

from engine.exchange.monitor cimport monitor_destroy, monitor_init, monitor_lock, monitor_unlock

import ssl

cdef extern from "Python.h":
    object PyMemoryView_FromMemory(char* memory, Py_ssize_t size, int flags)
    int PyBUF_READ
    int PyBUF_WRITE

cdef extern from "<sys/socket.h>" nogil:
    cdef struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
    ssize_t c_sendmsg "sendmsg"(int descriptor, const msghdr* message, int flags)
    ssize_t c_recvmsg "recvmsg"(int descriptor, msghdr* message, int flags)
    ssize_t c_recv "recv"(int descriptor, void* target, size_t size, int flags)
    int MSG_NOSIGNAL
    int MSG_WAITALL

cdef enum:
    PARTS_MAX = 64                  # of one call to the system
    TLS_CHUNK_BYTES = 256 << 10
    OPEN_CLOSED = -1                # results of open_bytes
    OPEN_BAD = -2
    RECORD_HEADER_BYTES = 5         # of TLS: type, version, length


# ------------------------------------------------------------------------------------------------------------ kernels


cdef WireStatus send_parts(Wire* wire, iovec* parts, int32_t count) noexcept nogil:
    cdef msghdr message
    cdef ssize_t sent
    if wire.tls != NULL:
        return send_sealed_parts(wire, parts, count)
    memset(&message, 0, sizeof(msghdr))
    while count > 0:
        message.msg_iov = parts
        message.msg_iovlen = <size_t> min(count, <int32_t> PARTS_MAX)
        sent = c_sendmsg(wire.descriptor, &message, MSG_NOSIGNAL)
        if sent < 0:
            if errno == EINTR:
                continue
            return WIRE_FAILED
        while count > 0 and sent >= <ssize_t> parts.iov_len:
            sent -= <ssize_t> parts.iov_len
            parts += 1
            count -= 1
        if count > 0:
            parts.iov_base = <uint8_t*> parts.iov_base + sent
            parts.iov_len -= <size_t> sent
    return WIRE_OK


cdef inline bint may_wait_on(const Wire* wire) noexcept nogil:
    """Whether to receive again after a failure: a signal came, or nothing between two frames."""
    if errno == EAGAIN:
        return not wire.is_within_frame and (wire.tls == NULL or not is_within_record(wire.tls))
    return errno == EINTR


cdef inline WireStatus receive_failure() noexcept nogil:
    return WIRE_STALLED if errno == EAGAIN else WIRE_FAILED


cdef WireStatus receive_bytes(Wire* wire, uint8_t* target, int64_t size) noexcept nogil:
    cdef ssize_t count
    if wire.tls != NULL:
        return receive_opened(wire, target, size)
    while size > 0:
        count = c_recv(wire.descriptor, target, <size_t> size, MSG_WAITALL)
        if count == 0:
            return WIRE_CLOSED
        if count < 0:
            if may_wait_on(wire):
                continue
            return receive_failure()
        wire.is_within_frame = True
        target += count
        size -= count
    return WIRE_OK


cdef WireStatus receive_ahead(
    Wire* wire, uint8_t* target, int64_t size, uint8_t* more, int64_t more_size, int64_t* more_count
) noexcept nogil:
    cdef iovec[2] parts
    cdef msghdr message
    cdef ssize_t count
    more_count[0] = 0
    if wire.tls != NULL:
        return receive_opened(wire, target, size)
    memset(&message, 0, sizeof(msghdr))
    message.msg_iov = parts
    message.msg_iovlen = 2
    while size > 0:
        parts[0].iov_base = target
        parts[0].iov_len = <size_t> size
        parts[1].iov_base = more
        parts[1].iov_len = <size_t> more_size
        count = c_recvmsg(wire.descriptor, &message, 0)
        if count == 0:
            return WIRE_CLOSED
        if count < 0:
            if may_wait_on(wire):
                continue
            return receive_failure()
        if count > size:
            more_count[0] = count - size
            return WIRE_OK
        target += count
        size -= count
    return WIRE_OK


cdef WireStatus send_plainly(int descriptor, const uint8_t* data, int64_t size) noexcept nogil:
    cdef iovec part
    cdef Wire plain
    plain.descriptor = descriptor
    plain.tls = NULL
    part.iov_base = <void*> data
    part.iov_len = <size_t> size
    return send_parts(&plain, &part, 1)


cdef WireStatus send_sealed_parts(Wire* wire, iovec* parts, int32_t count) noexcept nogil:
    """Send what the parts hold, as few and large TLS writes as the chunk allows."""
    cdef uint8_t* gathered = wire.tls.gathered
    cdef int64_t have = 0
    cdef int64_t piece
    cdef WireStatus status
    while count > 0:
        piece = min(<int64_t> parts.iov_len, TLS_CHUNK_BYTES - have)
        memcpy(gathered + have, parts.iov_base, <size_t> piece)
        have += piece
        parts.iov_base = <uint8_t*> parts.iov_base + piece
        parts.iov_len -= <size_t> piece
        if parts.iov_len == 0:
            parts += 1
            count -= 1
        if have == TLS_CHUNK_BYTES or count == 0:
            status = seal_and_send(wire, have)
            if status != WIRE_OK:
                return status
            have = 0
    return WIRE_OK


cdef WireStatus seal_and_send(Wire* wire, int64_t size) noexcept nogil:
    cdef TlsState* tls = wire.tls
    cdef bint is_sealed
    monitor_lock(&tls.lock)
    with gil:
        is_sealed = (<TlsSession> tls.session).seal_bytes(size)
    monitor_unlock(&tls.lock)
    if not is_sealed:
        return WIRE_BAD_RECORD
    return send_plainly(wire.descriptor, tls.sealed, tls.sealed_size)


cdef WireStatus receive_opened(Wire* wire, uint8_t* target, int64_t size) noexcept nogil:
    """Receive until that much of the peer's data is opened."""
    cdef TlsState* tls = wire.tls
    cdef int64_t count
    cdef ssize_t received = 0
    while size > 0:
        monitor_lock(&tls.lock)
        with gil:
            count = (<TlsSession> tls.session).open_bytes(received, target, size)
        monitor_unlock(&tls.lock)
        if count == OPEN_CLOSED:
            return WIRE_CLOSED
        if count == OPEN_BAD:
            return WIRE_BAD_RECORD
        if count > 0:
            wire.is_within_frame = True
        target += count
        size -= count
        if size > 0:
            received = c_recv(wire.descriptor, tls.received, TLS_CHUNK_BYTES, 0)
            while received < 0 and may_wait_on(wire):
                received = c_recv(wire.descriptor, tls.received, TLS_CHUNK_BYTES, 0)
            if received == 0:
                return WIRE_CLOSED
            if received < 0:
                return receive_failure()
            follow_records(tls, tls.received, received)
    return WIRE_OK


cdef inline bint is_within_record(const TlsState* tls) noexcept nogil:
    return tls.record_left > 0 or tls.header_have > 0


cdef void follow_records(TlsState* tls, const uint8_t* data, int64_t size) noexcept nogil:
    """Note where in a TLS record the bytes that came end; they begin where the last ones ended."""
    cdef int64_t piece
    while size > 0:
        if tls.record_left > 0:
            piece = min(size, tls.record_left)
            tls.record_left -= piece
        else:
            piece = 1
            tls.header = (tls.header << 8 | data[0]) & 0xFFFF       # what stays is the length
            tls.header_have += 1
            if tls.header_have == RECORD_HEADER_BYTES:
                tls.record_left = tls.header
                tls.header_have = 0
        data += piece
        size -= piece


# ------------------------------------------------------------------------------------------------------------ session


@cython.final
cdef class TlsSession:
    """Seals and opens the bytes of one greeted connection.

    Args:
        ssl_object: ssl.SSLObject whose handshake is done.
        incoming, outgoing: its MemoryBIOs; what has come ends where a record ends.
    """

    def __cinit__(self, ssl_object not None, incoming not None, outgoing not None):
        monitor_init(&self.state.lock)
        self.state.session = <PyObject*> self
        self.state.received = <uint8_t*> malloc(TLS_CHUNK_BYTES)
        self.state.gathered = <uint8_t*> malloc(TLS_CHUNK_BYTES)
        if self.state.received == NULL or self.state.gathered == NULL:
            raise MemoryError
        self._read = ssl_object.read
        self._write = ssl_object.write
        self._incoming = incoming
        self._outgoing = outgoing

    def __dealloc__(self):
        free(self.state.received)
        free(self.state.gathered)
        monitor_destroy(&self.state.lock)

    cdef int64_t open_bytes(self, int64_t received, uint8_t* target, int64_t size) noexcept:
        """Take that much ciphertext from the receiver's area; returns how many bytes of data there were."""
        cdef int64_t done = 0
        cdef int64_t count
        try:
            if received > 0:
                self._incoming.write(PyMemoryView_FromMemory(<char*> self.state.received, received, PyBUF_READ))
            while done < size:
                room = PyMemoryView_FromMemory(<char*> target + done, size - done, PyBUF_WRITE)
                count = self._read(size - done, room)
                if count == 0:
                    return done if done > 0 else <int64_t> OPEN_CLOSED
                done += count
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLError, MemoryError):
            return OPEN_BAD
        return done

    cdef bint seal_bytes(self, int64_t size) noexcept:
        """Seal what was gathered; False when OpenSSL refuses."""
        try:
            self._write(PyMemoryView_FromMemory(<char*> self.state.gathered, size, PyBUF_READ))
            self._sealed = self._outgoing.read()
        except (ssl.SSLError, MemoryError):
            return False
        self.state.sealed = self._sealed
        self.state.sealed_size = len(self._sealed)
        return True


cdef void begin_wire(Wire* wire, int descriptor, TlsSession session) noexcept:
    wire.descriptor = descriptor
    wire.tls = NULL if session is None else &session.state
    wire.is_within_frame = False
