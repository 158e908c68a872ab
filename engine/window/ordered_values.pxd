# OrderedValues: the values of a frame in their order, so that the one at any place is found.
#
#     ordered_clear    ordered_push(value)    ordered_drop(value): one that is there    ordered_at(place) -> value
#
#     chunks   [1 3 3 7 . .] [8 9 . . . .] [12 12 15 20 21 .]      each in order, all of them one behind the other
#                                 ▲
#                                 └─ at, before = 4                 the chunk of the last place that was asked for
#
# A value is found by halving, chunks by their last values, and moves the rest of its chunk by one place. The place that
# a frame asks for moves by one a row, so its chunk is next to that of the place before.
#
# Memory: 16 bytes a value in chunks of CHUNK, neighbours that are half empty together become one; at most `most` bytes,
# then `is_full`.

from libc.stdint cimport int64_t

from engine.accumulators.checked_sums cimport int128

cdef enum:
    CHUNK = 256

cdef struct Chunk:
    int64_t count
    int128[CHUNK] values

cdef struct OrderedValues:
    Chunk** chunks
    int64_t chunk_count
    int64_t capacity        # of chunks
    int64_t count           # values
    int64_t at              # a chunk, and the values in those before it
    int64_t before
    int64_t most            # bytes
    bint is_full            # more would be needed, or the machine has no memory

cdef void ordered_clear(OrderedValues* ordered) noexcept nogil
cdef void ordered_free(OrderedValues* ordered) noexcept nogil
cdef void ordered_push(OrderedValues* ordered, int128 value) noexcept nogil
cdef void ordered_drop(OrderedValues* ordered, int128 value) noexcept nogil
cdef int128 ordered_at(OrderedValues* ordered, int64_t place) noexcept nogil
