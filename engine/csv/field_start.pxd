# Where a field of CSV begins, so that a quote there opens it.

from libc.stdint cimport int32_t, uint8_t

cdef enum:
    NEWLINE = 10
    RETURN = 13


# Whether a quote opens a field behind that byte.
cdef inline bint opens_field(uint8_t previous, int32_t delimiter) noexcept nogil:
    return previous == delimiter or previous == NEWLINE or previous == RETURN
