"""Loops over characters and digits: translation of characters, characters by their codes, integers as digits.

    translated(values, sources, targets)    large binary: each character of ``sources`` for the one at its place
    texts_of_codes(codes)                   large binary: the character of each int64
    first_codes(values)                     int64: the code of the first character, 0 of an empty text
    digits_of(numbers, bits)                large binary: the bits of int64 values in digits of 1 or 4 bits
    integers_of(values, base)               int64 and int8: texts of digits as numbers, and whether they are

    binary array ──► characters ──► room for the longest result ──► offsets, bytes

Nulls are computed like values: the caller sets them.

Invariants: runs without the GIL; what cannot be a character raises ArrowInvalid.

Held by: tests/expressions/test_character_functions.py
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

import pyarrow as pa

from engine.expressions.byte_values cimport Values, begin_of, code_points, values_of
from engine.expressions.digest_kernels cimport drey_hex_digits
from engine.records.utf8 cimport put_utf8


cdef inline int32_t code_at(const uint8_t* data, int64_t left, int* size) noexcept nogil:
    """Return the first character, and set its bytes."""
    cdef int step
    cdef int32_t code = data[0]
    size[0] = 1 if code < 0xC0 else 2 if code < 0xE0 else 3 if code < 0xF0 else 4
    if size[0] > left:
        size[0] = <int> left
    if size[0] == 1:
        return code
    code &= 0xFF >> (size[0] + 1)
    for step in range(1, size[0]):
        code = code << 6 | data[step] & 63
    return code


def translated(values not None, list sources not None, list targets not None):
    """Return texts with characters replaced by others; a target of -1 leaves the character out."""
    cdef Values source
    cdef int64_t index, at, end, total, written = 0, place, count = len(sources)
    cdef int size = 0
    cdef int32_t code
    if len(values) == 0:
        return pa.nulls(0, pa.large_binary())
    source = values_of(values)
    total = begin_of(&source, source.count) - begin_of(&source, 0)
    room, offsets = pa.allocate_buffer(4 * total + 4), pa.allocate_buffer(8 * (source.count + 1))
    cdef uint8_t* out = <uint8_t*> <size_t> room.address
    cdef int64_t* ends = <int64_t*> <size_t> offsets.address
    cdef int32_t* pairs = <int32_t*> malloc(<size_t> (2 * count + 2) * sizeof(int32_t))
    if pairs == NULL:
        raise MemoryError(f"{count} characters")
    for place, given in enumerate(sources + targets):
        pairs[place] = given
    ends[0] = 0
    with nogil:
        for index in range(source.count):
            at, end = begin_of(&source, index), begin_of(&source, index + 1)
            while at < end:
                code = code_at(source.data + at, end - at, &size)
                for place in range(count):
                    if pairs[place] == code:
                        if pairs[count + place] >= 0:
                            written += put_utf8(out + written, <uint32_t> pairs[count + place])
                        break
                else:
                    for place in range(size):
                        out[written + place] = source.data[at + place]
                    written += size
                at += size
            ends[index + 1] = written
        free(pairs)
    return pa.Array.from_buffers(pa.large_binary(), source.count, [None, offsets, room.slice(0, written)])


cdef const int64_t* numbers_of(array) except? NULL:
    """Return the address of the values of an int64 array."""
    if array.type != pa.int64():
        raise ValueError(f"expected int64, not {array.type}")
    return (<const int64_t*> <size_t> array.buffers()[1].address) + <int64_t> array.offset


def texts_of_codes(codes not None):
    """Return the character of each code; ArrowInvalid where there is none. There are no nulls."""
    cdef int64_t index, count = len(codes), written = 0, failed = -1
    if count == 0:
        return pa.nulls(0, pa.large_binary())
    cdef const int64_t* numbers = numbers_of(codes)
    room, offsets = pa.allocate_buffer(4 * count), pa.allocate_buffer(8 * (count + 1))
    cdef uint8_t* out = <uint8_t*> <size_t> room.address
    cdef int64_t* ends = <int64_t*> <size_t> offsets.address
    ends[0] = 0
    with nogil:
        for index in range(count):
            if not 0 <= numbers[index] <= 0x10FFFF or 0xD800 <= numbers[index] <= 0xDFFF:
                failed = index
                break
            written += put_utf8(out + written, <uint32_t> numbers[index])
            ends[index + 1] = written
    if failed >= 0:
        raise pa.ArrowInvalid(f"{numbers[failed]} is the code of no character")
    return pa.Array.from_buffers(pa.large_binary(), count, [None, offsets, room.slice(0, written)])


def first_codes(values not None):
    """Return the code of the first character of each text, 0 of an empty one."""
    cdef Values source
    cdef int64_t index, at, end
    cdef int size = 0
    if len(values) == 0:
        return pa.nulls(0, pa.int64())
    source = values_of(values)
    buffer = pa.allocate_buffer(source.count * 8)
    cdef int64_t* found = <int64_t*> <size_t> buffer.address
    with nogil:
        for index in range(source.count):
            at, end = begin_of(&source, index), begin_of(&source, index + 1)
            found[index] = code_at(source.data + at, end - at, &size) if at < end else 0
    return pa.Array.from_buffers(pa.int64(), source.count, [None, buffer], null_count=0)


def digits_of(values not None, int bits):
    """Return the bits of int64 values in digits of so many bits, without zeros in front; negative ones have all 64."""
    cdef int64_t index, count = len(values), written = 0
    cdef int shift
    cdef uint64_t word
    if count == 0:
        return pa.nulls(0, pa.large_binary())
    cdef const int64_t* numbers = numbers_of(values)
    room, offsets = pa.allocate_buffer(64 // bits * count), pa.allocate_buffer(8 * (count + 1))
    cdef uint8_t* out = <uint8_t*> <size_t> room.address
    cdef int64_t* ends = <int64_t*> <size_t> offsets.address
    cdef uint8_t digit
    ends[0] = 0
    with nogil:
        for index in range(count):
            word, shift = <uint64_t> numbers[index], 64 - bits
            while shift > 0 and word >> shift == 0:
                shift -= bits
            while shift >= 0:
                digit = drey_hex_digits[word >> shift & ((1 << bits) - 1)]
                out[written] = digit - 32 if digit > 57 else digit
                written += 1
                shift -= bits
            ends[index + 1] = written
    return pa.Array.from_buffers(pa.large_binary(), count, [None, offsets, room.slice(0, written)])


cdef inline bint integer_of(const uint8_t* data, int64_t size, int base, int64_t* out) noexcept nogil:
    """Read a sign and digits; return whether they are a number of 64 bits."""
    cdef int64_t at = 0
    cdef uint64_t found = 0, limit, digit
    cdef bint is_negative = size > 0 and data[0] == 45
    if size > 0 and (data[0] == 45 or data[0] == 43):
        at = 1
    if at == size:
        return False
    limit = (<uint64_t> 1 << 63) - (0 if is_negative else 1)
    while at < size:
        digit = data[at]
        digit = digit - 48 if 48 <= digit <= 57 else (digit | 32) - 87 if 97 <= digit | 32 <= 122 else 99
        if digit >= <uint64_t> base or found > (limit - digit) // <uint64_t> base:
            return False
        found = found * base + digit
        at += 1
    out[0] = <int64_t> (0 - found if is_negative else found)
    return True


def integers_of(values not None, int base):
    """Return the numbers that texts are in a base, and whether each is one, as int8."""
    cdef Values source
    cdef int64_t index, at
    if len(values) == 0:
        return pa.nulls(0, pa.int64()), pa.nulls(0, pa.int8())
    source = values_of(values)
    buffer, marks = pa.allocate_buffer(source.count * 8), pa.allocate_buffer(source.count)
    cdef int64_t* found = <int64_t*> <size_t> buffer.address
    cdef int8_t* fits = <int8_t*> <size_t> marks.address
    with nogil:
        for index in range(source.count):
            at = begin_of(&source, index)
            found[index] = 0
            fits[index] = integer_of(source.data + at, begin_of(&source, index + 1) - at, base, &found[index])
    numbers = pa.Array.from_buffers(pa.int64(), source.count, [None, buffer], null_count=0)
    return numbers, pa.Array.from_buffers(pa.int8(), source.count, [None, marks], null_count=0)
