# A short text as three words: first 8 bytes, last 8 bytes, size. Of up to 16 bytes that is all of it.
#
#     of 8 to 16 bytes   the first and the last 8, which overlap or meet
#     of 4 to 7 bytes    the first and the last 4
#     of up to 3 bytes   each of them
#
# Two texts of up to SHORT_TEXT_BYTES are equal exactly when these are. The size is kept with 1 added: 0 is no text.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    SHORT_TEXT_BYTES = 16

cdef struct ShortText:
    uint64_t first
    uint64_t last
    uint64_t size               # of the text, and 1

# The words of a text; False when it is too long.
cdef inline bint read_short_text(const uint8_t* text, int64_t size, ShortText* target) noexcept nogil:
    cdef uint32_t part = 0
    target.first = 0
    target.last = 0
    target.size = <uint64_t>size + 1
    if size >= 8:
        if size > SHORT_TEXT_BYTES:
            return False
        memcpy(&target.first, text, 8)
        memcpy(&target.last, text + size - 8, 8)
    elif size >= 4:
        memcpy(&part, text, 4)
        target.first = part
        memcpy(&part, text + size - 4, 4)
        target.last = part
    elif size > 0:
        target.first = text[0] | <uint64_t>text[size >> 1] << 8 | <uint64_t>text[size - 1] << 16
    return True

cdef inline bint equal_short_texts(const ShortText* one, const ShortText* other) noexcept nogil:
    return one.first == other.first and one.last == other.last and one.size == other.size

# The place of a text among 2^bits.
cdef inline int64_t place_of_short_text(const ShortText* text, int32_t bits) noexcept nogil:
    cdef uint64_t hash = text.first * <uint64_t>0x9E3779B97F4A7C15
    hash ^= (text.last + text.size) * <uint64_t>0xC2B2AE3D27D4EB4F
    return <int64_t>((hash ^ (hash >> 32)) * <uint64_t>0x9E3779B97F4A7C15 >> (64 - bits))
