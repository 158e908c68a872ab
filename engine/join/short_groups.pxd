# ShortGroups: numbers of groups whose one key is a short text, by the text itself.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.byte_kernels cimport load64
from engine.records.outside_values cimport PREFIX_OFFSET, is_outside, referenced_bytes
from engine.records.short_text cimport SHORT_TEXT_BYTES, ShortText, equal_short_texts, place_of_short_text

# A size of 0 in the text is a free slot.
cdef struct ShortSlot:
    ShortText text
    int64_t number

cdef struct ShortGroups:
    ShortSlot* slots
    int32_t bits                # 2^bits slots, at least twice as many as groups
    int64_t count               # groups

# A text of up to SHORT_TEXT_BYTES in three words, as those of ShortText but for up to 8 bytes, of which the first word
# alone is made. There are 8 bytes in front of it: how long it is makes no difference to the way that is taken.
cdef inline void read_text(const uint8_t* text, uint64_t size, ShortText* target) noexcept nogil:
    target.size = size + 1
    target.last = 0
    if size > 8:
        target.first = load64(text)
        target.last = load64(text + size - 8)
    elif size:
        target.first = load64(text + size - 8) >> (64 - 8 * size)
    else:
        target.first = 0

# The text of a row's slot; False: it is long. In front of a value there is the row's head, or that of a reference.
cdef inline bint short_text_of_row(const uint8_t* row, int32_t slot, ShortText* text) noexcept nogil:
    cdef uint64_t word = load64(row + slot)
    cdef const uint8_t* value = row + (word & 0xFFFFFFFFU)
    if not is_outside(word):
        if word >> 32 > SHORT_TEXT_BYTES:
            return False
        read_text(value, word >> 32, text)
        return True
    if referenced_bytes(value) > SHORT_TEXT_BYTES:
        return False
    read_text(value + PREFIX_OFFSET, referenced_bytes(value), text)
    return True

# The slot of a text, or the free one where it would be. There are slots.
cdef inline ShortSlot* slot_of_text(const ShortGroups* groups, const ShortText* text) noexcept nogil:
    cdef int64_t place = place_of_short_text(text, groups.bits)
    while groups.slots[place].text.size and not equal_short_texts(&groups.slots[place].text, text):
        place = (place + 1) & (((<int64_t> 1) << groups.bits) - 1)
    return groups.slots + place

# Have room for one more group; False: there is no memory.
cdef bint reserve_short(ShortGroups* groups) noexcept nogil
# Forget the groups.
cdef void clear_short(ShortGroups* groups) noexcept nogil
# Give the memory back; idempotent.
cdef void free_short(ShortGroups* groups) noexcept nogil
