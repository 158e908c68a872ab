"""The format of spilled blocks: header, checksums, identity.

    encode_block(payload, identity, file_number, sequence, compress)  ->  bytes of one block
    decode_block(data, identity, file_number, sequence, path, offset) ->  payload, or CorruptBlockError

The header is drawn in ``block_format.pxd``. Writers and readers use the kernels there; these two functions are the
same for one block in memory (tests, tools).

A block says whose it is. A reader knows which block it wants and refuses any other: a flipped bit fails a checksum,
a file of another job or attempt or of another file of the same operator fails the identity, two swapped blocks fail
the sequence, a torn one the length. So a damaged disk gives an error naming file and offset, and no wrong row.

Limits: a block has less than 2**63 bytes; little-endian machines. The format has no life beyond its process, so the
version only guards against mixed builds. Source: block header of RocksDB and Kafka's record batch (CRC32C, version);
the identity is ours.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from engine.iomanager.crc32c cimport crc32c_update
from engine.iomanager.lz4_codec cimport lz4_compress, lz4_decompress
from engine.iomanager.words_codec cimport words_compress, words_decompress, words_pay

from engine.errors import CorruptBlockError

cdef uint8_t* MAGIC = b"DRYB"
cdef enum:
    IDENTITY_OFFSET = 40
    HEADER_CRC_OFFSET = 8

HEADER_BYTES = BLOCK_HEADER_BYTES


cdef uint32_t header_checksum(const BlockHeader* header) noexcept nogil:
    cdef BlockHeader copy = header[0]
    copy.header_crc = 0
    return crc32c_update(0, <const uint8_t*> &copy, BLOCK_HEADER_BYTES)


cdef int64_t compress_payload(
    const uint8_t* source, int64_t size, uint8_t* target, int64_t capacity, Codec* codec
) noexcept nogil:
    cdef int64_t stored = 0
    if words_pay(source, size):
        codec[0] = CODEC_WORDS
        stored = words_compress(source, size, target, capacity)
    if stored == 0:
        codec[0] = CODEC_LZ4
        stored = lz4_compress(source, size, target, capacity)
    return stored


cdef int decompress_payload(
    uint8_t codec, const uint8_t* stored, int64_t stored_size, uint8_t* target, int64_t raw_size
) noexcept nogil:
    if codec == CODEC_WORDS:
        return words_decompress(stored, stored_size, target, raw_size)
    return lz4_decompress(stored, stored_size, target, raw_size)


cdef void seal_header(
    BlockHeader* header, Codec codec, int64_t raw_length, int64_t sequence, const uint8_t* payload,
    int64_t stored_length
) noexcept nogil:
    memcpy(header.magic, MAGIC, 4)
    header.version = BLOCK_VERSION
    header.codec = <uint8_t> codec
    header.flags = 0
    header.raw_length = raw_length
    header.stored_length = stored_length
    header.sequence = sequence
    header.payload_crc = crc32c_update(0, payload, stored_length)
    header.header_crc = header_checksum(header)


cdef BlockFault check_header(
    const BlockHeader* header, const BlockHeader* identity, int64_t sequence, int64_t raw_length, int64_t stored_length
) noexcept nogil:
    if memcmp(header.magic, MAGIC, 4) != 0:
        return FAULT_MAGIC
    if header.header_crc != header_checksum(header):
        return FAULT_HEADER_CRC
    if header.version != BLOCK_VERSION or header.flags != 0 or header.codec > CODEC_WORDS:
        return FAULT_VERSION
    if memcmp(<const uint8_t*> header + IDENTITY_OFFSET, <const uint8_t*> identity + IDENTITY_OFFSET,
              BLOCK_HEADER_BYTES - IDENTITY_OFFSET) != 0:
        return FAULT_IDENTITY
    if header.sequence != sequence:
        return FAULT_SEQUENCE
    if header.raw_length < 0 or header.stored_length < 0:
        return FAULT_LENGTH
    if header.codec == CODEC_NONE and header.raw_length != header.stored_length:
        return FAULT_LENGTH
    if raw_length >= 0 and (header.raw_length != raw_length or header.stored_length != stored_length):
        return FAULT_LENGTH
    return FAULT_NONE


cdef BlockFault check_payload(const BlockHeader* header, const uint8_t* payload) noexcept nogil:
    if crc32c_update(0, payload, header.stored_length) != header.payload_crc:
        return FAULT_PAYLOAD_CRC
    return FAULT_NONE


cdef int set_identity(BlockHeader* header, object identity, int32_t file_number) except -1:
    job = bytes.fromhex(identity.job_id)
    if len(job) != 16:
        raise ValueError(f"a job id has 32 hex digits, not {identity.job_id!r}")
    memcpy(header.job, PyBytes_AS_STRING(job), 16)
    header.vertex = identity.vertex_index
    header.subtask = identity.subtask_index
    header.attempt = identity.attempt_number
    header.file = file_number
    return 0


cdef str fault_text(BlockFault fault):
    return {
        FAULT_TRUNCATED: "it is cut short",
        FAULT_MAGIC: "no block begins here",
        FAULT_HEADER_CRC: "the checksum of its header is wrong",
        FAULT_VERSION: "its version, flags or codec are unknown",
        FAULT_IDENTITY: "it belongs to another job, subtask, attempt or file",
        FAULT_SEQUENCE: "it is another block of this file",
        FAULT_LENGTH: "its length is not the one that was written",
        FAULT_PAYLOAD_CRC: "the checksum of its payload is wrong",
        FAULT_CODEC: "its payload does not decompress",
    }.get(fault, "unknown fault")


def encode_block(const uint8_t[::1] payload not None, identity, int32_t file_number, int64_t sequence, bint compress):
    """Return header and payload as bytes; compressed when that is asked for and saves a tenth."""
    cdef BlockHeader header
    cdef int64_t size = payload.shape[0]
    cdef const uint8_t* source = &payload[0] if size > 0 else NULL
    cdef int64_t capacity = size - size // 10
    cdef bytes compressed = PyBytes_FromStringAndSize(NULL, capacity)
    cdef Codec codec = CODEC_NONE
    cdef int64_t stored = 0
    memset(&header, 0, sizeof(header))
    set_identity(&header, identity, file_number)
    if compress and capacity > 0:
        stored = compress_payload(source, size, <uint8_t*> PyBytes_AS_STRING(compressed), capacity, &codec)
    if stored > 0:
        seal_header(&header, codec, size, sequence, <const uint8_t*> PyBytes_AS_STRING(compressed), stored)
        body = compressed[:stored]
    else:
        seal_header(&header, CODEC_NONE, size, sequence, source, size)
        body = bytes(payload)
    return PyBytes_FromStringAndSize(<const char*> &header, BLOCK_HEADER_BYTES) + body


def decode_block(const uint8_t[::1] data not None, identity, int32_t file_number, int64_t sequence, path,
                 int64_t offset):
    """Return the payload of the one block that `data` holds.

    Args: path, offset: only for the error text.
    Raises: CorruptBlockError when the bytes are not exactly this block.
    """
    cdef BlockHeader header
    cdef BlockHeader wanted
    cdef BlockFault fault = FAULT_NONE
    cdef const uint8_t* payload
    cdef bytes raw
    memset(&wanted, 0, sizeof(wanted))
    set_identity(&wanted, identity, file_number)
    if data.shape[0] < BLOCK_HEADER_BYTES:
        raise corrupt_block(path, offset, sequence, FAULT_TRUNCATED)
    memcpy(&header, &data[0], BLOCK_HEADER_BYTES)
    payload = &data[0] + BLOCK_HEADER_BYTES
    fault = check_header(&header, &wanted, sequence, -1, -1)
    if fault == FAULT_NONE and data.shape[0] != BLOCK_HEADER_BYTES + header.stored_length:
        fault = FAULT_TRUNCATED if data.shape[0] < BLOCK_HEADER_BYTES + header.stored_length else FAULT_LENGTH
    if fault == FAULT_NONE:
        fault = check_payload(&header, payload)
    if fault != FAULT_NONE:
        raise corrupt_block(path, offset, sequence, fault)
    if header.codec == CODEC_NONE:
        return PyBytes_FromStringAndSize(<const char*> payload, header.stored_length)
    raw = PyBytes_FromStringAndSize(NULL, header.raw_length)
    if decompress_payload(header.codec, payload, header.stored_length, <uint8_t*> PyBytes_AS_STRING(raw),
                          header.raw_length) != 0:
        raise corrupt_block(path, offset, sequence, FAULT_CODEC)
    return raw


def corrupt_block(path, int64_t offset, int64_t sequence, int fault, str there=""):
    """Return the CorruptBlockError for a fault code (BlockFault); there: what was found instead."""
    return CorruptBlockError(
        f"block {sequence} at offset {offset} of {path} cannot be used: {fault_text(<BlockFault> fault)}{there}; "
        "the disk or another program has changed the file"
    )
