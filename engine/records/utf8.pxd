# Whether bytes of strings are UTF-8.

from libc.stdint cimport int64_t, uint8_t

# Whether count values, one behind the other, `ends` of each ascending to size, are UTF-8. Caller guarantees size bytes.
cdef bint are_utf8(const uint8_t* bytes, int64_t size, const int64_t* ends, int64_t count) noexcept nogil
