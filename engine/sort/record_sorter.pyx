"""RecordSorter: one memory's worth of rows in pages, and the sorted index over them.

    place(size) ──► address to write a row to    ... until NULL: full
    place_firsts(rows)                           copies of those that can be among the first of their groups
    sort()      ──► entries[0 .. row_count)      in order, rows stay where they are
    combine(c)  ──► entries[0 .. row_count)      fewer: rows of equal keys are combined in the first of them
    clear()                                      every page back

    page   │ row │ row │ row │ unused │           rows in order of arrival, none crosses a page
    large  │ one row larger than a page │
    index  │ entry * n │ scratch entry * n │      one large page, taken by sort(): 32 bytes a row

The index is not built while rows arrive: rows carry their own size, so the pages are walked once at the end. What the
index will need is kept free all the time: a row is only placed when the free pages can index it. Few rows
(INLINE_ENTRIES) are indexed in the object itself, so that a row as large as the budget can still be sorted (alone).

Limits: a page list of 40 bytes for every page lies outside the budget.

Source: Flink's NormalizedKeySorter (sort and index buffers in segments).

Held by: tests/sort/test_external_sorter.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from engine.memory.page_pool cimport PagePool
from engine.memory.status cimport STATUS_FULL, STATUS_OK
from engine.records.byte_kernels cimport prefetch
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey, Ties, may_differ
from engine.records.row_codec cimport row_size
from engine.records.row_combiner cimport RowCombiner
from engine.sort.group_firsts cimport FIRSTS_CHUNK, VERDICT_PLACE, VERDICT_TAKEN, Verdict
from engine.sort.key_tail cimport KeyTail
from engine.sort.radix_sort cimport IndexEntry, sort_entries

cdef enum:
    GATHER_CHUNK = 256
    AHEAD = 8               # rows fetched before they are combined


@cython.final
cdef class RecordSorter:
    """Args: pool: where pages come from; row_limit: full at so many rows, whatever the memory (0: no limit);
    page_budget: pages that it may hold (0: all of the pool)."""

    def __cinit__(self, PagePool pool not None, NormalizedKey normalized_key not None,
                  RowComparator comparator not None, KeyTail tail, int64_t row_limit, int64_t page_budget=0):
        self._pool = pool
        self._normalized_key = normalized_key
        self._comparator = comparator
        self._tail = tail
        self._row_limit = row_limit if row_limit > 0 else (<int64_t> 1 << 62)
        self._page_budget = page_budget if page_budget > 0 else pool.page_limit
        self._open_page = -1
        self._index_limit = INLINE_ENTRIES
        self.entries = self._inline

    def __dealloc__(self):
        free(self._pages)

    cdef uint8_t* place(self, int64_t size, bint beyond_limit) noexcept nogil:
        cdef RowPage* page
        if self.row_count >= self._row_limit or self._is_beyond_limit:
            return NULL
        if self.row_count >= self._index_limit:
            self._count_index_limit(0)
            if self.row_count >= self._index_limit:
                return NULL
        if self._open_page >= 0:
            page = &self._pages[self._open_page]
            if page.used + size <= page.size:
                page.used += size
                self.row_count += 1
                self.used_bytes += size
                return page.memory + page.used - size
        return self._place_in_new_page(size, beyond_limit)

    cdef int64_t _free_pages(self) noexcept nogil:
        cdef int64_t of_groups = 0 if self.firsts is None else self.firsts.pages
        return min(self._pool.pages_free(), self._page_budget - self._pages_held - of_groups)

    cdef void _count_index_limit(self, int64_t pages_wanted) noexcept nogil:
        """Set how many rows could be indexed if so many more pages were taken."""
        cdef int64_t free_bytes = (self._free_pages() - pages_wanted) * self._pool.page_size
        self._index_limit = max(<int64_t> INLINE_ENTRIES, free_bytes // (2 * <int64_t> sizeof(IndexEntry)))

    cdef uint8_t* _place_in_new_page(self, int64_t size, bint beyond_limit) noexcept nogil:
        cdef int64_t page_size = self._pool.page_size
        cdef bint is_large = size > page_size
        cdef int64_t wanted = (size + page_size - 1) // page_size
        cdef uint8_t* memory
        cdef RowPage* page = self._next_page()
        if page == NULL:
            return NULL
        self._count_index_limit(wanted)
        if self._free_pages() < wanted or self.row_count >= self._index_limit:
            memory = NULL
        else:
            memory = self._pool.take_large(size, False) if is_large else self._pool.take()
        if memory != NULL:
            self._pages_held += wanted
        elif beyond_limit and self.row_count == 0:
            is_large = True
            memory = self._pool.take_large(size, True)
            self._is_beyond_limit = memory != NULL
        if memory == NULL:
            self._count_index_limit(0)
            return NULL
        page.memory = memory
        page.used = size
        page.size = size if is_large else page_size
        page.is_large = is_large
        self._open_page = -1 if is_large else self._page_count
        self._page_count += 1
        self.row_count += 1
        self.used_bytes += size
        return memory

    cdef RowPage* _next_page(self) noexcept nogil:
        cdef int64_t capacity
        cdef RowPage* pages
        if self._page_count == self._page_capacity:
            capacity = 2 * self._page_capacity + 16
            pages = <RowPage*> realloc(self._pages, <size_t> capacity * sizeof(RowPage))
            if pages == NULL:
                return NULL
            self._pages = pages
            self._page_capacity = capacity
        return &self._pages[self._page_count]

    cdef bint begins_firsts(self) noexcept nogil:
        if self.firsts is None:
            return False
        if self.row_count == 0:
            self.is_judging = not self._has_ended_firsts
        elif self.is_judging and not self.firsts.pays():
            self.end_firsts()
        return self.is_judging

    cdef int64_t place_firsts(self, uint8_t** rows, int64_t count) noexcept nogil:
        cdef uint64_t hashes[FIRSTS_CHUNK]
        cdef Verdict verdict
        cdef uint8_t* placed
        cdef int64_t index
        count = min(count, <int64_t> FIRSTS_CHUNK)
        self._reserve_groups(count)
        self.firsts.hash(rows, count, hashes)
        for index in range(count):
            verdict = self.firsts.judge(rows[index], hashes[index])
            if verdict == VERDICT_TAKEN:
                continue
            placed = self.place(row_size(rows[index]), False)
            if placed == NULL:
                self.end_firsts()
                return index
            memcpy(placed, rows[index], row_size(rows[index]))
            if verdict == VERDICT_PLACE:
                self.firsts.told(placed)
        return count

    cdef void _reserve_groups(self, int64_t count) noexcept nogil:
        """Let groups take a quarter of the pages at most, and none that the index needs."""
        cdef int64_t index_bytes = 2 * (self.row_count + count) * <int64_t> sizeof(IndexEntry)
        cdef int64_t pages = self._free_pages() - index_bytes // self._pool.page_size - 1
        self.firsts.reserve(count, min(pages, self._page_budget // 4))
        self._count_index_limit(0)

    cdef void end_firsts(self) noexcept nogil:
        if self.firsts is not None:
            self.firsts.clear()
        self.is_judging = False
        self._has_ended_firsts = True

    cdef int sort(self) noexcept nogil:
        cdef int64_t bytes_wanted = 2 * self.row_count * <int64_t> sizeof(IndexEntry)
        self.end_firsts()
        if self.row_count > INLINE_ENTRIES:
            self.entries = <IndexEntry*> self._pool.take_large(bytes_wanted, False)
            if self.entries == NULL:
                self.entries = self._inline
                return STATUS_FULL
            self._index_size = bytes_wanted
        self._gather()
        sort_entries(self.entries, self.entries + self.row_count, self.row_count, self._comparator,
                     &self._normalized_key.ties, self._tail)
        self.is_sorted = True
        return STATUS_OK

    cdef void forget_order(self, int64_t row_count, int64_t used_bytes) noexcept nogil:
        self._give_index()
        self.is_sorted = False
        self.row_count = row_count
        self.used_bytes = used_bytes

    cdef void _give_index(self) noexcept nogil:
        if self._index_size > 0:
            self._pool.give_large(<uint8_t*> self.entries, self._index_size)
            self._index_size = 0
        self.entries = self._inline

    cdef int combine(self, RowCombiner combiner) noexcept nogil:
        cdef const Ties* ties = &self._normalized_key.ties
        cdef IndexEntry* last = self.entries
        cdef IndexEntry* entry
        cdef int64_t index, size
        cdef int failed
        cdef int failure = 0
        cdef Scratch scratch
        memset(&scratch, 0, sizeof(scratch))
        for index in range(1, self.row_count):
            entry = &self.entries[index]
            if index + AHEAD < self.row_count:
                prefetch(self.entries[index + AHEAD].row)
            if entry.prefix != last.prefix or (
                    may_differ(ties, entry.prefix) and self._comparator.compare(last.row, entry.row) != 0):
                last += 1
                last[0] = entry[0]
                continue
            size = 0 if combiner.keeps_size else combiner.combined_size(last.row, entry.row)
            if size == 0:
                failed = combiner.combine(last.row, entry.row)
                failure = failure or failed
                self.used_bytes -= row_size(entry.row)
            elif not self._combine_anew(combiner, last, entry, size, &scratch, &failure):
                last += 1
                last[0] = entry[0]
        free(scratch.memory)
        if self.row_count > 0:
            self.row_count = last - self.entries + 1
        return failure

    cdef bint _combine_anew(self, RowCombiner combiner, IndexEntry* last, const IndexEntry* entry, int64_t size,
                            Scratch* scratch, int* failure) noexcept nogil:
        """Put the row that two become where the larger one is; False when it does not fit there: then both stay."""
        cdef int64_t left = row_size(last.row)
        cdef int64_t right = row_size(entry.row)
        cdef int failed
        cdef uint8_t* memory
        if size > max(left, right):
            return False
        if size > scratch.size:
            memory = <uint8_t*> realloc(scratch.memory, <size_t> (2 * size))
            if memory == NULL:
                return False
            scratch.memory, scratch.size = memory, 2 * size
        failed = combiner.combine_into(scratch.memory, last.row, entry.row)
        failure[0] = failure[0] or failed
        if size > left:
            last.row = entry.row
        memcpy(last.row, scratch.memory, <size_t> size)
        self.used_bytes += size - left - right
        return True

    cdef void _gather(self) noexcept nogil:
        """Walk the pages in order of arrival and write one entry for each row."""
        cdef uint8_t* rows[GATHER_CHUNK]
        cdef uint64_t prefixes[GATHER_CHUNK]
        cdef IndexEntry* entry = self.entries
        cdef int64_t page_index, offset
        cdef int64_t count = 0
        for page_index in range(self._page_count):
            offset = 0
            while offset < self._pages[page_index].used:
                rows[count] = self._pages[page_index].memory + offset
                offset += row_size(rows[count])
                count += 1
                if count == GATHER_CHUNK:
                    entry = self._write_entries(rows, prefixes, count, entry)
                    count = 0
        self._write_entries(rows, prefixes, count, entry)

    cdef IndexEntry* _write_entries(self, uint8_t** rows, uint64_t* prefixes, int64_t count,
                                    IndexEntry* entry) noexcept nogil:
        cdef int64_t index
        self._normalized_key.prefixes_of_rows(rows, count, prefixes)
        for index in range(count):
            entry[index].prefix = prefixes[index]
            entry[index].row = rows[index]
        return entry + count

    cdef void clear(self) noexcept nogil:
        cdef int64_t index
        cdef RowPage* page
        self.end_firsts()
        self._give_index()
        for index in range(self._page_count):
            page = &self._pages[index]
            if page.is_large:
                self._pool.give_large(page.memory, page.size)
            else:
                self._pool.give(page.memory)
        self._page_count = 0
        self._open_page = -1
        self._index_limit = INLINE_ENTRIES
        self._is_beyond_limit = False
        self._has_ended_firsts = False
        self.is_sorted = False
        self._pages_held = 0
        self.row_count = 0
        self.used_bytes = 0
