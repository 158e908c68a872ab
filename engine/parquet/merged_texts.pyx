"""MergedTexts: one dictionary of texts for the columns of several row groups, each of which has its own.

    begin_texts ─► for each row group: take its codes ─► merge_texts ─► renumber the codes ─► ... ─► words, offsets

    row group 1   N R A    codes 0 1 2      merged   N R A      0 1 2
    row group 2   A N      codes 0 1                 N R A      2 0

Writers number texts as they meet them, so that dictionaries of a handful of texts differ by their order alone.

Invariants: no two merged texts are equal; those of the first row group keep their numbers. Thread: its owner's.
Held by: tests/parquet/test_group_runs.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from engine.parquet.page_rooms cimport give_back, grow

cdef enum:
    SLOTS_MIN = 64

# of Fowler, Noll and Vo
cdef uint64_t HASH_BEGIN = 0xCBF29CE484222325
cdef uint64_t HASH_FACTOR = 0x100000001B3


cdef void begin_texts(MergedTexts* merged) noexcept nogil:
    merged.count = merged.slot_count = 0


cdef void free_texts(MergedTexts* merged) noexcept nogil:
    give_back(&merged.words)
    give_back(&merged.offsets)
    give_back(&merged.slots)
    give_back(&merged.numbers)


cdef uint64_t hash_of(const uint8_t* text, int64_t size) noexcept nogil:
    cdef uint64_t found = HASH_BEGIN
    cdef int64_t index
    for index in range(size):
        found = (found ^ text[index]) * HASH_FACTOR
    return found ^ (found >> 29)


cdef int64_t slot_of(const MergedTexts* merged, const uint8_t* text, int64_t size) noexcept nogil:
    """The slot of a text, or the empty one where it belongs."""
    cdef const int32_t* slots = <const int32_t*>merged.slots.data
    cdef const uint32_t* offsets = <const uint32_t*>merged.offsets.data
    cdef int64_t last = merged.slot_count - 1
    cdef int64_t slot = <int64_t>(hash_of(text, size) & <uint64_t>last)
    cdef int64_t number
    while slots[slot]:
        number = slots[slot] - 1
        if <int64_t>(offsets[number + 1] - offsets[number]) == size and (
                memcmp(merged.words.data + offsets[number], text, <size_t>size) == 0):
            return slot
        slot = (slot + 1) & last
    return slot


cdef bint make_slots(MergedTexts* merged, int64_t texts) noexcept nogil:
    """Have slots for so many texts, half of them empty at least."""
    cdef const uint32_t* offsets
    cdef int64_t slots = max(<int64_t>SLOTS_MIN, merged.slot_count)
    cdef int64_t number
    while slots < 2 * texts:
        slots *= 2
    if slots == merged.slot_count:
        return True
    if not grow(&merged.slots, slots * 4):
        return False
    memset(merged.slots.data, 0, <size_t>slots * 4)
    merged.slot_count = slots
    offsets = <const uint32_t*>merged.offsets.data
    for number in range(merged.count):
        (<int32_t*>merged.slots.data)[slot_of(
            merged, merged.words.data + offsets[number], offsets[number + 1] - offsets[number])] = <int32_t>number + 1
    return True


cdef bint merge_texts(MergedTexts* merged, const uint8_t* words, const uint32_t* offsets, int64_t count) noexcept nogil:
    cdef int64_t known = merged.count
    cdef int64_t index, size, slot, used
    cdef uint32_t* ends
    if not grow(&merged.offsets, (known + count + 1) * 4) or not grow(&merged.numbers, (count + 1) * 4):
        return False
    ends = <uint32_t*>merged.offsets.data
    if known == 0:
        ends[0] = 0
    used = ends[known]
    if count and not grow(&merged.words, used + offsets[count]):
        return False
    if not make_slots(merged, known + count):
        return False
    for index in range(count):
        size = offsets[index + 1] - offsets[index]
        slot = slot_of(merged, words + offsets[index], size)
        if (<int32_t*>merged.slots.data)[slot] == 0:
            memcpy(merged.words.data + used, words + offsets[index], <size_t>size)
            used += size
            merged.count += 1
            ends[merged.count] = <uint32_t>used
            (<int32_t*>merged.slots.data)[slot] = <int32_t>merged.count
        (<int32_t*>merged.numbers.data)[index] = (<int32_t*>merged.slots.data)[slot] - 1
    return True


cdef void renumber(const MergedTexts* merged, int64_t count, int32_t* codes, int64_t rows) noexcept nogil:
    cdef const int32_t* numbers = <const int32_t*>merged.numbers.data
    cdef int64_t row, index
    cdef bint is_same = True
    for index in range(count):
        is_same = is_same and numbers[index] == index
    if is_same:
        return
    for row in range(rows):
        codes[row] = numbers[codes[row]] if 0 <= codes[row] < count else 0
