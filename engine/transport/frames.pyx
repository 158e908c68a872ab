"""Frames of the data plane between TaskManagers: what is on the wire, and the kernels that put it there.

    offset   0       4        5     6     7         8        12        16      20    24        32            36
           | magic | version| type| kind| 0       | channel| sequence| amount| size| identity| checksum of | checksum of
           | "DREY"| u8     | u8  | u8  | u8      | u32    | u32     | u32   | u32 | 8 bytes | the payload | the header
           | payload, `size` bytes ...                                                       | u32         | u32

    type                     sender    channel  kind    sequence  amount    payload
    1 Hello                  both      -        step    -         -         cluster, nonce, proof (handshake.py)
    2 PartitionRequest       consumer  yes      -       -         credits   msgpack: partition, subpartition or range
    3 BufferResponse         producer  yes      data    yes       backlog   the bytes of a buffer
    4 ErrorResponse          producer  yes      code    -         -         text; the last frame of a channel
    5 AddCredit              consumer  yes      -       -         credits   -
    6 BacklogAnnouncement    producer  yes      -       -         backlog   -
    7 CancelPartitionRequest consumer  yes      -       -         -         -        answered by ErrorResponse CANCELLED
    8 CloseRequest           consumer  -        -       -         -         -
    9 PartitionAvailable     producer  yes      -       -         -         -        what was not found can be asked for

Numbers are little-endian; checksums are CRC32C. The header's own checksum makes its size trustworthy before a byte of
the payload is received; the size is bounded before anything is allocated. ``identity`` ties data to its partition and
attempt. A frame that does not fit ends the connection with an error that names the peer.

Sockets block; a thread is woken by shutting its socket down.

Source: Flink's NettyMessage, with checksums and without Netty.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

import os
from enum import IntEnum

from engine.transport.wire cimport (
    WIRE_BAD_HEADER, WIRE_BAD_MAGIC, WIRE_BAD_PAYLOAD, WIRE_BAD_RECORD, WIRE_BAD_VERSION, WIRE_CLOSED, WIRE_FAILED,
    WIRE_OK, WIRE_STALLED, WIRE_TOO_LARGE, Wire, WireStatus, receive_bytes,
)
from engine.iomanager.crc32c cimport crc32c_update


class FrameKind(IntEnum):
    """Types of frames."""

    HELLO = FRAME_HELLO
    PARTITION_REQUEST = FRAME_PARTITION_REQUEST
    BUFFER_RESPONSE = FRAME_BUFFER_RESPONSE
    ERROR_RESPONSE = FRAME_ERROR_RESPONSE
    ADD_CREDIT = FRAME_ADD_CREDIT
    BACKLOG_ANNOUNCEMENT = FRAME_BACKLOG_ANNOUNCEMENT
    CANCEL_REQUEST = FRAME_CANCEL_REQUEST
    CLOSE_REQUEST = FRAME_CLOSE_REQUEST
    AVAILABLE = FRAME_AVAILABLE


HEADER_BYTES = FRAME_HEADER_BYTES
CONTROL_BYTES_MAX = FRAME_CONTROL_BYTES_MAX


# ------------------------------------------------------------------------------------------------------------ kernels


cdef void begin_frame(FrameHeader* header, uint8_t type, uint32_t channel, uint32_t size) noexcept nogil:
    memset(header, 0, sizeof(FrameHeader))
    header.magic = FRAME_MAGIC
    header.version = FRAME_VERSION
    header.type = type
    header.channel = channel
    header.size = size


cdef void seal_frame(FrameHeader* header, const uint8_t* payload) noexcept nogil:
    header.payload_checksum = crc32c_update(0, payload, header.size) if header.size > 0 else 0
    header.header_checksum = crc32c_update(0, <const uint8_t*> header, FRAME_HEADER_BYTES - 4)


cdef WireStatus check_header(const FrameHeader* header) noexcept nogil:
    if header.magic != FRAME_MAGIC:
        return WIRE_BAD_MAGIC
    if header.version != FRAME_VERSION:
        return WIRE_BAD_VERSION
    if header.header_checksum != crc32c_update(0, <const uint8_t*> header, FRAME_HEADER_BYTES - 4):
        return WIRE_BAD_HEADER
    if not FRAME_HELLO <= header.type <= FRAME_AVAILABLE:
        return WIRE_BAD_HEADER
    if header.size > <uint32_t> (FRAME_DATA_BYTES_MAX if header.type == FRAME_BUFFER_RESPONSE
                                 else FRAME_CONTROL_BYTES_MAX):
        return WIRE_TOO_LARGE
    return WIRE_OK


cdef WireStatus check_payload(const FrameHeader* header, const uint8_t* payload) noexcept nogil:
    cdef uint32_t checksum = crc32c_update(0, payload, header.size) if header.size > 0 else 0
    return WIRE_OK if checksum == header.payload_checksum else WIRE_BAD_PAYLOAD


cdef WireStatus receive_header(Wire* wire, FrameHeader* header, int64_t have) noexcept nogil:
    cdef WireStatus status
    wire.is_within_frame = have > 0
    status = receive_bytes(wire, <uint8_t*> header + have, FRAME_HEADER_BYTES - have)
    if status != WIRE_OK:
        return status
    return check_header(header)


cdef str wire_text(WireStatus status, int error_number):
    if status == WIRE_CLOSED:
        return "the connection was closed"
    if status == WIRE_FAILED:
        return f"the connection failed: {os.strerror(error_number)}"
    if status == WIRE_BAD_MAGIC:
        return "what came is not a frame of the data plane"
    if status == WIRE_BAD_VERSION:
        return f"frames of another version than {FRAME_VERSION}"
    if status == WIRE_BAD_HEADER:
        return "a damaged frame header (wrong checksum)"
    if status == WIRE_BAD_PAYLOAD:
        return "a damaged frame (wrong checksum)"
    if status == WIRE_BAD_RECORD:
        return "what came is not what was sent (TLS)"
    if status == WIRE_STALLED:
        return "the other side, or what is between, stopped in the middle of a message"
    return "a frame larger than is allowed"


# -------------------------------------------------------------------------------------------------- for Python callers


def encode_frame(
    uint8_t frame_type, uint32_t channel=0, const uint8_t[::1] payload=None, uint8_t kind=0, uint32_t sequence=0,
    uint32_t amount=0, uint64_t identity=0
):
    """Return the bytes of a frame."""
    cdef FrameHeader header
    cdef uint32_t size = 0 if payload is None else <uint32_t> payload.shape[0]
    begin_frame(&header, frame_type, channel, size)
    header.kind = kind
    header.sequence = sequence
    header.amount = amount
    header.identity = identity
    seal_frame(&header, &payload[0] if size > 0 else NULL)
    frame = (<uint8_t*> &header)[:FRAME_HEADER_BYTES]
    return frame if size == 0 else frame + bytes(payload)


def decode_header(const uint8_t[::1] data not None):
    """Return the fields of a header as a dict.

    Raises:
        ValueError: not a header.
    """
    cdef const FrameHeader* header
    cdef WireStatus status
    if data.shape[0] < FRAME_HEADER_BYTES:
        raise ValueError(f"{data.shape[0]} bytes are no frame header")
    header = <const FrameHeader*> &data[0]
    status = check_header(header)
    if status != WIRE_OK:
        raise ValueError(wire_text(status, 0))
    return {
        "type": header.type, "kind": header.kind, "channel": header.channel, "sequence": header.sequence,
        "amount": header.amount, "size": header.size, "identity": header.identity,
        "payload_checksum": header.payload_checksum,
    }


def check_frame_payload(const uint8_t[::1] header not None, const uint8_t[::1] payload not None):
    """Return whether the payload is the one that the header was made for."""
    cdef const FrameHeader* fields = <const FrameHeader*> &header[0]
    if payload.shape[0] != fields.size:
        return False
    return check_payload(fields, &payload[0] if payload.shape[0] > 0 else NULL) == WIRE_OK
