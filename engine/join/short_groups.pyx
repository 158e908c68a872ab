"""ShortGroups: numbers of groups whose one key is a short text, as names and codes are, by the text itself.

    row ──► its text as three words ──place_of_short_text──► slot: (words, number) ──┬── other words: the next slot
                                                                                     ├── the same: the group's number
                                                                                     └── free: a new group, or none

A hash of a text and a look at the first row of its group, which lies somewhere else, cost three times as much.

Memory: 64 to 128 bytes a group, half as much again while it grows. Texts beyond SHORT_TEXT_BYTES are the caller's.

Held by: tests/join/test_asof_groups.py
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from engine.records.short_text cimport ShortText

cdef enum:
    BITS_MIN = 8


cdef bint reserve_short(ShortGroups* groups) noexcept nogil:
    cdef int64_t old_count = (<int64_t> 1) << groups.bits if groups.slots != NULL else 0
    cdef ShortGroups grown
    cdef int64_t index
    if 2 * (groups.count + 1) <= old_count:
        return True
    grown.bits = <int32_t> max(BITS_MIN, groups.bits + 1)
    grown.count = groups.count
    grown.slots = <ShortSlot*> calloc((<size_t> 1) << grown.bits, sizeof(ShortSlot))
    if grown.slots == NULL:
        return False
    for index in range(old_count):
        if groups.slots[index].text.size:
            slot_of_text(&grown, &groups.slots[index].text)[0] = groups.slots[index]
    free(groups.slots)
    groups[0] = grown
    return True


cdef void clear_short(ShortGroups* groups) noexcept nogil:
    if groups.count:
        memset(groups.slots, 0, sizeof(ShortSlot) << groups.bits)
    groups.count = 0


cdef void free_short(ShortGroups* groups) noexcept nogil:
    free(groups.slots)
    groups.slots = NULL
    groups.bits = 0
    groups.count = 0
