# Wire: the bytes of one data connection, plain or within TLS; see wire.pyx.

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from posix.uio cimport iovec

from engine.exchange.monitor cimport Monitor


cdef enum WireStatus:
    WIRE_OK = 0
    WIRE_CLOSED = 1                 # the peer closed, or this side shut the socket down
    WIRE_FAILED = 2                 # errno says why
    WIRE_BAD_MAGIC = 3
    WIRE_BAD_VERSION = 4
    WIRE_BAD_HEADER = 5             # checksum, or an unknown type
    WIRE_BAD_PAYLOAD = 6            # checksum
    WIRE_TOO_LARGE = 7
    WIRE_BAD_RECORD = 8             # what came is not what the peer's TLS sent
    WIRE_STALLED = 9                # a part came, and the rest did not within the socket's time-out


cdef struct TlsState:               # of one TlsSession
    PyObject* session               # the TlsSession that this is part of
    Monitor lock                    # one operation of OpenSSL at a time
    uint8_t* received               # [TLS_CHUNK_BYTES] the receiver's: ciphertext from the socket
    uint8_t* gathered               # [TLS_CHUNK_BYTES] the sender's: parts of frames
    const uint8_t* sealed
    int64_t sealed_size
    int64_t record_left             # bytes until the end of the TLS record that is being received
    int32_t header_have             # bytes of the next one's header
    uint32_t header                 # the last two of them


cdef struct Wire:
    int descriptor                  # of a blocking socket; -1: nothing is sent any more
    TlsState* tls                   # of a TlsSession that the connection keeps alive; NULL: plain
    bint is_within_frame            # a part of a frame has come; cleared when the next one begins


# Blocking; `parts` are used up. One thread at a time.
cdef WireStatus send_parts(Wire* wire, iovec* parts, int32_t count) noexcept nogil
# Blocking. One thread at a time, which may be another one than the sender's.
cdef WireStatus receive_bytes(Wire* wire, uint8_t* target, int64_t size) noexcept nogil
# Like receive_bytes, and what has come of the `more_size` bytes behind it; *more_count says how much.
cdef WireStatus receive_ahead(
    Wire* wire, uint8_t* target, int64_t size, uint8_t* more, int64_t more_size, int64_t* more_count
) noexcept nogil


@cython.final
cdef class TlsSession:
    cdef TlsState state
    cdef object _read               # of ssl.SSLObject, like the next one
    cdef object _write
    cdef object _incoming           # ssl.MemoryBIO: ciphertext that has come
    cdef object _outgoing           # ssl.MemoryBIO: ciphertext to send
    cdef bytes _sealed              # what state.sealed points to

    cdef int64_t open_bytes(self, int64_t received, uint8_t* target, int64_t size) noexcept
    cdef bint seal_bytes(self, int64_t size) noexcept


# The wire of a connection: within TLS when there is a session.
cdef void begin_wire(Wire* wire, int descriptor, TlsSession session) noexcept
