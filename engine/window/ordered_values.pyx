"""Kernels of OrderedValues: the values of a sliding frame in their order; what it is, is in ``ordered_values.pxd``.

Held by: tests/window/test_frame_quantiles.py
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

from engine.accumulators.checked_sums cimport int128


cdef void ordered_clear(OrderedValues* ordered) noexcept nogil:
    """Forget all values; one chunk stays."""
    while ordered.chunk_count > 1:
        ordered.chunk_count -= 1
        free(ordered.chunks[ordered.chunk_count])
    if ordered.chunk_count:
        ordered.chunks[0].count = 0
    ordered.count = ordered.at = ordered.before = 0


cdef void ordered_free(OrderedValues* ordered) noexcept nogil:
    """Give the memory back."""
    ordered_clear(ordered)
    if ordered.chunk_count:
        free(ordered.chunks[0])
    free(ordered.chunks)
    ordered.chunks = NULL
    ordered.chunk_count = ordered.capacity = 0


cdef bint add_chunk(OrderedValues* ordered, int64_t index) noexcept nogil:
    """Put an empty chunk in front of another one; False where there is no memory."""
    cdef int64_t capacity = max(<int64_t> 16, 2 * ordered.capacity)
    cdef Chunk** chunks
    cdef Chunk* chunk
    if ordered.chunk_count > 0 and (ordered.chunk_count + 1) * <int64_t> sizeof(Chunk) > ordered.most:
        return False
    if ordered.chunk_count == ordered.capacity:
        chunks = <Chunk**> realloc(ordered.chunks, <size_t> capacity * sizeof(Chunk*))
        if chunks == NULL:
            return False
        ordered.chunks, ordered.capacity = chunks, capacity
    chunk = <Chunk*> malloc(sizeof(Chunk))
    if chunk == NULL:
        return False
    chunk.count = 0
    memmove(ordered.chunks + index + 1, ordered.chunks + index,
            <size_t> (ordered.chunk_count - index) * sizeof(Chunk*))
    ordered.chunks[index] = chunk
    ordered.chunk_count += 1
    ordered.at = ordered.before = 0
    return True


cdef void remove_chunk(OrderedValues* ordered, int64_t index) noexcept nogil:
    free(ordered.chunks[index])
    ordered.chunk_count -= 1
    memmove(ordered.chunks + index, ordered.chunks + index + 1,
            <size_t> (ordered.chunk_count - index) * sizeof(Chunk*))
    ordered.at = ordered.before = 0


cdef int64_t chunk_of(const OrderedValues* ordered, int128 value) noexcept nogil:
    """Return the first chunk whose last value is not less than a value, or the last chunk."""
    cdef int64_t low = 0
    cdef int64_t high = ordered.chunk_count - 1
    cdef int64_t middle
    while low < high:
        middle = (low + high) >> 1
        if ordered.chunks[middle].values[ordered.chunks[middle].count - 1] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t place_in(const Chunk* chunk, int128 value) noexcept nogil:
    """Return the place of the first value in a chunk that is not less than a value."""
    cdef int64_t low = 0
    cdef int64_t high = chunk.count
    cdef int64_t middle
    while low < high:
        middle = (low + high) >> 1
        if chunk.values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef void ordered_push(OrderedValues* ordered, int128 value) noexcept nogil:
    """Take a value that enters."""
    cdef int64_t index, place, half
    cdef Chunk* chunk
    if ordered.chunk_count == 0 and not add_chunk(ordered, 0):
        ordered.is_full = True
        return
    index = chunk_of(ordered, value)
    if ordered.chunks[index].count == CHUNK:
        if not add_chunk(ordered, index + 1):
            ordered.is_full = True
            return
        chunk = ordered.chunks[index]
        # values that rise fill their chunks
        half = CHUNK - 1 if index == ordered.chunk_count - 2 and chunk.values[CHUNK - 1] <= value else CHUNK // 2
        memcpy(ordered.chunks[index + 1].values, chunk.values + half, <size_t> (CHUNK - half) * sizeof(int128))
        ordered.chunks[index + 1].count = CHUNK - half
        chunk.count = half
        index += value > chunk.values[half - 1]
    chunk = ordered.chunks[index]
    place = place_in(chunk, value)
    memmove(chunk.values + place + 1, chunk.values + place, <size_t> (chunk.count - place) * sizeof(int128))
    chunk.values[place] = value
    chunk.count += 1
    ordered.count += 1
    ordered.before += index < ordered.at


cdef void ordered_drop(OrderedValues* ordered, int128 value) noexcept nogil:
    """Forget a value that leaves, which is there."""
    cdef int64_t index = chunk_of(ordered, value)
    cdef Chunk* chunk = ordered.chunks[index]
    cdef Chunk* other
    cdef int64_t place = place_in(chunk, value)
    memmove(chunk.values + place, chunk.values + place + 1, <size_t> (chunk.count - place - 1) * sizeof(int128))
    chunk.count -= 1
    ordered.count -= 1
    ordered.before -= index < ordered.at
    if chunk.count == 0 and ordered.chunk_count > 1:
        remove_chunk(ordered, index)
    elif chunk.count < CHUNK // 4 and index + 1 < ordered.chunk_count:
        other = ordered.chunks[index + 1]
        if chunk.count + other.count <= CHUNK // 2:
            memcpy(chunk.values + chunk.count, other.values, <size_t> other.count * sizeof(int128))
            chunk.count += other.count
            remove_chunk(ordered, index + 1)


cdef int128 ordered_at(OrderedValues* ordered, int64_t place) noexcept nogil:
    """Return the value at a place, counted from 0, which is there."""
    while place < ordered.before:
        ordered.at -= 1
        ordered.before -= ordered.chunks[ordered.at].count
    while place >= ordered.before + ordered.chunks[ordered.at].count:
        ordered.before += ordered.chunks[ordered.at].count
        ordered.at += 1
    return ordered.chunks[ordered.at].values[place - ordered.before]
