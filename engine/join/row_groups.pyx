"""RowGroups: gives the rows of a join's left side numbers by their keys, and those of the right the same numbers.

    groups = RowGroups(JoinSide(left keys), JoinSide(right keys))
    groups.add(left_rows, ...)              numbers from 0 on, in the order of first rows
    groups.find(right_rows, ...)            the group's number, or NO_GROUP
    groups.clear()

    rows ──┬── the key is one text, a short one ──► ShortGroups: by the text itself ──────┐
           └── others ──► GroupSlots: by hash, then by the keys of the group's first row ──┴──► numbers of both

Keys are equal as in joins; rows with a null key are skipped by the caller. A caller with more groups than the caches
hold parts the rows first. Thread: one. Keys that lie outside are compared where they lie: ``raise_failed_comparison``
afterwards.

Held by: tests/join/test_asof_groups.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from engine.join.join_side cimport JoinSide
from engine.join.short_groups cimport (
    ShortSlot,
    clear_short,
    free_short,
    reserve_short,
    short_text_of_row,
    slot_of_text,
)
from engine.records.arrow_batch cimport KIND_BYTES, KIND_LARGE_BYTES
from engine.records.comparator cimport KeyEquality
from engine.records.group_slots cimport FRESH_LEVEL, GroupSlot, GroupSlots, free_slots, grow_slots
from engine.records.hashing cimport rehash
from engine.records.short_text cimport ShortText


cdef inline uint8_t* first_row(const GroupSlots* groups, const GroupSlot* slot) noexcept nogil:
    return <uint8_t*> <size_t> groups.first_rows[slot.group - 1]


cdef inline GroupSlot* slot_of_row(const GroupSlots* groups, uint64_t hash, const uint8_t* row,
                                   KeyEquality keys) noexcept nogil:
    """Return the slot of a row's group, or the free one where it would be. Args: keys: None: the hash is the key."""
    cdef uint64_t place = hash & <uint64_t> (groups.slot_count - 1)
    cdef GroupSlot* slot = &groups.slots[place]
    while slot.group and (slot.hash != hash or (
            keys is not None and not keys.rows_equal(first_row(groups, slot), row))):
        place = (place + 1) & <uint64_t> (groups.slot_count - 1)
        slot = &groups.slots[place]
    return slot


cdef inline void put_aside(OtherRows* others, int64_t place, uint8_t* row) noexcept nogil:
    others.places[others.count] = <int32_t> place
    others.rows[others.count] = row
    others.count += 1


cdef bint is_text(JoinSide side) noexcept:
    return side.key_count == 1 and side.codec.kinds[side.keys[0]] in (KIND_BYTES, KIND_LARGE_BYTES)


@cython.final
cdef class RowGroups:
    """Args: left, right: JoinSide with the keys that make groups, one at least."""

    def __cinit__(self, JoinSide left not None, JoinSide right not None):
        lefts = [left.keys[position] for position in range(left.key_count)]
        rights = [right.keys[position] for position in range(right.key_count)]
        self._left = left
        self._right = right
        if not left.hash_is_key:
            self._of_left = KeyEquality(left.codec, lefts, left.codec, lefts)
            self._across = KeyEquality(left.codec, lefts, right.codec, rights)
        self._by_texts = is_text(left) and is_text(right)

    def __dealloc__(self):
        free_short(&self._short)
        free_slots(&self._long)
        free(self._long_numbers)

    cdef bint add(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil:
        if self._by_texts:
            if not self._add_short(rows, count, skipped, numbers):
                return False
        else:
            self._take_all(rows, count, skipped, numbers)
        return self._add_others(numbers)

    cdef void find(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil:
        if self._by_texts:
            self._find_short(rows, count, skipped, numbers)
        else:
            self._take_all(rows, count, skipped, numbers)
        self._find_others(numbers)

    cdef void _take_all(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil:
        """Have all rows that have keys looked up by hash."""
        cdef int64_t row
        self._others.count = 0
        for row in range(count):
            numbers[row] = NO_GROUP
            self._others.places[self._others.count] = <int32_t> row
            self._others.rows[self._others.count] = rows[row]
            self._others.count += not skipped[row]

    cdef bint _add_short(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil:
        """Number the rows with short texts, put the others aside."""
        cdef int32_t column = self._left.codec.slots[self._left.keys[0]]
        cdef int64_t row
        cdef ShortText text
        cdef ShortSlot* slot
        self._others.count = 0
        for row in range(count):
            numbers[row] = NO_GROUP
            if skipped[row]:
                continue
            if not short_text_of_row(rows[row], column, &text):
                put_aside(&self._others, row, rows[row])
                continue
            if not reserve_short(&self._short):
                return False
            slot = slot_of_text(&self._short, &text)
            if slot.text.size == 0:
                slot.text = text
                slot.number = self.count
                self._short.count += 1
                self.count += 1
            numbers[row] = <int32_t> slot.number
        return True

    cdef void _find_short(self, uint8_t** rows, int64_t count, const uint8_t* skipped,
                          int32_t* numbers) noexcept nogil:
        """Find the numbers of rows with short texts, put the others aside."""
        cdef int32_t column = self._right.codec.slots[self._right.keys[0]]
        cdef bint has_short = self._short.count > 0
        cdef int64_t row
        cdef ShortText text
        cdef ShortSlot* slot
        self._others.count = 0
        for row in range(count):
            numbers[row] = NO_GROUP
            if skipped[row]:
                continue
            if not short_text_of_row(rows[row], column, &text):
                put_aside(&self._others, row, rows[row])
            elif has_short:
                slot = slot_of_text(&self._short, &text)
                if slot.text.size:
                    numbers[row] = <int32_t> slot.number

    cdef bint _add_others(self, int32_t* numbers) noexcept nogil:
        cdef OtherRows* others = &self._others
        cdef int64_t row
        cdef uint64_t hash
        cdef GroupSlot* slot
        if others.count:
            self._left.hash_rows(others.rows, others.count, others.hashes)
        for row in range(others.count):
            if not self._reserve_long():
                return False
            hash = rehash(others.hashes[row], FRESH_LEVEL)
            slot = slot_of_row(&self._long, hash, others.rows[row], self._of_left)
            if slot.group == 0:
                self._long.first_rows[self._long.count] = <uint64_t> <size_t> others.rows[row]
                self._long_numbers[self._long.count] = self.count
                self._long.count += 1
                self.count += 1
                slot.hash, slot.group = hash, self._long.count
            numbers[others.places[row]] = <int32_t> self._long_numbers[slot.group - 1]
        return True

    cdef void _find_others(self, int32_t* numbers) noexcept nogil:
        cdef OtherRows* others = &self._others
        cdef int64_t row
        cdef uint64_t hash
        cdef GroupSlot* slot
        if others.count == 0 or self._long.count == 0:
            return
        self._right.hash_rows(others.rows, others.count, others.hashes)
        for row in range(others.count):
            hash = rehash(others.hashes[row], FRESH_LEVEL)
            slot = slot_of_row(&self._long, hash, others.rows[row], self._across)
            if slot.group:
                numbers[others.places[row]] = <int32_t> self._long_numbers[slot.group - 1]

    cdef bint _reserve_long(self) noexcept nogil:
        """Have room for one more group by hash; False: there is no memory."""
        cdef void* numbers
        if 2 * (self._long.count + 1) > self._long.slot_count and not grow_slots(&self._long):
            return False
        if self._long_capacity < self._long.slot_count // 2:
            numbers = realloc(self._long_numbers, <size_t> (self._long.slot_count // 2) * sizeof(int64_t))
            if numbers == NULL:
                return False
            self._long_numbers = <int64_t*> numbers
            self._long_capacity = self._long.slot_count // 2
        return True

    cdef void clear(self) noexcept nogil:
        if self._long.count:
            memset(self._long.slots, 0, <size_t> self._long.slot_count * sizeof(GroupSlot))
        self._long.count = 0
        clear_short(&self._short)
        self.count = 0
