"""Values as bytes that compare as the values do, and back: what ``ordered_pairs`` puts side by side.

    put_ordered(values, kind, inverted, out, stride, at)      numbers of 1 to 16 bytes into rows of a buffer
    get_ordered(rows, stride, at, width, kind, count) -> pa.Buffer
    put_before(words, width, texts) -> pa.Array               large_binary: the word of a row, then its text
    texts_behind(rows, width) -> (offsets, bytes)             the texts of those

    int16  258        01 02 little-endian      ──►  81 02        the sign turned, the highest byte first
    double -0.5, key  bits of the number       ──►  inverted     negative numbers; of others the sign is turned
    inverted          all of it                ──►  ~            what is greatest becomes what is least

``KEY_FLOAT`` takes -0.0 as 0.0, ``VALUE_FLOAT`` keeps it; both have one NaN, the greatest number.

Invariants: runs without the GIL; what lies under nulls is written, too, and the caller sets nulls.

Held by: tests/expressions/test_ordered_pairs.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import pyarrow as pa

from engine.records.byte_kernels cimport swap64

UNSIGNED, SIGNED, KEY_FLOAT, VALUE_FLOAT = range(4)

cdef enum:
    OF_SIGNED = 1
    OF_KEY_FLOAT = 2
    OF_VALUE_FLOAT = 3

cdef uint64_t SIGN = <uint64_t> 1 << 63


cdef inline uint64_t ordered_double(double value, bint is_key) noexcept nogil:
    cdef uint64_t bits = 0x7FF8000000000000U
    if value == value:
        if is_key:
            value += 0.0
        memcpy(&bits, &value, 8)
    return ~bits if bits & SIGN else bits | SIGN


cdef inline void put_big_endian(uint8_t* place, uint64_t word, int64_t width) noexcept nogil:
    cdef int64_t index
    if width == 8:
        word = swap64(word)
        memcpy(place, &word, 8)
        return
    for index in range(width):
        place[index] = <uint8_t> (word >> (8 * (width - 1 - index)))


cdef inline uint64_t big_endian(const uint8_t* place, int64_t width) noexcept nogil:
    cdef uint64_t word = 0
    cdef int64_t index
    if width == 8:
        memcpy(&word, place, 8)
        return swap64(word)
    for index in range(width):
        word = word << 8 | place[index]
    return word


cdef inline uint64_t sized(const uint8_t* place, int64_t width) noexcept nogil:
    cdef uint64_t word = 0
    memcpy(&word, place, <size_t> width)
    return word


cdef void put_words(const uint8_t* values, int64_t width, int32_t kind, bint inverted, uint8_t* out, int64_t stride,
                    int64_t count) noexcept nogil:
    cdef uint64_t flips = ~<uint64_t> 0 if inverted else 0
    cdef uint64_t sign = <uint64_t> 1 << (8 * min(width, 8) - 1) if kind == OF_SIGNED else 0
    cdef uint64_t low
    cdef int64_t row
    for row in range(count):
        if kind >= OF_KEY_FLOAT:
            low = ordered_double((<const double*> values)[row], kind == OF_KEY_FLOAT) ^ flips
            put_big_endian(out + row * stride, low, 8)
        elif width == 8:
            put_big_endian(out + row * stride, (<const uint64_t*> values)[row] ^ sign ^ flips, 8)
        elif width == 16:
            put_big_endian(out + row * stride, sized(values + row * 16 + 8, 8) ^ sign ^ flips, 8)
            put_big_endian(out + row * stride + 8, sized(values + row * 16, 8) ^ flips, 8)
        else:
            put_big_endian(out + row * stride, sized(values + row * width, width) ^ sign ^ flips, width)


cdef void get_words(const uint8_t* rows, int64_t stride, int64_t width, int32_t kind, uint8_t* out,
                    int64_t count) noexcept nogil:
    cdef uint64_t sign = <uint64_t> 1 << (8 * min(width, 8) - 1) if kind == OF_SIGNED else 0
    cdef uint64_t word
    cdef int64_t row
    for row in range(count):
        if kind >= OF_KEY_FLOAT:
            word = big_endian(rows + row * stride, 8)
            word = word ^ SIGN if word & SIGN else ~word
            memcpy(out + row * 8, &word, 8)
        elif width == 16:
            word = big_endian(rows + row * stride, 8) ^ sign
            memcpy(out + row * 16 + 8, &word, 8)
            word = big_endian(rows + row * stride + 8, 8)
            memcpy(out + row * 16, &word, 8)
        else:
            word = big_endian(rows + row * stride, width) ^ sign
            memcpy(out + row * width, &word, <size_t> width)


cdef const uint8_t* address_of(buffer) except? NULL:
    return <const uint8_t*> <size_t> (0 if buffer is None else buffer.address)


def put_ordered(values not None, int kind, bint inverted, out not None, int64_t stride, int64_t at):
    """Write an array of numbers into the rows of a buffer, from byte ``at`` of each; floats are float64."""
    cdef int64_t width = values.type.bit_width // 8
    cdef int64_t count = len(values)
    cdef const uint8_t* numbers = address_of(values.buffers()[1]) + <int64_t> values.offset * width
    cdef uint8_t* rows = <uint8_t*> address_of(out) + at
    if width not in (1, 2, 4, 8, 16) or (kind >= OF_KEY_FLOAT and width != 8):
        raise ValueError(f"{values.type} has no ordered bytes")
    if count * stride > out.size or at + width > stride:
        raise ValueError(f"{count} rows of {width} bytes at {at} of {stride} in {out.size} bytes")
    with nogil:
        put_words(numbers, width, kind, inverted, rows, stride, count)


def get_ordered(rows not None, int64_t stride, int64_t at, int64_t width, int kind):
    """Return the numbers at byte ``at`` of the rows of a fixed-size binary array, as a buffer."""
    cdef int64_t count = len(rows)
    cdef const uint8_t* packed = address_of(rows.buffers()[1]) + <int64_t> rows.offset * stride + at
    if rows.type.byte_width != stride or at + width > stride:
        raise ValueError(f"{width} bytes at {at} of {rows.type}")
    found = pa.allocate_buffer(count * width)
    cdef uint8_t* numbers = <uint8_t*> address_of(found)
    with nogil:
        get_words(packed, stride, width, kind, numbers, count)
    return found


def put_before(words not None, int64_t width, texts not None):
    """Return large_binary values: a row's bytes of ``words``, then its text; offsets and bytes of two buffers.

    Args: words: a buffer with ``width`` bytes for each row; texts: large_binary, null texts are written as empty.
    """
    cdef int64_t count = len(texts)
    cdef const int64_t* offsets = <const int64_t*> address_of(texts.buffers()[1]) + <int64_t> texts.offset
    cdef const uint8_t* data = address_of(texts.buffers()[2])
    cdef const uint8_t* heads = address_of(words)
    cdef int64_t row, size
    if words.size < count * width:
        raise ValueError(f"{count} words of {width} bytes in {words.size} bytes")
    if count == 0:
        return pa.array([], pa.large_binary())
    found_offsets = pa.allocate_buffer((count + 1) * 8)
    found = pa.allocate_buffer(offsets[count] - offsets[0] + count * width)
    cdef int64_t* ends = <int64_t*> address_of(found_offsets)
    cdef uint8_t* out = <uint8_t*> address_of(found)
    ends[0] = 0
    with nogil:
        for row in range(count):
            size = offsets[row + 1] - offsets[row]
            memcpy(out + ends[row], heads + row * width, <size_t> width)
            if size > 0:
                memcpy(out + ends[row] + width, data + offsets[row], <size_t> size)
            ends[row + 1] = ends[row] + width + size
    return pa.Array.from_buffers(pa.large_binary(), count, [None, found_offsets, found], 0)


def texts_behind(rows not None, int64_t width):
    """Return (offsets, bytes) of large_binary values without the first ``width`` bytes of each; nulls are empty."""
    cdef int64_t count = len(rows)
    cdef const int64_t* offsets = <const int64_t*> address_of(rows.buffers()[1]) + <int64_t> rows.offset
    cdef const uint8_t* data = address_of(rows.buffers()[2])
    cdef int64_t row, size
    if count == 0:
        return pa.array([0], pa.int64()).buffers()[1], pa.allocate_buffer(0)
    found_offsets = pa.allocate_buffer((count + 1) * 8)
    found = pa.allocate_buffer(max(offsets[count] - offsets[0], 0))
    cdef int64_t* ends = <int64_t*> address_of(found_offsets)
    cdef uint8_t* out = <uint8_t*> address_of(found)
    ends[0] = 0
    with nogil:
        for row in range(count):
            size = offsets[row + 1] - offsets[row] - width
            if size > 0:
                memcpy(out + ends[row], data + offsets[row] + width, <size_t> size)
            ends[row + 1] = ends[row] + max(size, 0)
    return found_offsets, found
