"""PartitionSet: the partitions of one level of a hash join, and the scatter of rows into them.

    add_batch / add_rows ... ─► end_build, fill(tables) ─► add_probe_batch ... ─► finish_probe() ─► release()

    chunk of rows ─► partition of each ─► place (no GIL) ─┬─► all placed: encode or copy the run
                                                          └─► stopped at a row: write the run so far, then
                                                              · its page is full, partition spilled: write the page out
                                                              · the pool is empty: spill the LARGEST resident partition
                                                              · the row is larger than a page: memory of its own

Probe rows whose key no spilled build row has need not wait: a Bloom filter is filled while partitions spill
(``may_match``). It takes what its rows ask for, an eighth of the pool at most, from what spilling brings back, and
gives its pages up when it is full, and before the level fails for want of a page; not for the sake of a resident
partition, whose rows would be spilled with their probe rows: a page of the filter tells of 30,000 keys.

A run is written before anything is spilled, so a page that goes to a file holds complete rows. The partition of level 0
comes from bits 31..16 of the hash; deeper levels hash again with their number as seed.

Invariants: a spilled partition holds exactly one page (its write buffer), so a pool of fan_out + 2 pages is enough: one
for the partition of null keys, one for the directory. Larger rows take large pages, a row larger than the
pool one beyond its limit, and only on its way to the file.

Source: ``BinaryHashTable.spillPartition`` and ``AbstractHashTable`` of Flink's table runtime; fan-out by the pool's
pages as there, the largest partition first.

Held by: tests/join/test_hash_join_spill.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from engine.join.bloom_filter cimport BloomFilter
from engine.join.entry_pages cimport (
    LINK_SIZE,
    EntryCursor,
    EntryPages,
    clear_links,
    next_entries,
    next_rows_of_block,
    open_page,
    place_large,
    place_row,
)
from engine.join.hash_partition cimport HashPartition
from engine.join.join_side cimport JoinSide
from engine.join.table_choice cimport TableChoice
from engine.memory.page_pool cimport PagePool, take_for_row
from engine.memory.status cimport STATUS_OK
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.hashing cimport partition_of_hash
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_codec cimport row_size

from engine.errors import MemoryBudgetError
from engine.join.spilled_pair import SpilledPair
from engine.partitions.partition_files import block_size_of
from engine.records.wide_rows import room_for

cdef enum:
    # the part of the pool that a Bloom filter takes at most
    FILTER_PART = 8


@cython.final
cdef class PartitionSet:
    """Partitions of one level; the methods are for the join (see the .pxd)."""

    def __cinit__(self, JoinSide build not None, JoinSide probe not None, PagePool pool not None, space,
                  int32_t fan_out, uint32_t level, int64_t row_limit):
        cdef int32_t index
        # Blocks lie outside of the pool. Where one is smaller than a page, pages are written from where they are.
        cdef int64_t block_size = block_size_of(pool.page_limit * pool.page_size, fan_out)
        self._build = build
        self._probe = probe
        self._pool = pool
        self._space = space
        self.fan_out = fan_out
        self.level = level
        self._row_limit = row_limit
        self.filter = BloomFilter(pool, pool.page_limit // FILTER_PART)
        self.partitions = [
            HashPartition(pool, space, f"join-{level}-{index}", block_size) for index in range(fan_out + 1)
        ]
        self._entries = <EntryPages**>malloc((fan_out + 1) * sizeof(EntryPages*))
        self._sizes = <uint32_t*>malloc(CHUNK_ROWS * sizeof(uint32_t))
        self._targets = <uint8_t**>malloc(CHUNK_ROWS * sizeof(uint8_t*))
        self._parts = <int32_t*>malloc(CHUNK_ROWS * sizeof(int32_t))
        self._hashes = <uint64_t*>malloc(CHUNK_ROWS * sizeof(uint64_t))
        self._filtered = <uint8_t*>calloc(fan_out + 1, 1)
        if (self._entries == NULL or self._sizes == NULL or self._targets == NULL or self._parts == NULL
                or self._hashes == NULL or self._filtered == NULL):
            raise MemoryError("scratch of a join's partitions")
        for index in range(fan_out + 1):
            self._entries[index] = &(<HashPartition>self.partitions[index]).entries

    def __dealloc__(self):
        free(self._entries)
        free(self._sizes)
        free(self._targets)
        free(self._parts)
        free(self._hashes)
        free(self._filtered)

    cdef int fill_early(self, TableChoice tables) except -1:
        if self._row_limit < 0:
            self._early = tables
        return 0

    cdef int _insert_early(self, int64_t begin, int64_t end) except -1:
        cdef bint is_taken
        if begin == end:
            return 0
        with nogil:
            is_taken = self._early.insert_early(self._targets + begin, end - begin)
        return 0 if is_taken else self._give_up_early()

    # The table begins again in fill; its pages may be wanted for rows.
    cdef int _give_up_early(self) except -1:
        cdef int32_t index
        cdef bint has_chains
        with nogil:
            has_chains = self._early.give_up_early()
            for index in range(self.fan_out):
                if has_chains:
                    clear_links(self._entries[index])
                self._early.see_all(self._entries[index])
        self._seeing = self._early
        self._early = None
        return 0

    # Rows without key come, which say nothing of keys.
    cdef int _see_no_more(self) except -1:
        if self._early is not None:
            self._give_up_early()
        if self._seeing is not None:
            self._seeing.forget_seen()
            self._seeing = None
        return 0

    cdef bint may_match(self, int32_t partition, uint64_t hash) noexcept nogil:
        return not self._filtered[partition] or self.filter.may_contain(hash)

    cdef int add_batch(self, ArrowBatch batch, int64_t start, int64_t count, const uint64_t* hashes,
                       const uint8_t* null_flags) except -1:
        cdef int64_t index
        self._build.codec.move_outside(batch)
        with nogil:
            for index in range(count):
                self._parts[index] = partition_of_hash(hashes[index], self.level, self.fan_out)
                if null_flags != NULL and null_flags[index]:
                    self._parts[index] = self.fan_out
            self._build.codec.measure(batch, start, count, self._sizes)
        self._build_hashes = hashes
        if null_flags != NULL:
            self._see_no_more()
        return self._scatter(self._build, batch, start, NULL, count)

    cdef int add_rows(self, uint8_t** rows, int64_t count, const uint64_t* hashes, const uint8_t* null_flags) except -1:
        if count <= BRIEF_ROWS:
            self._part_rows(rows, count, hashes, null_flags)
        else:
            with nogil:
                self._part_rows(rows, count, hashes, null_flags)
        self._build_hashes = hashes
        if null_flags != NULL:
            self._see_no_more()
        return self._scatter(self._build, None, 0, rows, count)

    cdef void _part_rows(self, uint8_t** rows, int64_t count, const uint64_t* hashes,
                         const uint8_t* null_flags) noexcept nogil:
        cdef int64_t index
        for index in range(count):
            self._sizes[index] = row_size(rows[index])
            self._parts[index] = partition_of_hash(hashes[index], self.level, self.fan_out)
            if null_flags != NULL and null_flags[index]:
                self._parts[index] = self.fan_out

    cdef int add_probe_batch(self, ArrowBatch batch, const uint64_t* hashes) except -1:
        cdef int64_t index
        cdef int64_t count = batch.row_count
        self._probe.codec.move_outside(batch)
        with nogil:
            for index in range(count):
                self._parts[index] = partition_of_hash(hashes[index], self.level, self.fan_out)
            self._probe.codec.measure(batch, 0, count, self._sizes)
        self._build_hashes = NULL
        return self._scatter(self._probe, batch, 0, NULL, count)

    cdef int add_probe_rows(self, uint8_t** rows, int64_t count, const uint64_t* hashes) except -1:
        if count <= BRIEF_ROWS:
            self._part_rows(rows, count, hashes, NULL)
        else:
            with nogil:
                self._part_rows(rows, count, hashes, NULL)
        self._build_hashes = NULL
        return self._scatter(self._probe, None, 0, rows, count)

    cdef int _scatter(self, JoinSide side, ArrowBatch batch, int64_t start, uint8_t** rows, int64_t count) except -1:
        cdef int64_t begin = 0
        cdef int64_t end
        while begin < count:
            if count <= BRIEF_ROWS and rows != NULL:
                end = self._place_run(begin, count)
                self._write_run(side, batch, start, rows, begin, end)
            else:
                with nogil:
                    end = self._place_run(begin, count)
                    self._write_run(side, batch, start, rows, begin, end)
            if self._early is not None:
                self._insert_early(begin, end)
            begin = end
            if begin == count:
                break
            if <int64_t>self._sizes[begin] + LINK_SIZE > self._pool.page_size:
                self._add_large(side, batch, start, rows, begin)
                begin += 1
            else:
                self._make_room(self._parts[begin])
        return 0

    # Give rows begin.. their places; returns the first row that has none.
    cdef int64_t _place_run(self, int64_t begin, int64_t count) noexcept nogil:
        cdef int64_t index
        cdef int64_t end = count
        cdef int64_t filtered = 0
        cdef bint filters = self._build_hashes != NULL and self.filter.is_open
        cdef EntryPages* entries
        cdef uint8_t* row
        for index in range(begin, count):
            end = index
            if <int64_t>self._sizes[index] + LINK_SIZE > self._pool.page_size:
                break
            entries = self._entries[self._parts[index]]
            if not entries.spilled:
                if self._row_limit >= 0 and self._resident_rows >= self._row_limit:
                    break
            row = place_row(entries, self._pool, self._sizes[index])
            if row == NULL:
                break
            if not entries.spilled:
                self._resident_rows += 1
            elif filters:
                self._hashes[filtered] = self._build_hashes[index]
                filtered += 1
            self._targets[index] = row
            end = index + 1
        if filtered:
            self.filter.add_all(self._hashes, filtered)
        return end

    cdef void _write_run(self, JoinSide side, ArrowBatch batch, int64_t start, uint8_t** rows, int64_t begin,
                         int64_t end) noexcept nogil:
        cdef int64_t index
        if begin == end:
            return
        if rows == NULL:
            side.codec.encode(batch, start + begin, end - begin, self._sizes + begin, self._targets + begin)
        else:
            for index in range(begin, end):
                memcpy(self._targets[index], rows[index], self._sizes[index])
        if self._seeing is not None and self._build_hashes != NULL:
            self._seeing.see(self._targets + begin, end - begin)

    cdef int _add_large(self, JoinSide side, ArrowBatch batch, int64_t start, uint8_t** rows, int64_t index) except -1:
        cdef HashPartition partition = <HashPartition>self.partitions[self._parts[index]]
        cdef int64_t size = self._sizes[index]
        cdef bint hopeless = size + LINK_SIZE > <int64_t>self._pool.page_size * (self._pool.page_limit - self.fan_out)
        cdef uint8_t* row = NULL
        if self._early is not None:
            self._give_up_early()
        while not partition.entries.spilled:
            if not hopeless and (self._row_limit < 0 or self._resident_rows < self._row_limit):
                row = place_large(&partition.entries, self._pool, size, False)
                if row != NULL:
                    self._resident_rows += 1
                    self._targets[index] = row
                    with nogil:
                        self._write_run(side, batch, start, rows, index, index + 1)
                    return 0
            if hopeless or not self._spill_largest(self._parts[index]):
                self._spill(self._parts[index])
        if self._build_hashes != NULL and self.filter.is_open:
            self.filter.add_all(self._build_hashes + index, 1)
        if rows != NULL:
            return partition.write_through(rows[index], size)
        with room_for(size, 1):
            row = take_for_row(self._pool, size)
            self._targets[index] = row
            try:
                with nogil:
                    self._write_run(side, batch, start, rows, index, index + 1)
                partition.write_through(row, size)
            finally:
                self._pool.give_large(row, size)
        return 0

    cdef int _make_room(self, int32_t partition) except -1:
        if self._early is not None:
            return self._give_up_early()
        if self._entries[partition].spilled and self._entries[partition].page_count > 0:
            return (<HashPartition>self.partitions[partition]).flush()
        if not self._spill_largest(partition):
            if not self.filter.is_open:
                raise self._too_few_pages()
            self.filter.give_up()
        return 0

    cdef object _too_few_pages(self):
        return MemoryBudgetError(
            f"{self._pool.owner}: {self._pool.page_limit} pages are too few for {self.fan_out} partitions; "
            f"give the operator more managed memory")

    # Every spilled partition has the page that its probe rows will need (one that held only large rows has none).
    cdef bint _write_buffers_are_there(self) noexcept nogil:
        cdef int32_t index
        for index in range(self.fan_out):
            if self._entries[index].spilled and self._entries[index].page_count == 0:
                if not open_page(self._entries[index], self._pool):
                    return False
        return True

    # Spill the resident partition that brings back most pages; on a draw the one that asks. False: none is left.
    cdef bint _spill_largest(self, int32_t asking) except -1:
        cdef int32_t index
        cdef int32_t victim = -1
        cdef int64_t gain, best_gain = -1
        cdef int64_t weight, best_weight = -1
        for index in range(self.fan_out + 1):
            if self._entries[index].spilled or self._entries[index].row_count == 0:
                continue
            gain = (<HashPartition>self.partitions[index]).pages_to_gain()
            weight = 2 * self._entries[index].row_bytes + (1 if index == asking else 0)
            if gain == 0 and index == asking:
                weight = 1 << 62
            if gain > best_gain or (gain == best_gain and weight > best_weight):
                victim, best_gain, best_weight = index, gain, weight
        if victim < 0:
            return False
        self._spill(victim)
        return True

    cdef int _spill(self, int32_t index) except -1:
        cdef HashPartition partition = <HashPartition>self.partitions[index]
        self._resident_rows -= partition.entries.row_count
        partition.begin_spill()
        if index < self.fan_out and partition.entries.large_count == 0 and not self.filter.is_given_up():
            with nogil:
                self._keep_hashes(&partition.entries)
                self.filter.grow(partition.entries.row_count)
                self._filter_kept(&partition.entries)
            self._filtered[index] = self.filter.is_open
        partition.finish_spill()
        self.spilled_count += 1
        return 0

    # Squeeze the rows of the pages to their hashes, from the first page on, and free the pages behind them.
    cdef void _keep_hashes(self, EntryPages* entries) noexcept nogil:
        cdef int64_t target = 0
        cdef int64_t used = 0
        cdef int64_t page, offset, count, index
        for page in range(entries.page_count):
            offset = 0
            while True:
                count = next_rows_of_block(entries.pages[page].memory, entries.pages[page].used, &offset,
                                           self._targets, CHUNK_ROWS, entries.page_size)
                if count <= 0:
                    break
                self._build.hash_rows(self._targets, count, self._hashes)
                for index in range(count):
                    if used + 8 > entries.page_size:
                        entries.pages[target].used = used
                        target += 1
                        used = 0
                    (<uint64_t*>(entries.pages[target].memory + used))[0] = self._hashes[index]
                    used += 8
        if entries.page_count > 0:
            entries.pages[target].used = used
        while entries.page_count > target + 1:
            entries.page_count -= 1
            self._pool.give(entries.pages[entries.page_count].memory)

    cdef void _filter_kept(self, const EntryPages* entries) noexcept nogil:
        cdef int64_t page
        for page in range(entries.page_count):
            if self.filter.is_open:
                self.filter.add_all(<const uint64_t*>entries.pages[page].memory, entries.pages[page].used >> 3)

    # Take the table's pages, spilling until it and the rows fit.
    cdef int _reserve(self, TableChoice tables) except -1:
        cdef int status
        cdef int32_t index
        cdef int64_t rows
        while True:
            rows = 0
            for index in range(self.fan_out):
                if not self._entries[index].spilled:
                    rows += self._entries[index].row_count
            if self._write_buffers_are_there():
                status = tables.choose(self._entries, self.fan_out, rows)
                if status == STATUS_OK:
                    break
            if not self._spill_largest(-1):
                if not self.filter.is_open:
                    raise self._too_few_pages()
                self.filter.give_up()
        return 0

    cdef int end_build(self, TableChoice tables) except -1:
        cdef HashPartition partition
        self._is_filled = self._early is not None and tables.choose_filled()
        self._early = self._seeing = None
        if self.spilled_count == 0:
            self.filter.give_up()
        if not self._is_filled:
            self._reserve(tables)
        tables.forget_seen()
        for partition in self.partitions:
            partition.finish_build()
        return 0

    cdef int fill(self, TableChoice tables) except -1:
        if not self._is_filled:
            with nogil:
                self._fill(tables)
        raise_failed_comparison()
        return 0

    cdef void _fill(self, TableChoice tables) noexcept nogil:
        cdef int32_t index
        for index in range(self.fan_out):
            if not self._entries[index].spilled:
                tables.fill(self._entries[index], self._targets, self._hashes, CHUNK_ROWS)

    cdef int64_t next_resident(self, ResidentCursor* cursor, uint8_t** rows, int64_t capacity) noexcept nogil:
        cdef int64_t count = 0
        while cursor.partition < self.fan_out:
            if not self._entries[cursor.partition].spilled:
                count += next_entries(self._entries[cursor.partition], &cursor.entries, rows + count, capacity - count)
                if count == capacity:
                    break
            cursor.partition += 1
            memset(&cursor.entries, 0, sizeof(EntryCursor))
        return count

    cdef int finish_probe(self) except -1:
        self.filter.give_up()
        for partition in self.partitions:
            (<HashPartition>partition).finish_probe()
        return 0

    cdef int release(self) except -1:
        self.filter.give_up()
        for partition in self.partitions:
            (<HashPartition>partition).release()
        return 0

    cdef list pairs(self, bint is_reversed):
        cdef HashPartition partition
        cdef list partitions = self.partitions[:self.fan_out]
        parent_rows = sum([partition.build_rows for partition in partitions])
        parent_probe_rows = sum([partition.probe_rows for partition in partitions])
        return [
            SpilledPair(partition.build_file, partition.probe_file, partition.build_rows, partition.build_bytes,
                        partition.probe_rows, partition.probe_bytes, self.level + 1, parent_rows,
                        parent_probe_rows, is_reversed)
            for partition in partitions if partition.entries.spilled
        ]
