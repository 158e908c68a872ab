"""BuildBlocks: a build file, or a part of its keys, in blocks that fit memory, one after the other in a table.

    load(tables) ─► (probe everything) ─► load(tables) ─► ... ─► load(tables) is False ─► release()

The last block may be empty: behind a block that is full there may be rows of other parts only, and a part may have
none. Probe rows without match come with it, if they are wanted.

A block takes as many rows as the pool has pages for, keeping back those of the directory over them; at least one row,
in a large page beyond the limit when it is larger than the pool. A file that fits is one block. With ``recent`` one row
of each key is enough, and rows that came before are left out, also when they came in an earlier block.

Source: block nested loop join; Flink passes such partitions to a sort-merge join.

Held by: tests/join/test_hash_join_spill.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from engine.iomanager.spill_reader cimport SpillReader
from engine.join.entry_pages cimport (
    LINK_SIZE,
    EntryPages,
    next_rows_of_block,
    open_page,
    place_in_page,
    place_large,
    release_entries,
)
from engine.join.join_side cimport JoinSide
from engine.join.key_part cimport KeyPart
from engine.join.partition_set cimport CHUNK_ROWS
from engine.join.recent_rows cimport RecentRows
from engine.join.table_choice cimport TableChoice
from engine.memory.page_pool cimport PagePool
from engine.memory.status cimport STATUS_OK
from engine.records.byte_kernels cimport copy_words
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_codec cimport row_size

from engine.errors import CorruptBlockError, MemoryBudgetError


@cython.final
cdef class BuildBlocks:
    """Blocks of one build file; the methods are for the join (see the .pxd)."""

    def __cinit__(self, JoinSide build not None, PagePool pool not None, build_file, int64_t row_limit,
                  KeyPart part not None, RecentRows recent):
        memset(&self.entries, 0, sizeof(self.entries))
        self.entries.page_size = pool.page_size
        self.entries.link_size = LINK_SIZE
        self._build = build
        self._pool = pool
        self._row_limit = row_limit
        self._part = part
        self._recent = recent
        self._rows = <uint8_t**>malloc(CHUNK_ROWS * sizeof(uint8_t*))
        self._hashes = <uint64_t*>malloc(CHUNK_ROWS * sizeof(uint64_t))
        if self._rows == NULL or self._hashes == NULL:
            raise MemoryError("scratch of a block-wise join")
        self._reader = build_file.reader()

    def __dealloc__(self):
        free(self.entries.pages)
        free(self.entries.large)
        free(self._rows)
        free(self._hashes)

    cdef bint load(self, TableChoice tables) except -1:
        tables.release()
        release_entries(&self.entries, self._pool, False)
        if self.at_end:
            return False
        with nogil:
            self.at_end = self._fill(tables)
        if self.entries.row_count == 0 and not self.at_end:
            raise MemoryBudgetError(f"{self._pool.owner}: no memory for one build row")
        if tables.choose_tagged(self.entries.row_count) != STATUS_OK:
            raise MemoryBudgetError(f"{self._pool.owner}: no page for the directory of {self.entries.row_count} rows")
        with nogil:
            tables.fill(&self.entries, self._rows, self._hashes, CHUNK_ROWS)
        raise_failed_comparison()
        self.pass_count += 1
        return True

    # Copy rows into memory until it is full (False) or the file ends (True).
    cdef bint _fill(self, TableChoice tables) except -1 nogil:
        cdef int64_t count, index
        while True:
            if self._offset == self._size:
                self._offset = 0
                self._size = 0
                if self._reader.next_block(&self._data, &self._size) == 0:
                    return True
            count = next_rows_of_block(self._data, self._size, &self._offset, self._rows, CHUNK_ROWS, self._size)
            if count < 0:
                with gil:
                    raise CorruptBlockError("a block of a join's build file holds bytes that are not rows")
            count = self._part.choose(self._rows, count)
            if self._recent is not None:
                self._build.hash_rows(self._rows, count, self._hashes)
                count = self._recent.leave_out(self._rows, self._hashes, count)
            for index in range(count):
                if not self._place(tables, self._rows[index]):
                    self._offset = self._rows[index] - self._data
                    if self._recent is not None:        # this row and those behind it come again
                        self._recent.forget()
                    return False

    cdef bint _place(self, TableChoice tables, uint8_t* row) noexcept nogil:
        cdef int64_t size = row_size(row)
        cdef int64_t rows = self.entries.row_count
        cdef int64_t pages
        cdef uint8_t* target
        if self._row_limit >= 0 and rows >= self._row_limit:
            return False
        if size + LINK_SIZE > self._pool.page_size:
            if (rows > 0 and self.entries.large_count > 0
                    and self.entries.large[self.entries.large_count - 1].beyond_limit):
                return False
            pages = (size + LINK_SIZE + self._pool.page_size - 1) // self._pool.page_size
            target = NULL
            if self._pool.pages_free() - pages >= tables.pages_needed(rows + 1):
                target = place_large(&self.entries, self._pool, size, False)
            if target == NULL and rows == 0:
                target = place_large(&self.entries, self._pool, size, True)
        else:
            target = place_in_page(&self.entries, size)
            if target == NULL:
                pages = rows + self._pool.page_size // (self._build.codec.fixed_size + LINK_SIZE) + 1
                if rows == 0 or self._pool.pages_free() - 1 >= tables.pages_needed(pages):
                    if open_page(&self.entries, self._pool):
                        target = place_in_page(&self.entries, size)
        if target == NULL:
            return False
        copy_words(target, row, <uint64_t>size)
        return True

    cdef int release(self) except -1:
        release_entries(&self.entries, self._pool, False)
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        return 0
