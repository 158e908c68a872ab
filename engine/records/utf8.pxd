# UTF-8: whether bytes of strings are that, and a character as such.

from libc.stdint cimport int64_t, uint8_t, uint32_t

# Whether count values, one behind the other, `ends` of each ascending to size, are UTF-8. Caller guarantees size bytes.
cdef bint are_utf8(const uint8_t* bytes, int64_t size, const int64_t* ends, int64_t count) noexcept nogil


# Write a character that has a code of Unicode; return its bytes, at most four.
cdef inline int64_t put_utf8(uint8_t* out, uint32_t point) noexcept nogil:
    if point < 0x80:
        out[0] = <uint8_t>point
        return 1
    if point < 0x800:
        out[0] = <uint8_t>(0xC0 | point >> 6)
        out[1] = <uint8_t>(0x80 | point & 63)
        return 2
    if point < 0x10000:
        out[0] = <uint8_t>(0xE0 | point >> 12)
        out[1] = <uint8_t>(0x80 | point >> 6 & 63)
        out[2] = <uint8_t>(0x80 | point & 63)
        return 3
    out[0] = <uint8_t>(0xF0 | point >> 18)
    out[1] = <uint8_t>(0x80 | point >> 12 & 63)
    out[2] = <uint8_t>(0x80 | point >> 6 & 63)
    out[3] = <uint8_t>(0x80 | point & 63)
    return 4
