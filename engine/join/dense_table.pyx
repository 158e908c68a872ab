"""DenseTable: build rows by the number that is their key, where the keys lie close together: a perfect hash.

    insert(rows) ... as they come                            ─┐
    reserve(partitions): lowest and highest key ─► insert ... ─┴► probe(batch, ...) ... ─► release()

    key ──► page of keys, cell      directory (pages)              rows (pages)
                                    [row, 4 bytes] ──────────────► link │ row
                                    [     0      ]                 └──► row before of the same key

Surrogate keys (1, 2, 3 ..., with gaps or without) need no hash, no tag and no comparison: the cell of a key is its
difference from the lowest one, and a row in it has that key. A cell is half of a tagged table's, and neighbours in
order of the key are neighbours in memory. The cell leads to the last row of a key; the rows before it hang on it
through their links, so that none of them is looked at again when another one comes.

For one key that is an integer, date, time or the like, while there are at most CELLS_PER_ROW cells for each row (a
tagged table takes eight bytes times 1.25 to 2) and rows are within 32 GiB of addresses. Rows in the order of their key,
more or less, are inserted as they come, while they are in the cache: so the pages taken are few for the rows seen. Rows
in another order wait until all are there, and their lowest and highest key is known: it is noted as they come, too, and
stands for those that stay when others are spilled. Keys of rows in files then have a cell without a row.

Invariants: no reference is 0, because the origin lies far below the first row; rows are multiples of 8 bytes.
``probe`` writes nothing but heads: any number of threads.

Source: the perfect hash join of DuckDB, whose build side is columns; the links, and inserting as they come, are ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from engine.join.build_table cimport TABLE_DENSE, BuildTable
from engine.join.direct_pages cimport DirectPages, page_of, probe_keys
from engine.join.entry_pages cimport LINK_SIZE, EntryCursor, EntryPages, next_entries, row_link
from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.memory.status cimport STATUS_FULL, STATUS_OK
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.byte_kernels cimport prefetch
from engine.records.number_types cimport Word

cdef enum:
    CELLS_PER_ROW = 8
    WORTHY_CELLS_PER_ROW = 5        # so few, of the rows left then, are worth it to spill some more
    SPARE_PAGES = 16                # that the first rows may take beyond that
    LOOK_ROWS = 512                 # rows looked at together
    PREFETCH_DISTANCE = 16          # rows between one whose cell is asked for and one that is inserted

cdef uint64_t REACH = <uint64_t>8 << 32     # bytes that references of 32 bits to multiples of 8 reach


@cython.final
cdef class DenseTable(BuildTable):
    """The table of one join level, for numbers close together; the methods are kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, JoinSide build not None, JoinSide probe not None):
        self.kind = TABLE_DENSE
        self._cells = DirectPages(pool, build, probe, sizeof(uint32_t))
        self._row_bytes = build.codec.fixed_size + LINK_SIZE
        self.forget_seen()
        self.release()

    cdef int reserve(self, EntryPages** partitions, int32_t partition_count, int64_t rows) noexcept nogil:
        cdef bint some_are_spilled = False
        cdef int32_t index
        self.release()
        self._lacks_room = False
        for index in range(partition_count):
            # After each partition that is spilled it is asked again, and does not walk over all the others each time.
            if partitions[index].spilled:
                some_are_spilled = True
                if self._seen.rows < rows:
                    return STATUS_FULL
            elif not self._may_take(partitions[index], rows):
                self.release()
                return STATUS_FULL
        if self._take_pages() == STATUS_OK:
            return STATUS_OK
        self._lacks_room = some_are_spilled
        return STATUS_FULL

    cdef bint _may_take(self, const EntryPages* entries, int64_t rows) noexcept nogil:
        if self._cells.width == 0 or not self._is_near(entries):
            return False
        if self._seen.rows >= rows:
            self._taken = self._seen
        else:
            _widen_by_all(self, entries, CELLS_PER_ROW * <uint64_t>rows, &self._taken)
        return (self._taken.highest - self._taken.lowest) // CELLS_PER_ROW < <uint64_t>rows

    cdef void see(self, uint8_t** rows, int64_t count) noexcept nogil:
        if self._cells.width:
            _widen_by(self, rows, count, &self._seen)

    cdef void see_all(self, const EntryPages* entries) noexcept nogil:
        if self._cells.width:
            _widen_by_all(self, entries, ~<uint64_t>0, &self._seen)

    cdef bint is_worth_spilling_for(self, int64_t rows) noexcept nogil:
        cdef uint64_t span = self._seen.highest - self._seen.lowest
        cdef int64_t missing
        if not self._lacks_room:
            return False
        missing = <int64_t>(span >> self._cells.shift) + 2 - self._pool.pages_free()
        rows -= max(<int64_t>0, missing) * self._pool.page_size // self._row_bytes
        return rows > 0 and span // WORTHY_CELLS_PER_ROW < <uint64_t>rows

    cdef void forget_seen(self) noexcept nogil:
        self._seen = KeyRange(~<uint64_t>0, 0, 0)

    # Whether references reach all rows.
    cdef bint _is_near(self, const EntryPages* entries) noexcept nogil:
        cdef int64_t index
        cdef uint64_t address
        for index in range(entries.page_count + entries.large_count):
            if index < entries.page_count:
                address = <uint64_t>entries.pages[index].memory
            else:
                address = <uint64_t>entries.large[index - entries.page_count].memory
            if self._origin == 0:
                self._origin = address - REACH // 2
            if address - self._origin >= REACH - <uint64_t>entries.page_size:
                return False
        return True

    cdef int _take_pages(self) noexcept nogil:
        cdef uint64_t first = self._taken.lowest >> self._cells.shift
        cdef uint64_t last = self._taken.highest >> self._cells.shift
        self._is_bounded = True
        if (self._taken.lowest <= self._taken.highest and self._pool.pages_free() > <int64_t>(last - first)
                and self._cells.reach(first, last, True)):
            while first <= last and self._new_page(first) != NULL:
                first += 1
            if first > last:
                return STATUS_OK
        self.release()
        return STATUS_FULL

    # The cells of a page of keys, taken from the pool; NULL: there is no room, or there are too few rows for so many.
    cdef uint32_t* _new_page(self, uint64_t number) noexcept nogil:
        if self._cells.count >= SPARE_PAGES and not self._is_bounded and (
                self._cells.count << self._cells.shift > <uint64_t>(CELLS_PER_ROW * self.row_count)):
            return NULL
        if number - self._cells.first >= self._cells.size and not self._cells.reach(number, number, self._is_bounded):
            return NULL
        return <uint32_t*>self._cells.add(number)

    cdef int64_t insert(self, uint8_t** rows, const uint64_t* hashes, int64_t count) noexcept nogil:
        cdef int64_t inserted
        if self._cells.width == 0:
            return 0
        if self._origin == 0:
            self._origin = <uint64_t>rows[0] - REACH // 2
        self._count_rows(rows, count)
        if self._cells.width == 8:
            inserted = _insert[uint64_t](self, rows, count, self._cells.sign)
        elif self._cells.width == 4:
            inserted = _insert[uint32_t](self, rows, count, <uint32_t>self._cells.sign)
        elif self._cells.width == 2:
            inserted = _insert[uint16_t](self, rows, count, <uint16_t>self._cells.sign)
        else:
            inserted = _insert[uint8_t](self, rows, count, <uint8_t>self._cells.sign)
        if inserted < 0:
            return 0
        self.key_count += inserted
        return count

    cdef void probe(self, ArrowBatch batch, int64_t start, const int64_t* positions, int64_t count,
                    const uint64_t* hashes, uint8_t** heads) noexcept nogil:
        cdef const uint8_t* values = probe_keys(self._cells, batch, start)
        if self._cells.width == 8:
            _find(self, <const uint64_t*>values, self._cells.sign, positions, count, heads)
        elif self._cells.width == 4:
            _find(self, <const uint32_t*>values, <uint32_t>self._cells.sign, positions, count, heads)
        elif self._cells.width == 2:
            _find(self, <const uint16_t*>values, <uint16_t>self._cells.sign, positions, count, heads)
        else:
            _find(self, values, <uint8_t>self._cells.sign, positions, count, heads)

    cdef int borrow(self, BuildTable owner) except -1:
        cdef DenseTable other = <DenseTable?>owner
        self.release()
        self._cells.borrow(other._cells)
        self._origin = other._origin
        self._count_like(other)
        return 0

    cdef void release(self) noexcept nogil:
        self._cells.clear()
        self._is_bounded = False
        self.has_chains = False
        self._origin = 0
        self._taken = KeyRange(~<uint64_t>0, 0, 0)
        self._forget_counts()


# ------------------------------------------------------------------------------------------- kernels, by width of key
#
# With the sign bit turned over, a word compares unsigned as its number does.

cdef void _widen(int32_t slot, uint8_t** rows, int64_t count, Word sign, KeyRange* keys) noexcept nogil:
    cdef uint64_t lowest = keys.lowest
    cdef uint64_t highest = keys.highest
    cdef uint64_t word
    cdef int64_t index
    for index in range(count):
        word = <Word>((<const Word*>(rows[index] + slot))[0] ^ sign)
        lowest = min(lowest, word)
        highest = max(highest, word)
    keys.lowest = lowest
    keys.highest = highest
    keys.rows += count


cdef void _widen_by(DenseTable table, uint8_t** rows, int64_t count, KeyRange* keys) noexcept nogil:
    cdef int32_t slot = table._cells.slot
    cdef uint64_t sign = table._cells.sign
    if table._cells.width == 8:
        _widen[uint64_t](slot, rows, count, sign, keys)
    elif table._cells.width == 4:
        _widen[uint32_t](slot, rows, count, <uint32_t>sign, keys)
    elif table._cells.width == 2:
        _widen[uint16_t](slot, rows, count, <uint16_t>sign, keys)
    else:
        _widen[uint8_t](slot, rows, count, <uint8_t>sign, keys)


# By all rows of a partition, or by those up to one with which they span as much as that.
cdef void _widen_by_all(DenseTable table, const EntryPages* entries, uint64_t span_max, KeyRange* keys) noexcept nogil:
    cdef uint8_t* rows[LOOK_ROWS]
    cdef EntryCursor cursor
    cdef int64_t count
    memset(&cursor, 0, sizeof(cursor))
    while True:
        count = next_entries(entries, &cursor, rows, LOOK_ROWS)
        if count == 0:
            return
        _widen_by(table, rows, count, keys)
        if keys.highest - keys.lowest >= span_max:
            return


# Returns how many keys are new, -1 when a row cannot be inserted.
cdef int64_t _insert(DenseTable table, uint8_t** rows, int64_t count, Word sign) noexcept nogil:
    cdef int32_t shift = table._cells.shift
    cdef uint64_t mask = table._cells.mask
    cdef int32_t slot = table._cells.slot
    cdef uint64_t origin = table._origin
    cdef int64_t inserted = 0
    cdef uint64_t last_page = ~<uint64_t>0
    cdef uint32_t* cells = NULL
    cdef int64_t index
    cdef uint64_t word, page, reference, head
    cdef uint32_t* cells_ahead
    cdef uint8_t* row
    for index in range(count):
        if index + PREFETCH_DISTANCE < count:
            word = <Word>((<const Word*>(rows[index + PREFETCH_DISTANCE] + slot))[0] ^ sign)
            cells_ahead = <uint32_t*>page_of(table._cells.pages, table._cells.first, table._cells.size, word >> shift)
            if cells_ahead != NULL:
                prefetch(&cells_ahead[word & mask])
        row = rows[index]
        word = <Word>((<const Word*>(row + slot))[0] ^ sign)
        page = word >> shift
        if page != last_page:
            cells = <uint32_t*>page_of(table._cells.pages, table._cells.first, table._cells.size, page)
            if cells == NULL:
                cells = table._new_page(page)
                if cells == NULL:
                    return -1
            last_page = page
        reference = (<uint64_t>row - origin) >> 3
        if reference >> 32 or reference == 0:
            return -1
        # The last row of a key is its head, so that the others need not be looked at.
        head = cells[word & mask]
        cells[word & mask] = <uint32_t>reference
        if head == 0:
            inserted += 1
        else:
            row_link(row)[0] |= origin + (head << 3)
            table.has_chains = True
    return inserted


cdef void _find(DenseTable table, const Word* values, Word sign, const int64_t* positions, int64_t count,
                uint8_t** heads) noexcept nogil:
    cdef uint8_t** pages = table._cells.pages
    cdef uint64_t first_page = table._cells.first
    cdef uint64_t table_size = table._cells.size
    cdef int32_t shift = table._cells.shift
    cdef uint64_t mask = table._cells.mask
    cdef uint64_t origin = table._origin
    cdef int64_t index, position
    cdef uint64_t word
    cdef uint32_t reference
    cdef uint32_t* cells
    cdef uint8_t* head
    for index in range(count):
        position = positions[index]
        word = <Word>(values[position] ^ sign)
        cells = <uint32_t*>page_of(pages, first_page, table_size, word >> shift)
        head = NULL
        if cells != NULL:
            reference = cells[word & mask]
            # No branch: which rows match cannot be foretold.
            head = <uint8_t*>((origin + (<uint64_t>reference << 3)) & -<uint64_t>(reference != 0))
        heads[position] = head
