"""GroupSlots: an open table from the hashes of keys to the numbers of their groups, for rows that lie somewhere else.

    row ──hash──► slot: (hash, group) ──┬── another hash, or other keys than the group's first row: the next slot
                                        ├── the same keys: its group
                                        └── free: a new group, or none

The caller of a look-up compares keys itself: rows of a batch (``group_order``), rows as bytes (``row_groups``). Memory:
40 bytes a group, twice that while it grows.

Held by: tests/window/test_group_order.py
Held by: tests/join/test_asof_groups.py
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc

cdef enum:
    SLOTS_MIN = 1024


cdef bint grow_slots(GroupSlots* groups) noexcept nogil:
    cdef int64_t slot_count = max(<int64_t> SLOTS_MIN, 2 * groups.slot_count)
    cdef GroupSlot* slots = <GroupSlot*> calloc(<size_t> slot_count, sizeof(GroupSlot))
    cdef uint64_t* first_rows = <uint64_t*> realloc(groups.first_rows, <size_t> (slot_count // 2) * sizeof(uint64_t))
    cdef int64_t index
    cdef uint64_t place
    if first_rows != NULL:
        groups.first_rows = first_rows
    if slots == NULL or first_rows == NULL:
        free(slots)
        return False
    for index in range(groups.slot_count):
        if groups.slots[index].group:
            place = groups.slots[index].hash & <uint64_t> (slot_count - 1)
            while slots[place].group:
                place = (place + 1) & <uint64_t> (slot_count - 1)
            slots[place] = groups.slots[index]
    free(groups.slots)
    groups.slots = slots
    groups.slot_count = slot_count
    return True


cdef void free_slots(GroupSlots* groups) noexcept nogil:
    free(groups.slots)
    free(groups.first_rows)
    groups.slots = NULL
    groups.first_rows = NULL
    groups.slot_count = 0
    groups.count = 0
