# GroupSlots: an open table from the hashes of keys to the numbers of their groups.

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    FRESH_LEVEL = 255           # of rehash: partitions have used other bits

# Groups are counted from 1, so that a slot of zeros is free.
cdef struct GroupSlot:
    uint64_t hash
    int64_t group

cdef struct GroupSlots:
    GroupSlot* slots
    int64_t slot_count          # a power of two, at least twice as many as groups
    uint64_t* first_rows        # [slot_count / 2] what tells the first row of a group: its number, or its address
    int64_t count               # groups

# Double the slots; False: there is no memory.
cdef bint grow_slots(GroupSlots* groups) noexcept nogil
# Give the memory back; idempotent.
cdef void free_slots(GroupSlots* groups) noexcept nogil
