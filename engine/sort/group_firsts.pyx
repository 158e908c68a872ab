"""GroupFirsts: keeps rows out of a sort that cannot be among the first ones of their group, as they come.

    firsts = group_firsts(codec, keys, GroupLimit("row_number", 3, partition_count=1, order_count=1), pool)

    row ──hash──► group: its first rows so far ──┬── fewer than are wanted, or unknown: placed
                                                 ├── the last of them comes before the row: dropped
                                                 └── else: placed, or written over the last of them

Rows are sorted that are left: of n rows in a group, in any order, about as many as are wanted where all rows have one
size, else that many times the logarithm of n. The places of a group, in order of arrival, have its first rows in their
order; so rows with equal keys stay in order of arrival, although rows are written over others.

Groups are those of one memory of the sort; the rows that leave it were among the first of it. ``GroupCut`` drops what
is beyond the limit when the memory is sorted. Where most groups are new, or few rows are left out, it ends: what it
costs is then that of some thousand rows.

Only row_number and rank of few rows: of dense_rank it is not known how many rows come before.

Memory, of the pool: 16 bytes a group for one row and 8 more for each further one, two to four times that for room.

Held by: tests/sort/test_group_firsts.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from engine.memory.page_pool cimport PagePool
from engine.records.comparator cimport KeyEquality, RowComparator
from engine.records.group_slots cimport FRESH_LEVEL
from engine.records.hashing cimport hash_rows, rehash
from engine.records.row_codec cimport RowCodec, row_size

cdef enum:
    WANTED_MAX = 8          # rows of a group
    SLOTS_MIN = 1024
    JUDGED_MIN = 1 << 16    # rows after which it is asked whether it pays
    KNOWN_SHARE = 16        # one in so many is of a known group, or else there are too many groups
    LEFT_OUT_SHARE = 8      # later, one in so many is left out


def group_firsts(codec, keys, limit, pool):
    """Return GroupFirsts for a GroupLimit, or None: it would not help."""
    if limit.function == "dense_rank" or not 1 <= limit.count <= WANTED_MAX or limit.partition_count == 0:
        return None
    return GroupFirsts(codec, keys, limit, pool)


@cython.final
cdef class GroupFirsts:
    """Args: keys: of the sort; limit: GroupLimit; pool: of the rows."""

    def __cinit__(self, RowCodec codec not None, keys, limit, PagePool pool not None):
        cdef int64_t partition_count = limit.partition_count
        cdef int32_t index
        names = codec.schema.names
        columns = [names.index(key.column) for key in keys[:partition_count]]
        self._codec = codec
        self._pool = pool
        self._groups = KeyEquality(codec, columns, codec, columns)
        self._keeps_peers = limit.function == "rank"
        order_end = partition_count + limit.order_count if self._keeps_peers else len(keys)
        self._order = RowComparator(codec, keys[partition_count:order_end])
        self._writes_over = codec.is_fixed and not self._keeps_peers
        self._most = limit.count
        self._width = 1 + self._most
        self._column_count = len(columns)
        self._columns = <int32_t*> malloc(<size_t> len(columns) * sizeof(int32_t))
        self._swapped = <uint8_t*> malloc(<size_t> codec.fixed_size)
        if self._columns == NULL or self._swapped == NULL:
            raise MemoryError()
        for index in range(self._column_count):
            self._columns[index] = columns[index]

    def __dealloc__(self):
        free(self._columns)
        free(self._swapped)

    cdef void hash(self, uint8_t** rows, int64_t count, uint64_t* hashes) noexcept nogil:
        hash_rows(self._codec, self._columns, self._column_count, rows, count, hashes)

    cdef bint pays(self) noexcept nogil:
        if self._seen < JUDGED_MIN:
            return True
        if self._known * KNOWN_SHARE < self._seen:
            return False
        return self._seen < 4 * JUDGED_MIN or self._left_out * LEFT_OUT_SHARE >= self._seen

    cdef int64_t _bytes_of(self, int64_t slot_count) noexcept nogil:
        return slot_count * self._width * <int64_t> sizeof(uint64_t)

    cdef bint reserve(self, int64_t group_count, int64_t page_limit) noexcept nogil:
        cdef int64_t slot_count = max(<int64_t> SLOTS_MIN, self._slot_count)
        cdef int64_t page_size = self._pool.page_size
        cdef uint64_t* slots
        cdef uint64_t* slot
        cdef int64_t index, pages
        cdef uint64_t place
        if self._is_full:
            return False
        while slot_count < 2 * (self._group_count + group_count):
            slot_count *= 2
        if slot_count == self._slot_count:
            return True
        pages = (self._bytes_of(slot_count) + page_size - 1) // page_size
        slots = NULL
        if pages <= page_limit:
            slots = <uint64_t*> self._pool.take_large(self._bytes_of(slot_count), False)
        if slots == NULL:
            self._is_full = True
            return False
        memset(slots, 0, <size_t> self._bytes_of(slot_count))
        for index in range(self._slot_count):
            slot = self._slots + index * self._width
            if slot[0] == 0:
                continue
            place = (slot[0] >> 1) & <uint64_t> (slot_count - 1)
            while slots[place * <uint64_t> self._width] != 0:
                place = (place + 1) & <uint64_t> (slot_count - 1)
            memcpy(slots + place * <uint64_t> self._width, slot, <size_t> self._width * sizeof(uint64_t))
        if self._slots != NULL:
            self._pool.give_large(<uint8_t*> self._slots, self._bytes_of(self._slot_count))
        self._slots = slots
        self._slot_count = slot_count
        self.pages = pages
        return True

    cdef uint64_t* _slot_of(self, const uint8_t* row, uint64_t tag) noexcept nogil:
        """Return the slot of a row's group, or a free one."""
        cdef uint64_t mask = <uint64_t> (self._slot_count - 1)
        cdef uint64_t place = (tag >> 1) & mask
        cdef uint64_t* slot
        while True:
            slot = self._slots + place * <uint64_t> self._width
            if slot[0] == 0 or (slot[0] == tag and self._groups.rows_equal(<const uint8_t*> slot[1], row)):
                return slot
            place = (place + 1) & mask

    cdef Verdict judge(self, const uint8_t* row, uint64_t hash) noexcept nogil:
        cdef uint64_t tag = rehash(hash, FRESH_LEVEL) | 1
        cdef uint64_t* slot
        cdef uint64_t* rows
        cdef int64_t count = self._most
        cdef int order
        self._seen += 1
        slot = self._slot_of(row, tag) if self._slot_count else NULL
        if slot == NULL or slot[0] == 0:
            if self._is_full:
                return VERDICT_UNTOLD
            slot[0] = tag
            self._group_count += 1
            self._found = slot + 1
            return VERDICT_PLACE
        self._known += 1
        rows = slot + 1
        self._found = rows
        if rows[count - 1] == 0:
            return VERDICT_PLACE
        order = self._order.compare(<const uint8_t*> rows[count - 1], row)
        if order < 0 or (order == 0 and not self._keeps_peers):
            self._left_out += 1
            return VERDICT_TAKEN
        if order == 0:
            return VERDICT_UNTOLD
        if not self._writes_over:
            return VERDICT_PLACE
        self._left_out += 1
        self._shift(rows, count - 1, row)
        return VERDICT_TAKEN

    cdef void _shift(self, uint64_t* rows, int64_t last, const uint8_t* row) noexcept nogil:
        """Write a row to the place that it has among those of its group, and those behind it one place further."""
        cdef size_t size = row_size(row)
        cdef int64_t place = last
        while place > 0 and self._order.compare(<const uint8_t*> rows[place - 1], row) > 0:
            memcpy(<uint8_t*> rows[place], <const uint8_t*> rows[place - 1], size)
            place -= 1
        memcpy(<uint8_t*> rows[place], row, size)

    cdef void told(self, uint8_t* placed) noexcept nogil:
        cdef uint64_t* rows = self._found
        cdef int64_t place = 0
        while place < self._most - 1 and rows[place] != 0:
            place += 1
        rows[place] = <uint64_t> placed
        if self._writes_over:
            memcpy(self._swapped, placed, row_size(placed))
            self._shift(rows, place, self._swapped)
            return
        while place > 0 and self._order.compare(<const uint8_t*> rows[place - 1], placed) > 0:
            rows[place] = rows[place - 1]
            rows[place - 1] = <uint64_t> placed
            place -= 1

    cdef void clear(self) noexcept nogil:
        if self._slots != NULL:
            self._pool.give_large(<uint8_t*> self._slots, self._bytes_of(self._slot_count))
        self._slots = NULL
        self._slot_count = 0
        self._group_count = 0
        self._is_full = False
        self._seen = 0
        self._known = 0
        self._left_out = 0
        self.pages = 0
