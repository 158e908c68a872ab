"""DictionaryTable: a dictionary-encoded build side: rows that differ in their key alone, each distinct one kept once.

    insert_batch / insert ... ─┬─ all were taken ─► probe(batch, ...) ... ─► release()
                               └─ less ─► take_back(rows) ... ─► 0          rows again, for partitions, another table

    key ──► page of keys, cell: a code (a byte)     distinct rows (one page)
                              [ 3 ] ──────────────► row 3: every column but the key
                              [ 0 ]  no such key

Dimensions have many keys and few attributes: an order has one of five priorities, a customer one of 25 countries. Such
a build side is a byte for each number between its keys instead of a row and a directory's cell for each key: 30 MB for
7.5 million orders where every fourth number is a key, 4 MB where every number is one. The table is built without first
touch of fresh memory, stays in the cache or nearly, and does not spill where rows would have spilled several times.

For one key that is an integer or the like (``direct_pages``), of which no two rows have the same (unless one row of
each key is enough: then repetitions are taken and forgotten), where the other columns have at most CODE_MAX
combinations, and there are at most CELLS_PER_ROW numbers for each key. The first row that breaks this ends it: what was
taken comes back as rows, page by page, and is added as if nothing had been, which costs what encoding the rows costs.
Rows with null keys stay outside. The key of a row that is found is zero: the probe row has it.

Where the only other column is of short texts, and all texts of a block have come before, their rows are known by three
words of each (``short_text``), and no row is encoded.

Invariants: rows of equal columns are equal bytes (``records.layout``), so bytes are compared. ``probe`` writes nothing
but heads: any number of threads. Pages that others need to go on after take_back are never taken (``pages_kept``).

Source: the perfect hash join and the dictionaries of column stores; a dictionary of whole rows is ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from engine.join.build_table cimport TABLE_DICTIONARY, BuildTable
from engine.join.direct_pages cimport DirectPages, page_of, probe_keys
from engine.join.entry_pages cimport LINK_SIZE, open_page, place_in_page, release_entries
from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport KIND_BYTES, ArrowBatch, ColumnView
from engine.records.number_types cimport Word
from engine.records.row_codec cimport row_size
from engine.records.short_text cimport ShortText, equal_short_texts, place_of_short_text, read_short_text

from engine.graph import dictionary_limits

cdef int64_t CELLS_PER_ROW = dictionary_limits.CELLS_PER_ROW

cdef enum:
    SPARE_PAGES = 64                # that the first rows may take beyond that


@cython.final
cdef class DictionaryTable(BuildTable):
    """The table of a build side whose rows differ in their key alone; the methods are kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, JoinSide build not None, JoinSide probe not None):
        self.kind = TABLE_DICTIONARY
        self._codec = build.codec
        self._text_column = -1
        if build.key_count == 1 and build.codec.column_count == 2:
            self._key_column = build.keys[0]
            if build.codec.kinds[1 - build.keys[0]] == KIND_BYTES:
                self._text_column = 1 - build.keys[0]
        self._cells = DirectPages(pool, build, probe, sizeof(uint8_t))
        memset(&self._entries, 0, sizeof(self._entries))
        self._entries.page_size = pool.page_size
        self._entries.link_size = LINK_SIZE

    def __dealloc__(self):
        free(self._entries.pages)
        free(self._block)
        free(self._block_rows)
        free(self._block_sizes)

    cdef bint open(self, int64_t pages_kept, bint one_is_enough) except -1:
        if self._cells.width == 0 or self._codec.fixed_size > DISTINCT_ROW_BYTES_MAX:
            return False
        self._pages_kept = pages_kept
        self._one_is_enough = one_is_enough
        if one_is_enough:               # a repetition's text is not its row's
            self._text_column = -1
        self._block = <uint8_t*>malloc(BLOCK_ROWS * DISTINCT_ROW_BYTES_MAX)
        self._block_rows = <uint8_t**>malloc(BLOCK_ROWS * sizeof(uint8_t*))
        self._block_sizes = <uint32_t*>malloc(BLOCK_ROWS * sizeof(uint32_t))
        if self._block == NULL or self._block_rows == NULL or self._block_sizes == NULL:
            raise MemoryError("scratch of a join's dictionary table")
        return True

    cdef int64_t insert_batch(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil:
        cdef int64_t done = 0
        cdef int64_t block, fitting, taken
        while done < count:
            block = min(<int64_t>BLOCK_ROWS, count - done)
            if self._find_texts(batch, start + done, block):
                taken = self._insert_found(batch, start + done, block)
                done += taken
                if taken < block:
                    break
                continue
            self._codec.measure(batch, start + done, block, self._block_sizes)
            fitting = 0
            while fitting < block and self._block_sizes[fitting] <= DISTINCT_ROW_BYTES_MAX:
                self._block_rows[fitting] = self._block + fitting * DISTINCT_ROW_BYTES_MAX
                fitting += 1
            self._codec.encode(batch, start + done, fitting, self._block_sizes, self._block_rows)
            taken = self.insert(self._block_rows, NULL, fitting)
            self._keep_texts(batch, start + done, taken)
            done += taken
            if taken < block:
                break
        return done

    # Whether all texts of some rows have come before; the codes of their rows then.
    cdef bint _find_texts(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil:
        cdef const ColumnView* column
        cdef const int32_t* offsets
        cdef ShortText wanted
        cdef RecentText* place
        cdef int64_t row
        if self._text_column < 0:
            return False
        column = &batch.columns[self._text_column]
        if column.validity != NULL or column.kind != KIND_BYTES:
            return False
        offsets = <const int32_t*>column.offsets + column.offset + start
        for row in range(count):
            if not read_short_text(column.values + offsets[row], offsets[row + 1] - offsets[row], &wanted):
                return False
            place = &self._texts[place_of_short_text(&wanted, TEXT_BITS)]
            if not equal_short_texts(&place.text, &wanted):
                return False
            self._found[row] = <uint8_t>place.code
        return True

    # The same texts come again: rows that were taken just now, whose codes are _found.
    cdef void _keep_texts(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil:
        cdef const ColumnView* column
        cdef const int32_t* offsets
        cdef RecentText found
        cdef int64_t row
        if self._text_column < 0:
            return
        column = &batch.columns[self._text_column]
        if column.validity != NULL or column.kind != KIND_BYTES:
            return
        offsets = <const int32_t*>column.offsets + column.offset + start
        for row in range(count):
            if read_short_text(column.values + offsets[row], offsets[row + 1] - offsets[row], &found.text):
                found.code = self._found[row]
                self._texts[place_of_short_text(&found.text, TEXT_BITS)] = found

    # Take rows whose codes are _found.
    cdef int64_t _insert_found(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil:
        cdef const ColumnView* column = &batch.columns[self._key_column]
        cdef const uint8_t* values = column.values + (column.offset + start) * self._cells.width
        cdef int64_t taken
        if self._cells.width == 8:
            taken = _insert_codes(self, <const uint64_t*>values, self._cells.sign, count)
        elif self._cells.width == 4:
            taken = _insert_codes(self, <const uint32_t*>values, <uint32_t>self._cells.sign, count)
        elif self._cells.width == 2:
            taken = _insert_codes(self, <const uint16_t*>values, <uint16_t>self._cells.sign, count)
        else:
            taken = _insert_codes(self, values, <uint8_t>self._cells.sign, count)
        self.row_count += taken
        self.key_count = self.row_count
        return taken

    cdef int64_t insert(self, uint8_t** rows, const uint64_t* hashes, int64_t count) noexcept nogil:
        cdef int64_t taken
        if self._cells.width == 8:
            taken = _insert[uint64_t](self, rows, count, self._cells.sign)
        elif self._cells.width == 4:
            taken = _insert[uint32_t](self, rows, count, <uint32_t>self._cells.sign)
        elif self._cells.width == 2:
            taken = _insert[uint16_t](self, rows, count, <uint16_t>self._cells.sign)
        else:
            taken = _insert[uint8_t](self, rows, count, <uint8_t>self._cells.sign)
        self.row_count += taken
        self.key_count = self.row_count
        return taken

    # The code of a row of these columns, which is kept if there was none; 0: there are too many. The row is _plain.
    cdef int32_t _code_of(self, const uint8_t* row, int64_t size) noexcept nogil:
        cdef uint64_t hash = 0
        cdef int64_t index
        cdef uint64_t cell
        cdef uint8_t* kept
        memcpy(self._plain, row, size)
        memset(<uint8_t*>self._plain + self._cells.slot, 0, self._cells.width)
        for index in range(size >> 3):
            hash = (hash ^ self._plain[index]) * <uint64_t>0x9E3779B97F4A7C15
            hash ^= hash >> 29
        cell = hash & (HASH_CELLS - 1)
        while self._codes[cell]:
            kept = self._rows[self._codes[cell]]
            if row_size(kept) == size and memcmp(kept, self._plain, size) == 0:
                return self._codes[cell]
            cell = (cell + 1) & (HASH_CELLS - 1)
        if self._distinct_count == CODE_MAX:
            return 0
        kept = place_in_page(&self._entries, size)
        if kept == NULL and self._pool.pages_free() > self._pages_kept and open_page(&self._entries, self._pool):
            kept = place_in_page(&self._entries, size)
        if kept == NULL:
            return 0
        memcpy(kept, self._plain, size)
        self._distinct_count += 1
        self.max_row_size = max(self.max_row_size, size)
        self._rows[self._distinct_count] = kept
        self._codes[cell] = <uint8_t>self._distinct_count
        return self._distinct_count

    # The cells of a page of keys that has none yet; NULL: it gets none.
    cdef uint8_t* _page_for(self, uint64_t number) noexcept nogil:
        if self._cells.count >= SPARE_PAGES and (
                self._cells.count << self._cells.shift > <uint64_t>(CELLS_PER_ROW * self.row_count)):
            return NULL
        if self._pool.pages_free() <= self._pages_kept:
            return NULL
        if number - self._cells.first >= self._cells.size and not self._cells.reach(number, number, False):
            return NULL
        return self._cells.add(number)

    cdef int64_t take_back(self, uint8_t*** rows) noexcept nogil:
        cdef int64_t count
        rows[0] = self._block_rows
        if self._cells.width == 8:
            count = _take_back[uint64_t](self, self._cells.sign)
        elif self._cells.width == 4:
            count = _take_back[uint32_t](self, <uint32_t>self._cells.sign)
        elif self._cells.width == 2:
            count = _take_back[uint16_t](self, <uint16_t>self._cells.sign)
        else:
            count = _take_back[uint8_t](self, <uint8_t>self._cells.sign)
        self.row_count -= count
        if count == 0:
            self.release()
        return count

    cdef int64_t distinct_rows(self, uint8_t*** rows) noexcept nogil:
        rows[0] = self._rows + 1
        return self._distinct_count

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

    cdef int64_t find_indices(self, ArrowBatch batch, int64_t start, int64_t count, int32_t* indices) noexcept nogil:
        cdef const uint8_t* values = probe_keys(self._cells, batch, start)
        if self._cells.width == 8:
            return _find_indices(self, <const uint64_t*>values, self._cells.sign, count, indices)
        if self._cells.width == 4:
            return _find_indices(self, <const uint32_t*>values, <uint32_t>self._cells.sign, count, indices)
        if self._cells.width == 2:
            return _find_indices(self, <const uint16_t*>values, <uint16_t>self._cells.sign, count, indices)
        return _find_indices(self, values, <uint8_t>self._cells.sign, count, indices)

    cdef int borrow(self, BuildTable owner) except -1:
        cdef DictionaryTable other = <DictionaryTable?>owner
        self.release()
        self._cells.borrow(other._cells)
        memcpy(self._rows, other._rows, sizeof(self._rows))
        self._distinct_count = other._distinct_count
        self._count_like(other)
        return 0

    cdef void release(self) noexcept nogil:
        self._cells.clear()
        release_entries(&self._entries, self._pool, False)
        memset(self._rows, 0, sizeof(self._rows))
        memset(self._codes, 0, sizeof(self._codes))
        memset(self._texts, 0, sizeof(self._texts))
        self._forget_counts()
        self._distinct_count = 0
        self._walk_page = 0
        self._walk_cell = 0


# ------------------------------------------------------------------------------------------- kernels, by width of key

# Returns how many rows were taken.
cdef int64_t _insert(DictionaryTable table, uint8_t** rows, int64_t count, Word sign) noexcept nogil:
    cdef int32_t slot = table._cells.slot
    cdef uint64_t mask = table._cells.mask
    cdef uint64_t last_page = ~<uint64_t>0
    cdef uint8_t* cells = NULL
    cdef int64_t index, size
    cdef uint64_t word, page
    cdef int32_t code
    for index in range(count):
        size = row_size(rows[index])
        if size > DISTINCT_ROW_BYTES_MAX:
            return index
        word = <Word>((<const Word*>(rows[index] + slot))[0] ^ sign)
        page = word >> table._cells.shift
        if page != last_page:
            cells = _cells_of(table, page, index)
            if cells == NULL:
                return index
            last_page = page
        if cells[word & mask]:
            if not table._one_is_enough:
                return index
            table.row_count -= 1        # it will be counted with those that were taken
            continue
        code = table._code_of(rows[index], size)
        if code == 0:
            return index
        cells[word & mask] = <uint8_t>code
        table._found[index & (BLOCK_ROWS - 1)] = <uint8_t>code
    return count


# The same of rows whose codes are known.
cdef int64_t _insert_codes(DictionaryTable table, const Word* values, Word sign, int64_t count) noexcept nogil:
    cdef uint64_t mask = table._cells.mask
    cdef uint64_t last_page = ~<uint64_t>0
    cdef uint8_t* cells = NULL
    cdef int64_t index
    cdef uint64_t word, page
    for index in range(count):
        word = <Word>(values[index] ^ sign)
        page = word >> table._cells.shift
        if page != last_page:
            cells = _cells_of(table, page, index)
            if cells == NULL:
                return index
            last_page = page
        if cells[word & mask]:
            return index
        cells[word & mask] = table._found[index]
    return count


# The cells of a page of keys, NULL: it gets none. So many rows were taken that are not counted yet.
cdef inline uint8_t* _cells_of(DictionaryTable table, uint64_t page, int64_t taken) noexcept nogil:
    cdef uint8_t* cells = page_of(table._cells.pages, table._cells.first, table._cells.size, page)
    if cells == NULL:
        table.row_count += taken            # so many are there when the page is judged
        cells = table._page_for(page)
        table.row_count -= taken
    return cells


# Turns the rows of the next cells into rows again, and gives back the pages it has passed.
cdef int64_t _take_back(DictionaryTable table, Word sign) noexcept nogil:
    cdef int64_t count = 0
    cdef uint64_t word
    cdef uint8_t* cells
    cdef uint8_t* row
    cdef uint8_t* kept
    while table._walk_page < table._cells.size:
        cells = table._cells.pages[table._walk_page]
        while cells != NULL and table._walk_cell <= table._cells.mask:
            if cells[table._walk_cell]:
                if count == BLOCK_ROWS:
                    return count
                kept = table._rows[cells[table._walk_cell]]
                row = table._block + count * DISTINCT_ROW_BYTES_MAX
                memcpy(row, kept, row_size(kept))
                word = ((table._cells.first + table._walk_page) << table._cells.shift) | table._walk_cell
                (<Word*>(row + table._cells.slot))[0] = <Word>word ^ sign
                table._block_rows[count] = row
                count += 1
            table._walk_cell += 1
        if cells != NULL:
            table._cells.drop(table._walk_page)
        table._walk_cell = 0
        table._walk_page += 1
    return count


cdef void _find(DictionaryTable table, const Word* values, Word sign, const int64_t* positions, int64_t count,
                uint8_t** heads) noexcept nogil:
    cdef uint8_t** pages = table._cells.pages
    cdef uint64_t first_page = table._cells.first
    cdef uint64_t table_size = table._cells.size
    cdef int32_t shift = table._cells.shift
    cdef uint64_t mask = table._cells.mask
    cdef int64_t index, position
    cdef uint64_t word
    cdef uint8_t* cells
    for index in range(count):
        position = positions[index]
        word = <Word>(values[position] ^ sign)
        cells = page_of(pages, first_page, table_size, word >> shift)
        heads[position] = table._rows[cells[word & mask]] if cells != NULL else NULL


# Returns how many rows were found before the first one that was not.
cdef int64_t _find_indices(DictionaryTable table, const Word* values, Word sign, int64_t count,
                           int32_t* indices) noexcept nogil:
    cdef uint8_t** pages = table._cells.pages
    cdef uint64_t first_page = table._cells.first
    cdef uint64_t table_size = table._cells.size
    cdef int32_t shift = table._cells.shift
    cdef uint64_t mask = table._cells.mask
    cdef int64_t index
    cdef uint64_t word
    cdef uint8_t* cells
    for index in range(count):
        word = <Word>(values[index] ^ sign)
        cells = page_of(pages, first_page, table_size, word >> shift)
        if cells == NULL or cells[word & mask] == 0:
            return index
        indices[index] = cells[word & mask] - 1
    return count
