"""TaggedTable: finds the build rows of a probe batch through a compact directory of tagged pointers.

    reserve(rows) ─► insert(rows, hashes) ... ─► probe(batch, ...) ... ─► release()

    hash ──remix──► cell index                       directory (pages)            rows (pages)
    low 16 bits ──► tag                              [tag|ptr] ─────────────────► link │ row
                                                     [   0   ]                     └──► next row of the same key

One cell for each distinct key; further rows of the key hang on the first through their links, so a key with a million
rows costs one cell and one comparison for each probe row. A tag that differs saves the visit to the row: 1 false visit
in 65536. ``probe`` works on blocks of 1024 rows in rounds: cells are prefetched, then walked to the first equal tag,
then the keys of all candidates are compared column by column; the few with another key walk on in the next round.

Rows of a table that is stored in the order of its key come in runs of one key. Where the hash is a bijection of the key
(``JoinSide.hash_is_key``), only the first row of a run is looked up; the others get what it found.

Invariants: a row is inserted once; after ``insert`` begins, link bits 47..3 are its chain; all inserts together are at
most the rows of ``reserve``. ``probe`` writes only the scratch arrays of this object: one thread at a time.

Limits: 2^32 cells. Load factor: at most 0.8; 0.5 where the pool has the pages.

Held by: tests/join/test_hash_join.py
Source: the tagged directory of Leis et al. and DuckDB's salted join hash table; Flink's BinaryHashBucketArea uses
buckets of 128 bytes with overflow chains instead.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from engine.join.build_table cimport TABLE_TAGGED, BuildTable
from engine.join.entry_pages cimport LINK_POINTER, EntryPages, row_link, set_next_of_key
from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.memory.status cimport STATUS_FULL, STATUS_OK
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.byte_kernels cimport prefetch
from engine.records.comparator cimport KeyEquality
from engine.records.hashing cimport rehash

cdef enum:
    PREFETCH_DISTANCE = 12


@cython.final
cdef class TaggedTable(BuildTable):
    """The table of one join level, for any keys; the methods are kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, JoinSide build not None, JoinSide probe not None):
        cdef int32_t shift = 0
        self.kind = TABLE_TAGGED
        self.needs_hashes = True
        self._hash_is_key = probe.hash_is_key
        build_keys = [build.keys[position] for position in range(build.key_count)]
        probe_keys = [probe.keys[position] for position in range(probe.key_count)]
        self._build_equality = KeyEquality(build.codec, build_keys, build.codec, build_keys)
        self._probe_equality = KeyEquality(probe.codec, probe_keys, build.codec, build_keys)
        while (<int64_t>16 << shift) <= pool.page_size:
            shift += 1
        self._page_shift = shift
        self._page_mask = (<uint64_t>1 << shift) - 1
        self._positions = <int64_t*>malloc(LOOKUP_BLOCK * sizeof(int64_t))
        self._batch_rows = <int64_t*>malloc(LOOKUP_BLOCK * sizeof(int64_t))
        self._cursors = <uint64_t*>malloc(LOOKUP_BLOCK * sizeof(uint64_t))
        self._candidates = <uint8_t**>malloc(LOOKUP_BLOCK * sizeof(uint8_t*))
        self._flags = <uint8_t*>malloc(LOOKUP_BLOCK)
        if (self._positions == NULL or self._batch_rows == NULL or self._cursors == NULL or self._candidates == NULL
                or self._flags == NULL):
            raise MemoryError("lookup block of a hash table")

    def __dealloc__(self):
        if not self._is_borrowed:
            free(self._pages)
        free(self._positions)
        free(self._batch_rows)
        free(self._cursors)
        free(self._candidates)
        free(self._flags)

    cdef int64_t pages_needed(self, int64_t rows) noexcept nogil:
        if rows == 0:
            return 0
        return ((rows + rows // 4) >> self._page_shift) + 1

    cdef int64_t pages_wanted(self, int64_t rows) noexcept nogil:
        if rows == 0:
            return 0
        return ((2 * rows) >> self._page_shift) + 1

    cdef int reserve(self, EntryPages** partitions, int32_t partition_count, int64_t rows) noexcept nogil:
        cdef int64_t needed = self.pages_needed(rows)
        cdef int64_t wanted = self.pages_wanted(rows)
        cdef uint8_t* page
        self.release()
        if rows == 0:
            return STATUS_OK
        self._pages = <uint64_t**>calloc(wanted, sizeof(uint64_t*))
        if self._pages == NULL:
            return STATUS_FULL
        while self._page_count < wanted:
            page = self._pool.take()
            if page == NULL:
                break
            memset(page, 0, <size_t>8 << self._page_shift)
            self._pages[self._page_count] = <uint64_t*>page
            self._page_count += 1
        if self._page_count < needed:
            self.release()
            return STATUS_FULL
        self._cell_count = <uint64_t>self._page_count << self._page_shift
        return STATUS_OK

    cdef inline uint64_t* _cell(self, uint64_t index) noexcept nogil:
        return &self._pages[index >> self._page_shift][index & self._page_mask]

    cdef inline uint64_t _next(self, uint64_t index) noexcept nogil:
        return index + 1 if index + 1 < self._cell_count else 0

    cdef int64_t insert(self, uint8_t** rows, const uint64_t* hashes, int64_t count) noexcept nogil:
        cdef int64_t position
        self._count_rows(rows, count)
        for position in range(count):
            if position + PREFETCH_DISTANCE < count:
                prefetch(self._cell(scale(rehash(hashes[position + PREFETCH_DISTANCE], 0), self._cell_count)))
            self._insert_row(rows[position], hashes[position])
        return count

    cdef inline void _insert_row(self, uint8_t* row, uint64_t hash) noexcept nogil:
        cdef uint64_t index = scale(rehash(hash, 0), self._cell_count)
        cdef uint64_t tag = hash << 48
        cdef uint64_t* cell
        cdef uint8_t* head
        while True:
            cell = self._cell(index)
            if cell[0] == 0:
                cell[0] = tag | <uint64_t>row
                self.key_count += 1
                return
            if (cell[0] & ~CELL_POINTER) == tag:
                head = <uint8_t*>(cell[0] & CELL_POINTER)
                if self._build_equality.rows_equal(head, row):
                    row_link(row)[0] |= row_link(head)[0] & LINK_POINTER
                    set_next_of_key(head, row)
                    return
            index = self._next(index)

    cdef void probe(self, ArrowBatch batch, int64_t start, const int64_t* positions, int64_t count,
                    const uint64_t* hashes, uint8_t** heads) noexcept nogil:
        cdef int64_t begin = 0
        cdef int64_t block, index
        if self.row_count == 0:
            for index in range(count):
                heads[positions[index]] = NULL
            return
        while begin < count:
            block = self._next_block(positions, &begin, count, hashes)
            for index in range(block):
                self._cursors[index] = scale(rehash(hashes[self._positions[index]], 0), self._cell_count)
                prefetch(self._cell(self._cursors[index]))
            while block > 0:
                block = self._candidates_of(start, block, hashes, heads)
                self._probe_equality.batch_equals_rows(batch, self._batch_rows, self._candidates, block, self._flags)
                block = self._accept(block, heads)
        if self._hash_is_key:
            for index in range(1, count):
                if hashes[positions[index]] == hashes[positions[index - 1]]:
                    heads[positions[index]] = heads[positions[index - 1]]

    # The rows that must be looked up next, as _positions: of each run of equal keys the first. Returns how many.
    cdef int64_t _next_block(self, const int64_t* positions, int64_t* begin, int64_t count,
                             const uint64_t* hashes) noexcept nogil:
        cdef int64_t index = begin[0]
        cdef int64_t block = 0
        cdef uint64_t last
        if not self._hash_is_key:
            block = min(<int64_t>LOOKUP_BLOCK, count - index)
            memcpy(self._positions, positions + index, block * sizeof(int64_t))
            begin[0] += block
            return block
        last = ~hashes[positions[0]] if index == 0 else hashes[positions[index - 1]]
        while index < count and block < LOOKUP_BLOCK:
            self._positions[block] = positions[index]
            block += hashes[positions[index]] != last       # no branch: runs are of any length
            last = hashes[positions[index]]
            index += 1
        begin[0] = index
        return block

    # Walk each pending row to the first cell with its tag; rows without one are done. Returns the candidates.
    cdef int64_t _candidates_of(self, int64_t start, int64_t pending, const uint64_t* hashes,
                                uint8_t** heads) noexcept nogil:
        cdef int64_t found = 0
        cdef int64_t index, position
        cdef uint64_t cursor, cell, tag
        for index in range(pending):
            position = self._positions[index]
            cursor = self._cursors[index]
            tag = hashes[position] << 48
            cell = self._cell(cursor)[0]
            while cell != 0 and (cell & ~CELL_POINTER) != tag:
                cursor = self._next(cursor)
                cell = self._cell(cursor)[0]
            if cell == 0:
                heads[position] = NULL
                continue
            self._positions[found] = position
            self._cursors[found] = cursor
            self._batch_rows[found] = start + position
            self._candidates[found] = <uint8_t*>(cell & CELL_POINTER)
            prefetch(self._candidates[found] - 8)
            found += 1
        return found

    # Candidates with equal keys become heads; the others stay pending behind their cell. Returns how many.
    cdef int64_t _accept(self, int64_t count, uint8_t** heads) noexcept nogil:
        cdef int64_t pending = 0
        cdef int64_t index
        for index in range(count):
            if self._flags[index]:
                heads[self._positions[index]] = self._candidates[index]
            else:
                self._positions[pending] = self._positions[index]
                self._cursors[pending] = self._next(self._cursors[index])
                pending += 1
        return pending

    cdef int borrow(self, BuildTable owner) except -1:
        cdef TaggedTable other = <TaggedTable?>owner
        self.release()
        self._is_borrowed = True
        self._pages = other._pages
        self._page_count = other._page_count
        self._cell_count = other._cell_count
        self._count_like(other)
        return 0

    cdef void release(self) noexcept nogil:
        cdef int64_t index
        if not self._is_borrowed:
            for index in range(self._page_count):
                self._pool.give(<uint8_t*>self._pages[index])
            free(self._pages)
        self._is_borrowed = False
        self._pages = NULL
        self._page_count = 0
        self._cell_count = 0
        self._forget_counts()
