# Room: memory of pages, which grows, is used again, and is kept for other columns when its own is at its end.

from libc.stdint cimport int64_t, uint8_t

# With PAGE_SLACK bytes more than its capacity.
cdef struct Room:
    uint8_t* data
    int64_t capacity

# Make room for so many bytes, keeping what is there. False: there is no memory.
cdef bint grow(Room* room, int64_t size) noexcept nogil
# Give memory back, which other columns may get.
cdef void give_back(Room* room) noexcept nogil
