"""StateRowTable: the groups of rows of states, found among the rows themselves.

    groups = state_row_table_of(codec, key_count, combiner, pool, group_limit)      None: other keys or states
    fits = groups.add_kept(kept, expected)      as often as rows come; False: they do not fit, nothing is here any more,
                                                and kept has the same states as before, in fewer rows
    merged = groups.take()                      KeptRows, one row for each group
    merged = groups.merge_file(file, expected)  both of a SpillFile, which stays as it is; None: they do not fit
    groups.close()                              always; idempotent

    rows     │ k1 s │ k2 s │ k1 s │ ...       a page that has been read goes back, and is the next page of groups
                │ hash ─► directory ─┬─► no group: the row is copied, and is one
                ▼                    └─► its group: a StateCombiner merges the states where they lie
    groups   │ k1 s │ k2 s │ ...

States that come as rows and leave as rows are not made columns on their way to their groups, nor groups rows on their
way out. The rows of the groups of a partition lie side by side, so that the caches hold twice as many as of a table.

Keys, and states that are least, largest, first or last values, may be texts. A value that beats its group's is written
over it where the row has room; else the group is written anew, behind the others, and the old row is dead (bit 0 of its
size) until rows are moved together: before the directory grows, and before they leave.

Invariants: a group's rows were merged in their order. Groups are in order of their first rows, but for those that were
written anew. A row with a value outside of it (``outside_values``) does not fit: it is no group, nor merged. Of rows of
a fixed size, groups hold no more pages than rows that were read, but for one page and the directory.

Limits: at most 32 columns, no floating-point keys (-0.0 and NaN). About 24 KiB of scratch, and a row.

Source: as GroupTable; Chen et al., "Improving hash join performance through prefetching" (2004).
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove, memset

from engine.accumulators.state_combiner cimport StateCombiner
from engine.aggregate.group_directory cimport (
    directory_can_grow,
    directory_exchange,
    directory_give,
    directory_group,
    directory_index,
    directory_insert,
    directory_slot,
    directory_take,
    slot_limit,
    slots_for,
)
from engine.aggregate.merge_scratch cimport CHUNK_ROWS, MergeScratch
from engine.aggregate.state_row_keys cimport are_same_keys, has_value_outside, may_be_merged, row_keys_of
from engine.iomanager.spill_file cimport SpillFile
from engine.iomanager.spill_reader cimport SpillReader
from engine.memory.page_pool cimport PagePool
from engine.partitions.row_page cimport RowPage, append_page, copy_row
from engine.partitions.row_partitions cimport KeptRows
from engine.records.byte_kernels cimport LINE_BYTES, prefetch, store32
from engine.records.hashing cimport hash_rows
from engine.records.outside_values cimport values_lie_outside
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page

from engine.errors import CorruptBlockError

cdef enum:
    SLOT_AHEAD = 48             # rows for whose slots and ...
    GROUP_AHEAD = 20            # ... for whose groups is asked before
    FILL_GROUPS = 32            # groups entered together
    DAMAGED = -1
    DEAD = 1                    # in the size of a row whose group was written anew
    REWRITTEN_ROUND = 16        # a group that is written anew may be a little larger the next time


def state_row_table_of(RowCodec codec not None, int32_t key_count, StateCombiner combiner not None,
                       PagePool pool not None, int64_t group_limit, MergeScratch scratch=None):
    """Return StateRowTable for rows of a codec whose first columns are keys, or None.

    Args: combiner: of rows with equal keys; group_limit: full at so many groups, 0: no limit; scratch: of others that
        merge at other times on the same thread, None: its own.
    """
    if may_be_merged(codec, key_count):
        return StateRowTable(codec, key_count, combiner, pool, group_limit, scratch or MergeScratch())


@cython.final
cdef class StateRowTable:
    """See above; begins without memory of the pool."""

    def __cinit__(self, RowCodec codec not None, int32_t key_count, StateCombiner combiner not None,
                  PagePool pool not None, int64_t group_limit, MergeScratch scratch not None):
        cdef int32_t index
        self._codec = codec
        self._pool = pool
        self._key_count = key_count
        self._group_limit = group_limit if group_limit > 0 else (<int64_t> 1 << 62)
        self._key_columns = <int32_t*> calloc(key_count, sizeof(int32_t))
        if self._key_columns == NULL:
            raise MemoryError()
        self.work_with(scratch, combiner)
        for index in range(key_count):
            self._key_columns[index] = index
        self._keys = row_keys_of(codec, key_count)
        self._is_fixed = codec.is_fixed
        self._row_size = codec.fixed_size

    def work_with(self, MergeScratch scratch not None, StateCombiner combiner not None):
        """Merge with the scratch and the combiner of a thread from now on."""
        self._scratch, self._combiner = scratch, combiner
        self._rows, self._hashes, self._positions = scratch.rows, scratch.hashes, scratch.positions

    def __dealloc__(self):
        free(self._key_columns)
        free(self._pages)

    # ------------------------------------------------------------------------------------------------------ merging

    def add_kept(self, KeptRows kept not None, int64_t groups_expected):
        """Merge unread rows into the groups that are here already; their pages go back on the way.

        Args: groups_expected: that are here then, for the size of the directory, which grows if there are more.
        Returns: whether they fit; else nothing is here any more, and kept has all, groups first.
        Raises: DataError when a sum overflows.
        """
        cdef RowPage* page
        cdef int64_t done
        cdef int failure = 0
        self._rows_merged = 0
        with nogil:
            if self.group_count == 0:
                self._begin(groups_expected)
            else:
                self._make_room(groups_expected)
            done = self._merge_pages(kept, &failure)
        self._check(done, failure)
        if kept._page_index == kept._page_count:
            return True
        page = kept._pages + kept._page_index
        page.used -= done
        memmove(page.memory, page.memory + done, <size_t> page.used)
        self._put_back(kept)
        return False

    cdef int64_t _merge_pages(self, KeptRows kept, int* failure) noexcept nogil:
        """Merge pages, which go back; returns the bytes done of the one at which it ends, or DAMAGED."""
        cdef RowPage* page
        cdef int64_t done = 0
        while kept._page_index < kept._page_count:
            page = kept._pages + kept._page_index
            done = self._merge_page(page.memory, page.used, failure)
            if done < page.used:
                break
            self._pool.give(page.memory)
            kept._page_index += 1
            kept._next_index = kept._page_index
        return done

    def merge_file(self, SpillFile file not None, int64_t groups_expected):
        """Merge the rows of a file, if so many groups fit.

        Raises: as add_kept, also CorruptBlockError, SpillError.
        """
        cdef SpillReader reader
        cdef const uint8_t* block = NULL
        cdef int64_t size = 0
        cdef int64_t done = 0
        cdef int failure = 0
        if not self._fits(groups_expected):
            return None
        with nogil:
            self._begin(groups_expected)
        reader = file.reader()
        try:
            with nogil:
                while done == size and failure == 0 and reader.next_block(&block, &size) != 0:
                    done = self._merge_page(<uint8_t*> block, size, &failure)
            self._check(done, failure)
        except BaseException:
            self._give_pages()
            raise
        finally:
            reader.close()
        if done < size:
            self._give_pages()
            return None
        return self.take()

    @property
    def row_size(self):
        """Bytes of a row: the mean of a page that was merged, or what they are at least."""
        return self._row_size

    @property
    def page_count(self):
        """Pages of the pool that groups and their directory hold."""
        if self._directory.slots == NULL:
            return self._page_count
        return self._page_count + (self._directory.size + self._pool.page_size - 1) // self._pool.page_size

    cdef int _check(self, int64_t done, int failure) except -1:
        if done == DAMAGED:
            raise CorruptBlockError("sizes of rows do not add up in a page of aggregate states")
        if failure != 0:
            self._combiner.raise_failure(failure)
        return 0

    cdef void _begin(self, int64_t groups_expected) noexcept nogil:
        """Empty the directory, which is for so many groups where there is room; it has no slots where there is none."""
        cdef int64_t slot_count = slots_for(min(groups_expected, self._group_limit), self._pool.page_size)
        self._give_pages()
        if self._directory.slots != NULL and self._directory.slot_count != slot_count:
            directory_give(&self._directory, self._pool)
        if self._directory.slots != NULL:
            memset(self._directory.slots, 0, <size_t> self._directory.size)
        while self._directory.slots == NULL and 8 * slot_count >= self._pool.page_size:
            if 8 * slot_count // self._pool.page_size <= self._pool.page_limit // 2:
                directory_take(&self._directory, self._pool, slot_count)
            slot_count //= 2

    cdef bint _fits(self, int64_t groups) noexcept nogil:
        """Whether pages for so many groups, and a directory of them, are free."""
        cdef int64_t slot_count = slots_for(groups, self._pool.page_size)
        return (groups // max(self._pool.page_size // self._row_size, <int64_t> 1)
                + 8 * slot_count // self._pool.page_size + 2) <= self._pool.pages_free()

    cdef int64_t _merge_page(self, uint8_t* page, int64_t used, int* failure) noexcept nogil:
        """Merge the rows of a page; returns the bytes of those that were, fewer than all: full. Or DAMAGED."""
        cdef int64_t position = 0
        cdef int64_t count, done
        cdef int32_t size = self._codec.fixed_size
        if not self._is_fixed:
            return self._merge_any_page(page, used, failure)
        if used % size != 0:
            return DAMAGED
        while position < used and failure[0] == 0:
            count = min((used - position) // size, <int64_t> CHUNK_ROWS)
            if not self._find_rows(page + position, count):
                return DAMAGED
            done = self._merge_rows(count, failure)
            position += done * size
            if done < count:
                break
        return position

    cdef int64_t _merge_any_page(self, uint8_t* page, int64_t used, int* failure) noexcept nogil:
        """The same for rows of any size."""
        cdef int64_t position = 0
        cdef int64_t rows = 0
        cdef int64_t count, done
        while position < used and failure[0] == 0:
            count = rows_of_page(page + position, used - position, self._rows, CHUNK_ROWS)
            if count < 0:
                return DAMAGED
            done = self._merge_rows(count, failure)
            if done < count:
                return self._rows[done] - page
            position = self._rows[count - 1] + row_size(self._rows[count - 1]) - page
            rows += count
        if rows > 0:
            self._row_size = max(position // rows, <int64_t> 1)
        return position

    cdef bint _find_rows(self, uint8_t* page, int64_t count) noexcept nogil:
        """Have rows that lie side by side in _rows; False: they have other sizes."""
        cdef uint32_t size = <uint32_t> self._codec.fixed_size
        cdef uint32_t others = 0
        cdef int64_t row
        for row in range(count):
            self._rows[row] = page + row * size
            others |= row_size(page + row * size) ^ size
        return others == 0

    cdef int64_t _merge_rows(self, int64_t count, int* failure) noexcept nogil:
        """Merge _rows; returns how many were."""
        cdef int64_t row = 0
        cdef int64_t mask, position, room
        cdef uint64_t tag, slot
        cdef uint8_t* group
        cdef bint looks_outside = not self._is_fixed and values_lie_outside()
        self._grow(count)
        if self._directory.slots == NULL:
            return 0
        room = min(slot_limit(self._directory.slot_count), self._group_limit)
        mask = self._directory.slot_count - 1
        hash_rows(self._codec, self._key_columns, self._key_count, self._rows, count, self._hashes)
        for row in range(-SLOT_AHEAD, 0):
            self._look_ahead(row, count)
        row = 0
        while row < count:
            self._look_ahead(row, count)
            position = self._positions[row]
            tag = self._hashes[row] & 0xFFFF
            if looks_outside and has_value_outside(&self._keys, self._rows[row]):
                return row
            while True:
                slot = self._directory.slots[position]
                if slot == 0:
                    group = self._place(self._rows[row]) if self.group_count < room else NULL
                    if group == NULL:
                        return row
                    self._directory.slots[position] = directory_slot(group, tag)
                    break
                if slot >> 48 == tag:
                    group = directory_group(slot)
                    if are_same_keys(&self._keys, group, self._rows[row]):
                        if self._combiner.are_sums(group, self._rows[row]):
                            failure[0] = self._combiner.add_sums(group, self._rows[row])
                        elif self._combiner.keeps_size:
                            failure[0] = self._combiner.combine(group, self._rows[row])
                        else:
                            group = self._combine_any(group, self._rows[row], failure)
                            if group == NULL:
                                return row
                            self._directory.slots[position] = directory_slot(group, tag)
                        if failure[0] != 0:
                            return row
                        break
                position = (position + 1) & mask
            row += 1
            self._rows_merged += 1
        return row

    cdef inline void _look_ahead(self, int64_t row, int64_t count) noexcept nogil:
        """Ask for the slots of a row to come, and look there for one between, whose group is asked for then."""
        cdef int64_t position = row + SLOT_AHEAD
        cdef uint64_t tag, slot
        if position < count:
            self._positions[position] = directory_index(&self._directory, self._hashes[position])
            prefetch(&self._directory.slots[self._positions[position]])
        row += GROUP_AHEAD
        if 0 <= row < count:
            position = self._positions[row]
            tag = self._hashes[row] & 0xFFFF
            slot = self._directory.slots[position]
            while slot != 0 and slot >> 48 != tag:
                position = (position + 1) & (self._directory.slot_count - 1)
                slot = self._directory.slots[position]
            self._positions[row] = position
            prefetch(directory_group(slot))
            if not self._is_fixed:
                prefetch(directory_group(slot) + LINE_BYTES)

    cdef uint8_t* _combine_any(self, uint8_t* group, const uint8_t* row, int* failure) noexcept nogil:
        """Merge a row whose values may be larger than its group's; returns where the group is, NULL: no room for it."""
        cdef int64_t size = self._combiner.combined_size(group, row)
        cdef int64_t room = row_size(group)
        cdef uint8_t* combined
        if size == 0:
            failure[0] = self._combiner.combine(group, row)
            return group
        combined = self._scratch.row_of(size)
        if combined == NULL:
            return NULL
        if size > room:
            room = (size + REWRITTEN_ROUND - 1) & ~<int64_t> (REWRITTEN_ROUND - 1)
            group = self._rewritten(group, room)
            if group == NULL:
                return NULL
        failure[0] = self._combiner.combine_into(combined, group, row)
        memcpy(group, combined, <size_t> size)
        memset(group + size, 0, <size_t> (room - size))
        store32(group, <uint32_t> room)
        return group

    cdef uint8_t* _rewritten(self, uint8_t* group, int64_t room) noexcept nogil:
        """Copy a group to where there is more room; the old row is dead then."""
        cdef uint8_t* copy = self._place_at(room)
        if copy == NULL:
            return NULL
        memcpy(copy, group, <size_t> row_size(group))
        store32(group, <uint32_t> row_size(group) | DEAD)
        self._has_dead = True
        return copy

    # ------------------------------------------------------------------------------------------------------- groups

    cdef uint8_t* _place(self, const uint8_t* row) noexcept nogil:
        """Copy a row to the groups; NULL: no page is left."""
        cdef int64_t size = self._codec.fixed_size if self._is_fixed else <int64_t> row_size(row)
        cdef uint8_t* group = self._place_at(size)
        if group != NULL:
            copy_row(group, row, <size_t> size)
            self.group_count += 1
        return group

    cdef inline uint8_t* _place_at(self, int64_t size) noexcept nogil:
        """Return a place for a row of a size; NULL: no page is left."""
        cdef RowPage* page = self._pages + self._page_count - 1
        if self._page_count == 0 or page.used + size > self._pool.page_size:
            if size > self._pool.page_size or not append_page(&self._pages, &self._page_count, &self._page_capacity,
                                                              self._pool):
                return NULL
            page = self._pages + self._page_count - 1
        page.used += size
        return page.memory + page.used - size

    cdef void _move_together(self) noexcept nogil:
        """Leave dead rows out: those behind them in their page move. No directory points to rows any more."""
        cdef RowPage* page
        cdef int64_t index, source, target, size
        if not self._has_dead:
            return
        self._has_dead = False
        for index in range(self._page_count):
            page = self._pages + index
            source = target = 0
            while source < page.used:
                size = row_size(page.memory + source) & ~<int64_t> DEAD
                if not row_size(page.memory + source) & DEAD:
                    if target < source:
                        memmove(page.memory + target, page.memory + source, <size_t> size)
                    target += size
                source += size
            page.used = target

    cdef void _grow(self, int64_t new_groups) noexcept nogil:
        """Double the directory where so many new groups may not find room, it is half full, and it fits."""
        cdef int64_t room = slot_limit(self._directory.slot_count) - self.group_count
        if self._directory.slots != NULL and room < min(new_groups, self.group_count) and (
                directory_can_grow(&self._directory, self._pool, 2)):
            self._resize(2 * self._directory.slot_count)

    cdef void _make_room(self, int64_t groups) noexcept nogil:
        """Have a directory of so many groups at once, if pages abound: each time it grows all groups are entered."""
        cdef int64_t slot_count = slots_for(min(groups, self._group_limit), self._pool.page_size)
        if self._directory.slots != NULL and slot_count > self._directory.slot_count and (
                8 * slot_count // self._pool.page_size < self._pool.pages_free() // 4):
            self._resize(slot_count)

    cdef void _resize(self, int64_t slot_count) noexcept nogil:
        directory_exchange(&self._directory, self._pool, slot_count)
        self._move_together()
        self._fill()

    cdef void _fill(self) noexcept nogil:
        """Enter all groups into the directory, which is empty: some at a time, so that slots are fetched together."""
        cdef uint8_t* groups[FILL_GROUPS]
        cdef uint64_t hashes[FILL_GROUPS]
        cdef int64_t index, position, count, row
        for index in range(self._page_count if self._directory.slots != NULL else 0):
            position = 0
            while position < self._pages[index].used:
                count = rows_of_page(self._pages[index].memory + position, self._pages[index].used - position, groups,
                                     FILL_GROUPS)
                hash_rows(self._codec, self._key_columns, self._key_count, groups, count, hashes)
                for row in range(count):
                    prefetch(&self._directory.slots[directory_index(&self._directory, hashes[row])])
                for row in range(count):
                    directory_insert(&self._directory, groups[row], hashes[row])
                position = groups[count - 1] + row_size(groups[count - 1]) - self._pages[index].memory

    # ------------------------------------------------------------------------------------------------------ leaving

    def take(self):
        """Return the groups, which are then the caller's to read or delete; the next are others."""
        cdef KeptRows kept = KeptRows.__new__(KeptRows)
        with nogil:
            self._move_together()
        kept._pool = self._pool
        kept._codec = self._codec
        kept._pages = self._pages
        kept._page_count = kept.page_count = self._page_count
        kept.row_count = self.group_count
        kept.is_merged = True
        self._pages = NULL
        self._page_count = self._page_capacity = self.group_count = 0
        return kept

    cdef int _put_back(self, KeptRows kept) except -1:
        """Put the groups in front of the rows that were not read."""
        cdef int64_t left = kept._page_count - kept._page_index
        cdef int64_t count = self._page_count + left
        cdef RowPage* pages
        with nogil:
            self._move_together()
        pages = <RowPage*> realloc(self._pages, <size_t> (count + 1) * sizeof(RowPage))
        if pages == NULL:
            raise MemoryError()
        memcpy(pages + self._page_count, kept._pages + kept._page_index, <size_t> left * sizeof(RowPage))
        free(kept._pages)
        kept._pages = pages
        kept._page_count = kept.page_count = count
        kept.row_count += self.group_count - self._rows_merged
        kept._page_index = kept._next_index = 0
        self._pages = NULL
        self._page_count = self._page_capacity = self.group_count = 0
        return 0

    cdef void _give_pages(self) noexcept nogil:
        while self._page_count > 0:
            self._page_count -= 1
            self._pool.give(self._pages[self._page_count].memory)
        self.group_count = 0
        self._has_dead = False

    def rest(self):
        """Give every page back until the next merge."""
        self._give_pages()
        directory_give(&self._directory, self._pool)

    def close(self):
        """Give every page back; idempotent."""
        self.rest()
