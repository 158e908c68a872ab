# Header of a spilled block: 72 bytes, little-endian, then stored_length bytes of payload.
#
#     offset  size
#          0     4  magic             "DRYB"
#          4     1  version           1
#          5     1  codec             0 none, 1 lz4 block, 2 words (words_codec)
#          6     2  flags             0
#          8     4  header_crc        CRC32C of the 72 bytes with this field zero
#         12     4  payload_crc       CRC32C of the payload as stored
#         16     8  raw_length        bytes before compression
#         24     8  stored_length     bytes after it; equal to raw_length with codec none
#         32     8  sequence          0-based number of the block in its file
#         40    16  job               the job id's 128 bits, in the order of its hex digits
#         56     4  vertex            index of the vertex in its JobGraph
#         60     4  subtask           0-based
#         64     4  attempt           0-based
#         68     4  file              number of the file among those of the same operator, unique in the process

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

cdef enum:
    BLOCK_HEADER_BYTES = 72
    BLOCK_VERSION = 1

cdef enum Codec:
    CODEC_NONE = 0
    CODEC_LZ4 = 1
    CODEC_WORDS = 2

cdef struct BlockHeader:
    uint8_t[4] magic
    uint8_t version
    uint8_t codec
    uint16_t flags
    uint32_t header_crc
    uint32_t payload_crc
    int64_t raw_length
    int64_t stored_length
    int64_t sequence
    uint8_t[16] job
    int32_t vertex
    int32_t subtask
    int32_t attempt
    int32_t file

# What is wrong with a block. The order is the order of the checks.
cdef enum BlockFault:
    FAULT_NONE = 0
    FAULT_TRUNCATED = 1         # fewer bytes than header and payload need
    FAULT_MAGIC = 2             # not a block
    FAULT_HEADER_CRC = 3        # header bytes changed
    FAULT_VERSION = 4           # written by another version (or unknown flags or codec)
    FAULT_IDENTITY = 5          # of another job, vertex, subtask, attempt or file
    FAULT_SEQUENCE = 6          # another block of the same file
    FAULT_LENGTH = 7            # lengths are not those of the index
    FAULT_PAYLOAD_CRC = 8       # payload bytes changed
    FAULT_CODEC = 9             # the payload does not decompress to raw_length bytes

# Compress with what pays for this payload. Bytes written to target, with their codec, or 0: store it as it is.
cdef int64_t compress_payload(
    const uint8_t* source, int64_t size, uint8_t* target, int64_t capacity, Codec* codec
) noexcept nogil
# 0, or -1 when the stored bytes are not those of exactly raw_size bytes. The codec is not CODEC_NONE.
cdef int decompress_payload(
    uint8_t codec, const uint8_t* stored, int64_t stored_size, uint8_t* target, int64_t raw_size
) noexcept nogil
# Complete a header whose identity is set: lengths, codec, sequence, both checksums.
cdef void seal_header(
    BlockHeader* header, Codec codec, int64_t raw_length, int64_t sequence, const uint8_t* payload,
    int64_t stored_length
) noexcept nogil
# Check a header against the expected identity, sequence and lengths (negative lengths: not known beforehand).
cdef BlockFault check_header(
    const BlockHeader* header, const BlockHeader* identity, int64_t sequence, int64_t raw_length, int64_t stored_length
) noexcept nogil
# Check the stored payload of a header that has passed.
cdef BlockFault check_payload(const BlockHeader* header, const uint8_t* payload) noexcept nogil
# Fill the identity fields of a zeroed header.
cdef int set_identity(BlockHeader* header, object identity, int32_t file_number) except -1
# The sentence for a fault.
cdef str fault_text(BlockFault fault)
