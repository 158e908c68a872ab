# Extremes: the least value of a frame that slides, in constant work a row.
#
#     clear    push(position, value)    drop(position): rows before it have left the frame    first: the least
#
# A deque of the values that may still become the least: each value that enters removes those behind it that are not
# smaller, so it is in order and its first one is the answer. Values are numbers of 128 bits, or texts that are copied
# when they enter. Where rows never leave, one value is kept.
#
# Memory: 32 bytes a value in the deque, of random values some dozens, of ascending ones a frame's; at most `most`
# bytes, then `is_full`.
#
# Source: the ascending minima algorithm (Richard Harter, 2001).

from libc.stdint cimport int64_t, uint8_t

from engine.accumulators.checked_sums cimport int128

cdef struct Item:
    int64_t position
    int64_t size            # bytes of a text
    uint8_t* text           # a copy, or NULL: a number
    int128 number

cdef struct Extremes:
    Item* items             # [capacity], a ring
    int64_t capacity        # a power of two, or 0
    int64_t first           # index of the first
    int64_t count
    int64_t bytes           # of the ring and the texts
    int64_t most            # bytes
    bint is_full            # more would be needed, or the machine has no memory
    bint slides             # rows leave
    bint of_texts
    bint greatest           # the greatest is wanted, in place of the least

cdef void extremes_clear(Extremes* extremes) noexcept nogil
cdef void extremes_free(Extremes* extremes) noexcept nogil
cdef void extremes_push(Extremes* extremes, int64_t position, int128 number, const uint8_t* text,
                        int64_t size) noexcept nogil
cdef void extremes_drop(Extremes* extremes, int64_t before) noexcept nogil
