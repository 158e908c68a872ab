# Values of bytes where they lie: binary arrays as an address and offsets, texts as their characters.
#
#     values_of(array) -> Values               of binary or large binary; the array must live as long
#     code_points(data, size, out) -> count    the characters of UTF-8; bytes that are none count as one each

from libc.stdint cimport int32_t, int64_t, uint8_t

import pyarrow as pa


cdef struct Values:
    const uint8_t* data
    const int32_t* narrow  # offsets, one of the two is NULL
    const int64_t* wide
    int64_t count


cdef inline int64_t begin_of(const Values* values, int64_t index) noexcept nogil:
    return values.narrow[index] if values.wide == NULL else values.wide[index]


cdef inline Values values_of(array) except *:
    cdef Values found
    if array.type not in (pa.binary(), pa.large_binary()):
        raise ValueError(f"bytes as {array.type}")
    _, offsets, data = array.buffers()
    found.count = len(array)
    found.data = NULL
    if data is not None:
        found.data = <const uint8_t*> <size_t> data.address
    found.narrow = NULL
    found.wide = NULL
    if array.type == pa.binary():
        found.narrow = (<const int32_t*> <size_t> offsets.address) + <int64_t> array.offset
    else:
        found.wide = (<const int64_t*> <size_t> offsets.address) + <int64_t> array.offset
    return found


cdef inline int64_t code_points(const uint8_t* data, int64_t size, int32_t* out) noexcept nogil:
    cdef int64_t index = 0, count = 0
    cdef int more, step
    cdef int32_t code
    while index < size:
        code = data[index]
        more = 0 if code < 0xC0 else 1 if code < 0xE0 else 2 if code < 0xF0 else 3
        if index + more >= size:
            more = <int> (size - index - 1)
        for step in range(more):
            code = code << 6 ^ data[index + step + 1]
        out[count] = code
        count += 1
        index += more + 1
    return count
