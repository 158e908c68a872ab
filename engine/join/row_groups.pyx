"""RowGroups: gives the rows of a join's left side numbers by their keys, and those of the right the same numbers.

    groups = RowGroups(JoinSide(left keys), JoinSide(right keys))
    groups.add(left_rows, ...)              numbers from 0 on, in the order of first rows
    groups.find(right_rows, ...)            the group's number, or NO_GROUP
    groups.clear()

The table is one of ``GroupSlots``, which know the addresses of first rows. Keys are equal as in joins; rows with a null
key are skipped by the caller. Whoever has more groups than the caches hold parts the rows first. Thread: one. Keys that
lie outside are compared where they lie: ``raise_failed_comparison`` afterwards.

Held by: tests/join/test_asof_groups.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from engine.join.join_side cimport JoinSide
from engine.records.comparator cimport KeyEquality
from engine.records.group_slots cimport FRESH_LEVEL, GroupSlot, GroupSlots, free_slots, grow_slots
from engine.records.hashing cimport rehash

cdef enum:
    CHUNK_ROWS = 1024


cdef inline uint8_t* first_row(const GroupSlots* groups, const GroupSlot* slot) noexcept nogil:
    return <uint8_t*> <size_t> groups.first_rows[slot.group - 1]


@cython.final
cdef class RowGroups:
    """Args: left, right: JoinSide with the keys that make groups, one at least."""

    def __cinit__(self, JoinSide left not None, JoinSide right not None):
        lefts = [left.keys[position] for position in range(left.key_count)]
        rights = [right.keys[position] for position in range(right.key_count)]
        self._left = left
        self._right = right
        self._of_left = KeyEquality(left.codec, lefts, left.codec, lefts)
        self._across = KeyEquality(left.codec, lefts, right.codec, rights)
        self._hashes = <uint64_t*> malloc(CHUNK_ROWS * sizeof(uint64_t))
        if self._hashes == NULL:
            raise MemoryError("hashes of groups")

    def __dealloc__(self):
        free_slots(&self._groups)
        free(self._hashes)

    cdef bint add(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil:
        cdef int64_t begin = 0
        cdef int64_t size
        while begin < count:
            size = min(<int64_t> CHUNK_ROWS, count - begin)
            if not self._add_chunk(rows + begin, size, skipped + begin, numbers + begin):
                return False
            begin += size
        return True

    cdef bint _add_chunk(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil:
        cdef bint asks_keys = not self._left.hash_is_key
        cdef int64_t row
        cdef uint64_t place, hash
        cdef GroupSlot* slot
        self._left.hash_rows(rows, count, self._hashes)
        for row in range(count):
            if skipped[row]:
                numbers[row] = NO_GROUP
                continue
            if 2 * (self._groups.count + 1) > self._groups.slot_count and not grow_slots(&self._groups):
                return False
            hash = rehash(self._hashes[row], FRESH_LEVEL)
            place = hash & <uint64_t> (self._groups.slot_count - 1)
            slot = &self._groups.slots[place]
            while slot.group and (slot.hash != hash or (
                    asks_keys and not self._of_left.rows_equal(first_row(&self._groups, slot), rows[row]))):
                place = (place + 1) & <uint64_t> (self._groups.slot_count - 1)
                slot = &self._groups.slots[place]
            if slot.group == 0:
                self._groups.first_rows[self._groups.count] = <uint64_t> <size_t> rows[row]
                self._groups.count += 1
                slot.hash, slot.group = hash, self._groups.count
            numbers[row] = <int32_t> (slot.group - 1)
        return True

    cdef void find(self, uint8_t** rows, int64_t count, const uint8_t* skipped, int32_t* numbers) noexcept nogil:
        cdef int64_t begin = 0
        cdef int64_t size
        while begin < count:
            size = min(<int64_t> CHUNK_ROWS, count - begin)
            self._find_chunk(rows + begin, size, skipped + begin, numbers + begin)
            begin += size

    cdef void _find_chunk(self, uint8_t** rows, int64_t count, const uint8_t* skipped,
                          int32_t* numbers) noexcept nogil:
        cdef bint asks_keys = not self._left.hash_is_key
        cdef int64_t row
        cdef uint64_t place, hash
        cdef GroupSlot* slot
        if self._groups.count:
            self._right.hash_rows(rows, count, self._hashes)
        for row in range(count):
            numbers[row] = NO_GROUP
            if skipped[row] or self._groups.count == 0:
                continue
            hash = rehash(self._hashes[row], FRESH_LEVEL)
            place = hash & <uint64_t> (self._groups.slot_count - 1)
            slot = &self._groups.slots[place]
            while slot.group and (slot.hash != hash or (
                    asks_keys and not self._across.rows_equal(first_row(&self._groups, slot), rows[row]))):
                place = (place + 1) & <uint64_t> (self._groups.slot_count - 1)
                slot = &self._groups.slots[place]
            numbers[row] = <int32_t> (slot.group - 1)

    cdef void clear(self) noexcept nogil:
        if self._groups.count:
            memset(self._groups.slots, 0, <size_t> self._groups.slot_count * sizeof(GroupSlot))
        self._groups.count = 0
