# Frames of the data plane: see frames.pyx for the drawing. Kernels to make, check and receive them.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from engine.transport.wire cimport Wire, WireStatus


cdef enum:
    FRAME_MAGIC = 0x59455244        # "DREY"
    FRAME_VERSION = 1
    FRAME_HEADER_BYTES = 40
    FRAME_CONTROL_BYTES_MAX = 1 << 16
    FRAME_DATA_BYTES_MAX = 1 << 24  # no segment is larger


cdef enum FrameType:
    FRAME_HELLO = 1
    FRAME_PARTITION_REQUEST = 2
    FRAME_BUFFER_RESPONSE = 3
    FRAME_ERROR_RESPONSE = 4
    FRAME_ADD_CREDIT = 5
    FRAME_BACKLOG_ANNOUNCEMENT = 6
    FRAME_CANCEL_REQUEST = 7
    FRAME_CLOSE_REQUEST = 8
    FRAME_AVAILABLE = 9


cdef enum DataKind:                 # of a BufferResponse; all but the last are those of Buffer
    DATA_ROWS = 0
    DATA_FRAGMENT = 1
    DATA_LAST_FRAGMENT = 2
    DATA_BATCH = 3                  # a piece of a RecordBatch as an Arrow IPC stream
    DATA_LAST_BATCH = 4
    DATA_END = 5                    # END_OF_PARTITION: an event


cdef packed struct FrameHeader:
    uint32_t magic
    uint8_t version
    uint8_t type                    # FrameType
    uint8_t kind                    # DataKind, or code of an ErrorResponse
    uint8_t reserved                # 0
    uint32_t channel                # of the receiver; 0 where there is none
    uint32_t sequence               # of data and events in their channel
    uint32_t amount                 # backlog, or credits
    uint32_t size                   # bytes of the payload
    uint64_t identity               # first 8 bytes of the partition's digest, in data
    uint32_t payload_checksum
    uint32_t header_checksum        # of all bytes before it


# All but the checksums.
cdef void begin_frame(FrameHeader* header, uint8_t type, uint32_t channel, uint32_t size) noexcept nogil
# Checksums of a header that is complete otherwise; payload may be NULL when size is 0.
cdef void seal_frame(FrameHeader* header, const uint8_t* payload) noexcept nogil
cdef WireStatus check_header(const FrameHeader* header) noexcept nogil
cdef WireStatus check_payload(const FrameHeader* header, const uint8_t* payload) noexcept nogil
# Bytes from the wire up to a whole header in `header`, of which `have` bytes are there.
cdef WireStatus receive_header(Wire* wire, FrameHeader* header, int64_t have) noexcept nogil
cdef str wire_text(WireStatus status, int error_number)
