"""Loops over values of bytes that Arrow has no function for: digests, encodings, hashes.

    transform(values, name) -> bytes            md5 sha1 sha256 sha512 hex base64 url_encode (text)
                                                unhex unbase64 url_decode (bytes)
    checksums(values) -> int64                  CRC-32 of binary values
    fold_words(values, hashes) -> hashes        XXH64 of int32 or int64 values, each with a hash so far as seed
    fold_bytes(values, hashes) -> hashes        the same of binary values

    offsets, bytes ──► room for the longest result ──► one value after another ──► offsets, bytes

Values are binary or large binary arrays, results have the same width of offsets. Nulls are computed like values, and
stay null: the caller need not look at them (hashes apart, which have none).

Invariants: runs without the GIL; a value that cannot be decoded raises ArrowInvalid and shows it.

Held by: tests/expressions/test_digest_functions.py
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

import pyarrow as pa

from engine.records.arrow_functions import pc

from engine.expressions.byte_values cimport Values, begin_of, values_of
from engine.expressions.digest_kernels cimport (
    drey_base64_digits, drey_crc32, drey_hex_digits, drey_md5, drey_sha1, drey_sha256, drey_sha512, drey_xxh64,
)

cdef enum Transform:
    MD5
    SHA1
    SHA256
    SHA512
    HEX
    BASE64
    UNHEX
    UNBASE64
    URL_DECODE
    URL_ENCODE

_NAMES = {
    "md5": MD5,
    "sha1": SHA1,
    "sha256": SHA256,
    "sha512": SHA512,
    "hex": HEX,
    "base64": BASE64,
    "unhex": UNHEX,
    "unbase64": UNBASE64,
    "url_decode": URL_DECODE,
    "url_encode": URL_ENCODE,
}


cdef inline int hex_value(uint8_t digit) noexcept nogil:
    if 48 <= digit <= 57:
        return digit - 48
    digit = digit | 32
    return digit - 87 if 97 <= digit <= 102 else -1


cdef inline int base64_value(uint8_t digit) noexcept nogil:
    if 65 <= digit <= 90:
        return digit - 65
    if 97 <= digit <= 122:
        return digit - 71
    if 48 <= digit <= 57:
        return digit + 4
    return 62 if digit == 43 else 63 if digit == 47 else -1


cdef int64_t hex_of(const uint8_t* data, int64_t size, uint8_t* out) noexcept nogil:
    cdef int64_t index
    for index in range(size):
        out[2 * index] = drey_hex_digits[data[index] >> 4]
        out[2 * index + 1] = drey_hex_digits[data[index] & 15]
    return 2 * size


cdef int64_t bytes_of_hex(const uint8_t* data, int64_t size, uint8_t* out) noexcept nogil:
    cdef int64_t index
    cdef int high, low
    if size & 1:
        return -1
    for index in range(size // 2):
        high, low = hex_value(data[2 * index]), hex_value(data[2 * index + 1])
        if high < 0 or low < 0:
            return -1
        out[index] = <uint8_t> (high << 4 | low)
    return size // 2


cdef int64_t base64_of(const uint8_t* data, int64_t size, uint8_t* out) noexcept nogil:
    cdef int64_t index = 0, written = 0
    cdef int left
    cdef uint64_t word
    while index < size:
        left = 3 if size - index >= 3 else <int> (size - index)
        word = <uint64_t> data[index] << 16
        if left > 1:
            word |= <uint64_t> data[index + 1] << 8
        if left > 2:
            word |= data[index + 2]
        out[written] = drey_base64_digits[word >> 18]
        out[written + 1] = drey_base64_digits[(word >> 12) & 63]
        out[written + 2] = drey_base64_digits[(word >> 6) & 63] if left > 1 else 61
        out[written + 3] = drey_base64_digits[word & 63] if left > 2 else 61
        index += 3
        written += 4
    return written


cdef int64_t bytes_of_base64(const uint8_t* data, int64_t size, uint8_t* out) noexcept nogil:
    cdef int64_t index, written = 0, bits = 0
    cdef int value
    cdef uint64_t word = 0
    if size & 3:
        return -1
    if size and data[size - 1] == 61:
        size -= 2 if data[size - 2] == 61 else 1
    for index in range(size):
        value = base64_value(data[index])
        if value < 0:
            return -1
        word = word << 6 | <uint64_t> value
        bits += 6
        if bits >= 8:
            bits -= 8
            out[written] = <uint8_t> (word >> bits)
            written += 1
    return written


cdef int64_t url_decoded(const uint8_t* data, int64_t size, uint8_t* out) noexcept nogil:
    cdef int64_t index = 0, written = 0
    while index < size:
        if data[index] == 37:
            if index + 2 >= size or hex_value(data[index + 1]) < 0 or hex_value(data[index + 2]) < 0:
                return -1
            out[written] = <uint8_t> (hex_value(data[index + 1]) << 4 | hex_value(data[index + 2]))
            index += 3
        else:
            out[written] = 32 if data[index] == 43 else data[index]
            index += 1
        written += 1
    return written


cdef int64_t url_encoded(const uint8_t* data, int64_t size, uint8_t* out) noexcept nogil:
    """Write what is neither a letter of ASCII, a digit nor one of -._~ as %20 and the like."""
    cdef int64_t index, written = 0
    cdef uint8_t one
    for index in range(size):
        one = data[index]
        if 48 <= one <= 57 or 97 <= one | 32 <= 122 or one == 45 or one == 46 or one == 95 or one == 126:
            out[written] = one
            written += 1
            continue
        out[written] = 37
        out[written + 1] = drey_hex_digits[one >> 4] - (32 if one >> 4 > 9 else 0)
        out[written + 2] = drey_hex_digits[one & 15] - (32 if one & 15 > 9 else 0)
        written += 3
    return written


cdef int64_t transformed(int what, const uint8_t* data, int64_t size, uint8_t* out) noexcept nogil:
    """Write one value and return its size, -1 where it cannot be."""
    if what == MD5:
        drey_md5(data, size, out)
        return 32
    if what == SHA1:
        drey_sha1(data, size, out)
        return 40
    if what == SHA256:
        drey_sha256(data, size, out)
        return 64
    if what == SHA512:
        drey_sha512(data, size, out)
        return 128
    if what == URL_ENCODE:
        return url_encoded(data, size, out)
    if what == HEX:
        return hex_of(data, size, out)
    if what == BASE64:
        return base64_of(data, size, out)
    if what == UNHEX:
        return bytes_of_hex(data, size, out)
    if what == UNBASE64:
        return bytes_of_base64(data, size, out)
    return url_decoded(data, size, out)


cdef int64_t room_for(int what, int64_t size, int64_t count) noexcept nogil:
    """Return the most bytes that the results of values take together."""
    if what == MD5:
        return 32 * count
    if what == SHA1:
        return 40 * count
    if what == SHA256:
        return 64 * count
    if what == SHA512:
        return 128 * count
    if what == URL_ENCODE:
        return 3 * size
    if what == HEX:
        return 2 * size
    return 4 * ((size + 2) // 3 + count) if what == BASE64 else size


def transform(values not None, str name not None):
    """Return binary values under a transformation, as large binary; ArrowInvalid where one cannot be decoded."""
    cdef Values source
    cdef int what = _NAMES[name]
    cdef int64_t index, begin, size, written, failed = -1, total = 0
    cdef uint8_t* out
    cdef int64_t* ends
    cdef const uint8_t* valid = NULL
    if len(values) == 0:
        return pa.nulls(0, pa.large_binary())
    source = values_of(values)
    bitmap = None
    if values.null_count:
        bitmap = pc.invert(pc.is_null(values)).buffers()[1]  # a new one, which begins with the first bit
        valid = <const uint8_t*> <size_t> bitmap.address
    total = begin_of(&source, source.count) - begin_of(&source, 0)
    room = pa.allocate_buffer(room_for(what, total, source.count))
    offsets = pa.allocate_buffer(8 * (source.count + 1))
    out = <uint8_t*> <size_t> room.address
    ends = <int64_t*> <size_t> offsets.address
    ends[0] = 0
    with nogil:
        for index in range(source.count):
            begin = begin_of(&source, index)
            size = begin_of(&source, index + 1) - begin
            written = transformed(what, source.data + begin, size, out + ends[index])
            if written < 0:
                written = 0
                if valid == NULL or valid[index >> 3] >> (index & 7) & 1:
                    failed = index
                    break
            ends[index + 1] = ends[index] + written
    if failed >= 0:
        raise pa.ArrowInvalid(f"{values[failed].as_py()[:80]!r} cannot be decoded ({name})")
    return pa.Array.from_buffers(pa.large_binary(), source.count, [bitmap, offsets, room.slice(0, ends[source.count])])


def fold_words(values not None, hashes not None):
    """Return the hashes of int32 or int64 values, seeded with hashes so far."""
    cdef int64_t count = len(values)
    cdef int64_t index
    cdef int width = values.type.bit_width // 8
    cdef const uint8_t* words
    cdef const uint64_t* seeds
    cdef uint64_t* found
    if len(hashes) != count or values.type not in (pa.int32(), pa.int64()) or hashes.type != pa.int64():
        raise ValueError(f"hashes of {count} {values.type} from {len(hashes)} {hashes.type}")
    if count == 0:
        return hashes
    words = (<const uint8_t*> <size_t> values.buffers()[1].address) + <int64_t> values.offset * width
    seeds = (<const uint64_t*> <size_t> hashes.buffers()[1].address) + <int64_t> hashes.offset
    buffer = pa.allocate_buffer(count * 8)
    found = <uint64_t*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = drey_xxh64(words + index * width, width, seeds[index])
    return pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)


def fold_bytes(values not None, hashes not None):
    """Return the hashes of binary values, seeded with hashes so far."""
    cdef Values source
    cdef int64_t index, begin
    cdef const uint64_t* seeds
    cdef uint64_t* found
    if len(hashes) != len(values) or hashes.type != pa.int64():
        raise ValueError(f"hashes of {len(values)} values from {len(hashes)} {hashes.type}")
    if len(values) == 0:
        return hashes
    source = values_of(values)
    seeds = (<const uint64_t*> <size_t> hashes.buffers()[1].address) + <int64_t> hashes.offset
    buffer = pa.allocate_buffer(source.count * 8)
    found = <uint64_t*> <size_t> buffer.address
    with nogil:
        for index in range(source.count):
            begin = begin_of(&source, index)
            found[index] = drey_xxh64(source.data + begin, begin_of(&source, index + 1) - begin, seeds[index])
    return pa.Array.from_buffers(pa.int64(), source.count, [None, buffer], null_count=0)


def checksums(values not None):
    """Return the CRC-32 of binary values, as int64."""
    cdef Values source
    cdef int64_t index, begin
    if len(values) == 0:
        return pa.nulls(0, pa.int64())
    source = values_of(values)
    buffer = pa.allocate_buffer(source.count * 8)
    cdef int64_t* found = <int64_t*> <size_t> buffer.address
    with nogil:
        for index in range(source.count):
            begin = begin_of(&source, index)
            found[index] = <uint32_t> drey_crc32(source.data + begin, begin_of(&source, index + 1) - begin)
    return pa.Array.from_buffers(pa.int64(), source.count, [None, buffer], null_count=0)
