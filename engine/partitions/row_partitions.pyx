"""RowPartitions: rows parted by the hash of their keys, in memory and, beyond it, in files.

    parts = RowPartitions(codec, keys, pool, files, partition_count, level, page_limit)
    reached = parts.add(batch, start)           rows before reached are in; fewer than all: no page is left
    parts.spill_largest()                       makes pages free; False: all partitions have files
    parts.add_rows(rows, count)                 kernels only: rows as they are; spills by itself, or calls on_full
    parts.add_file(reader)                      rows of a spill file as they are, likewise
    kept = parts.take(partition)                rows of a partition in memory, to be read or deleted
    parts.put(partition, kept)                  they are back, in front of those that come
    sources = parts.finish()                    the rest of spilled ones is written; KeptRows of the others
    parts.close()                               always; idempotent

    batch ─hash─► partition of each row ─► place in its last page ─┬─► all placed: encode
                                                                   └─► its page is full: encode the run so far, then
                                                                       spilled: write the page, fill it anew
                                                                       in memory: one more page, or stop

No row looks for others of its key here: one line of memory for each partition is being written, where a table larger
than the caches misses them two or three times for every row. The keys of one partition, afterwards, are few enough.

Invariants: rows of a partition stay in the order in which they came: file first, then pages. A spilled partition holds
one page at most, so a limit of one page for each partition is enough. Keys lie in their rows.

Limits: a row larger than a page goes to the file of its partition, whose pages are written before it.

Source: Boncz, Zukowski and Nes, "Database architecture optimized for the new bottleneck" (radix clustering);
DuckDB's radix-partitioned hash table.

Held by: tests/partitions/test_row_partitions.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.memory.page_pool cimport PagePool, take_for_row
from engine.partitions.row_page cimport RowPage, append_page, copy_row
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.byte_kernels cimport LINE_BYTES, prefetch
from engine.records.hashing cimport hash_batch, hash_rows, partition_of_hash
from engine.records.outside_values cimport values_lie_outside
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page
from engine.records.row_pages cimport RowPages, new_row_pages

from engine.errors import CorruptBlockError, MemoryBudgetError
from engine.records.wide_rows import room_for

cdef enum:
    CHUNK_ROWS = 1024
    READ_ROWS = 4096            # rows of a block that are copied together
    KEPT_ROWS = 32768           # rows of a batch that is read from memory
    KEPT_BYTES = 1 << 20        # bytes of it, and of values outside, but for a single page or row


@cython.final
cdef class RowPartitions:
    """Args: codec: of the rows; keys: their key columns; files: PartitionFiles; page_limit: one for each partition,
    at least."""

    def __cinit__(self, RowCodec codec not None, keys, PagePool pool not None, files, int32_t partition_count,
                  int32_t level, int64_t page_limit):
        cdef int32_t key_count = len(keys)
        cdef uint8_t* memory
        cdef int32_t index
        self._codec = codec
        self._pool = pool
        self._files = files
        self._key_count = key_count
        self.partition_count = partition_count
        self.level = level
        self.page_limit = max(page_limit, <int64_t> partition_count)
        self._parts = <RowPart*> calloc(partition_count, sizeof(RowPart))
        self._key_columns = <int32_t*> calloc(key_count + 1, sizeof(int32_t))
        self._scratch = malloc(CHUNK_ROWS * (2 * 8 + 2 * 4))
        if self._parts == NULL or self._key_columns == NULL or self._scratch == NULL:
            raise MemoryError()
        for index in range(key_count):
            self._key_columns[index] = keys[index]
        for index in range(partition_count):
            self._parts[index].is_spilled = files.has(index)
        memory = <uint8_t*> self._scratch
        self._hashes = <uint64_t*> memory
        self._targets = <uint8_t**> (memory + 8 * CHUNK_ROWS)
        self._sizes = <uint32_t*> (memory + 16 * CHUNK_ROWS)
        self._places = <int32_t*> (memory + 20 * CHUNK_ROWS)

    def __dealloc__(self):
        cdef int32_t index
        for index in range(self.partition_count if self._parts != NULL else 0):
            free(self._parts[index].pages)
        free(self._parts)
        free(self._key_columns)
        free(self._scratch)

    # ------------------------------------------------------------------------------------------------------- adding

    def add(self, batch, int64_t start):
        """Put rows start and following into their partitions; return the first row that is not in.

        Args: batch: pyarrow.RecordBatch of the codec's columns.
        Raises: SpillError, DiskFullError.
        """
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef RowChunk chunk
        cdef bint are_in
        self._codec.accept(opened)
        self._codec.move_outside(opened)
        memset(&chunk, 0, sizeof(chunk))
        chunk.start = start
        while True:
            with nogil:
                are_in = self._add_batch(opened, &chunk)
            if are_in:
                return opened.row_count
            if self._sizes[chunk.placed] > <uint32_t> self._pool.page_size:
                self._write_large(opened, chunk.start, chunk.placed)
                chunk.placed += 1
            elif not self._make_place(chunk.placed):
                return chunk.start + chunk.placed

    cdef bint _add_batch(self, ArrowBatch batch, RowChunk* chunk) except -1 nogil:
        """Put the rows from a chunk on into their parts; False: the next one finds no room."""
        cdef int64_t placed
        while chunk.start + chunk.placed < batch.row_count:
            if chunk.placed == chunk.count:
                chunk.start += chunk.count
                chunk.count = min(<int64_t> CHUNK_ROWS, batch.row_count - chunk.start)
                chunk.placed = 0
                self._look_at_batch(batch, chunk.start, chunk.count)
            placed = self._place(chunk.placed, chunk.count)
            self._encode(batch, chunk.start, chunk.placed, placed)
            chunk.placed = placed
            if placed < chunk.count:
                return False
        return True

    cdef void _look_at_batch(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil:
        cdef int64_t row
        hash_batch(batch, self._key_columns, self._key_count, start, count, self._hashes)
        self._codec.measure(batch, start, count, self._sizes)
        for row in range(count):
            self._places[row] = partition_of_hash(self._hashes[row], self.level, self.partition_count)

    cdef int64_t _place(self, int64_t row, int64_t count) noexcept nogil:
        """Give rows their addresses; stops at the first one that finds no room in its part's pages."""
        cdef RowPart* part
        cdef RowPage* page
        while row < count:
            part = &self._parts[self._places[row]]
            page = self._open_page(part, self._sizes[row])
            if page == NULL:
                return row
            self._targets[row] = page.memory + page.used
            page.used += self._sizes[row]
            part.row_count += 1
            row += 1
        return row

    cdef inline RowPage* _open_page(self, RowPart* part, int64_t size) noexcept nogil:
        """Return the page of a part where so many bytes have room; NULL: there is none."""
        cdef RowPage* page = part.pages + (part.page_count - 1)
        if part.page_count > 0 and page.used + size <= self._pool.page_size:
            return page
        if size > self._pool.page_size or (part.is_spilled and part.page_count > 0) or not self._add_page(part):
            return NULL
        return part.pages + (part.page_count - 1)

    cdef bint _add_page(self, RowPart* part) noexcept nogil:
        """Open one more page of a part; False: the limit is reached, or there is no memory."""
        if self.pages_held >= self.page_limit or not append_page(&part.pages, &part.page_count, &part.page_capacity,
                                                                 self._pool):
            return False
        self.pages_held += 1
        return True

    cdef int _encode(self, ArrowBatch batch, int64_t start, int64_t placed, int64_t stop) except -1 nogil:
        """Write the rows of a chunk that have got places."""
        if stop > placed:
            self._codec.encode(batch, start + placed, stop - placed, self._sizes + placed, self._targets + placed)
        return 0

    cdef int add_rows(self, uint8_t** rows, int64_t count) except -1:
        """Copy rows of the codec's schema, which are sound."""
        cdef int64_t row = 0
        while row < count:
            with nogil:
                row = self._add_chunks(rows, row, count)
                if row < count:                 # others may have been looked at when there is room for it
                    self._look_at(rows + row, 1)
            if row == count:
                break
            if self._sizes[0] > <uint32_t> self._pool.page_size:
                self._write_behind(self._places[0], rows[row], self._sizes[0])
                row += 1
            elif not self._make_place(0):
                self._make_room()
        return 0

    def add_file(self, SpillReader reader not None):
        """Copy the rows of a file of the codec's rows. Raises: CorruptBlockError, and what spilling raises."""
        cdef int64_t capacity = READ_ROWS
        cdef uint8_t** rows = <uint8_t**> malloc(<size_t> capacity * sizeof(uint8_t*))
        cdef const uint8_t* block = NULL
        cdef int64_t size = 0
        cdef int64_t offset, count
        if rows == NULL:
            raise MemoryError()
        try:
            while reader.next_block(&block, &size):
                offset = 0
                while offset < size:
                    count = rows_of_page(block + offset, size - offset, rows, capacity)
                    if count <= 0:
                        raise CorruptBlockError(f"sizes of rows do not add up in a block of parted rows ({reader!r})")
                    self.add_rows(rows, count)
                    offset = rows[count - 1] + row_size(rows[count - 1]) - block
        finally:
            free(rows)

    cdef int64_t _add_chunks(self, uint8_t** rows, int64_t row, int64_t count) noexcept nogil:
        """Copy rows to their parts; stops at the first one that finds no room in its part's pages."""
        cdef int64_t chunk, copied
        while row < count:
            chunk = min(<int64_t> CHUNK_ROWS, count - row)
            self._look_at(rows + row, chunk)
            copied = self._copy(rows + row, chunk)
            row += copied
            if copied < chunk:
                break
        return row

    cdef int _make_room(self) except -1:
        if self._when_full is not None:
            self._when_full()
        elif not self.spill_largest():
            raise MemoryBudgetError("no page is left for rows that are parted by their keys")
        return 0

    def on_full(self, when_full, spill=None):
        """Have add_rows call this where no page is left, in place of spill_largest().

        Args: spill: what is called in place of spill() where a partition is written before a row larger than a page.
        """
        self._when_full = when_full
        self._spill = spill

    cdef void _look_at(self, uint8_t** rows, int64_t count) noexcept nogil:
        cdef int64_t row
        hash_rows(self._codec, self._key_columns, self._key_count, rows, count, self._hashes)
        for row in range(count):
            self._places[row] = partition_of_hash(self._hashes[row], self.level, self.partition_count)
            self._sizes[row] = row_size(rows[row])

    cdef int64_t _copy(self, uint8_t** rows, int64_t count) noexcept nogil:
        """Copy rows that were looked at; returns how many found room."""
        cdef RowPart* part
        cdef RowPage* page
        cdef int64_t row
        for row in range(count):
            part = &self._parts[self._places[row]]
            page = self._open_page(part, self._sizes[row])
            if page == NULL:
                return row
            copy_row(page.memory + page.used, rows[row], self._sizes[row])
            page.used += self._sizes[row]
            prefetch(page.memory + page.used + LINE_BYTES)      # for the next rows of the part; no estimate is so large
            part.row_count += 1
        return count

    cdef bint _make_place(self, int64_t row) except -1:
        """Write the full page of a spilled part; False: the part is in memory, and there is no more."""
        cdef RowPart* part = &self._parts[self._places[row]]
        cdef SpillWriter writer
        if not part.is_spilled or part.page_count == 0:
            return False
        writer = self._files.writer(self._places[row])
        with nogil:
            writer.write(part.pages.memory, part.pages.used)
        part.pages.used = 0
        part.row_count = 0
        return True

    cdef int _write_large(self, ArrowBatch batch, int64_t start, int64_t row) except -1:
        """Write one row that is larger than a page."""
        cdef int64_t size = self._sizes[row]
        cdef uint8_t* memory
        with room_for(size, 1):
            memory = take_for_row(self._pool, size)
            try:
                self._codec.encode(batch, start + row, 1, self._sizes + row, &memory)
                self._write_behind(self._places[row], memory, size)
            finally:
                self._pool.give_large(memory, size)
        return 0

    cdef int _write_behind(self, int32_t partition, const uint8_t* row, int64_t size) except -1:
        """Write a row to the file of a partition, whose other rows go there before it."""
        cdef SpillWriter writer
        if self._spill is None:
            self.spill(partition)
        else:
            self._spill(partition)
        writer = self._files.writer(partition)
        with nogil:
            writer.write(row, size)
        return 0

    # ------------------------------------------------------------------------------------------------------ spilling

    def spill_largest(self):
        """Write the partition with most pages in memory to its file; False: none has any."""
        cdef int32_t index
        cdef int32_t largest = -1
        for index in range(self.partition_count):
            if not self._parts[index].is_spilled and self._parts[index].page_count > 0 and (
                    largest < 0 or self._parts[index].page_count > self._parts[largest].page_count):
                largest = index
        if largest < 0:
            return False
        self.spill(largest)
        return True

    def spill(self, int32_t partition):
        """Write all pages of a partition, give them back but for one; what comes later follows."""
        cdef RowPart* part = &self._parts[partition]
        cdef SpillWriter writer = self._files.writer(partition)
        cdef int64_t index
        part.is_spilled = True
        with nogil:
            for index in range(part.page_count):
                writer.write(part.pages[index].memory, part.pages[index].used)
                part.pages[index].used = 0
            self._give_pages(part, 1)
        part.row_count = 0

    cdef void _give_pages(self, RowPart* part, int64_t keep) noexcept nogil:
        while part.page_count > keep:
            part.page_count -= 1
            self._pool.give(part.pages[part.page_count].memory)
            self.pages_held -= 1

    def take(self, int32_t partition):
        """Return the rows of a partition in memory, which the caller then owns; None: there are none."""
        cdef RowPart* part = &self._parts[partition]
        cdef KeptRows kept
        if part.is_spilled or part.page_count == 0:
            return None
        kept = KeptRows.__new__(KeptRows)
        kept._pool = self._pool
        kept._codec = self._codec
        kept._pages = part.pages
        kept._page_count = kept.page_count = part.page_count
        kept.row_count = part.row_count
        self.pages_held -= part.page_count
        part.pages = NULL
        part.page_count = part.page_capacity = part.row_count = 0
        return kept

    def put(self, int32_t partition, KeptRows kept not None):
        """Put unread rows of a partition behind those that it has in memory."""
        cdef RowPart* part = &self._parts[partition]
        cdef int64_t count = kept._page_count - kept._page_index
        cdef RowPage* pages = <RowPage*> realloc(part.pages, <size_t> (part.page_count + count + 1) * sizeof(RowPage))
        if pages == NULL:
            raise MemoryError()
        memcpy(pages + part.page_count, kept._pages + kept._page_index, <size_t> count * sizeof(RowPage))
        part.pages = pages
        part.page_count += count
        part.page_capacity = part.page_count + 1
        part.row_count += kept.row_count
        self.pages_held += count
        kept._page_index = kept._next_index = kept._page_count

    def finish(self):
        """Write what spilled partitions have left, and return the others: KeptRows, in order. Nothing is left here."""
        cdef int32_t index
        for index in range(self.partition_count):
            if self._parts[index].is_spilled:
                self.spill(index)
                self._give_pages(&self._parts[index], 0)
        taken = [self.take(index) for index in range(self.partition_count)]
        return [kept for kept in taken if kept is not None]

    def close(self):
        """Give every page back; idempotent."""
        cdef int32_t index
        self._when_full = self._spill = None
        for index in range(self.partition_count):
            self._give_pages(&self._parts[index], 0)


@cython.final
cdef class KeptRows:
    """Iterator over the rows of a partition in memory, as batches; pages go back when they have been read."""

    def __dealloc__(self):
        free(self._rows)
        free(self._pages)

    def __iter__(self):
        return self

    def __next__(self):
        cdef int64_t count
        if self._given == self._found:
            self._give_pages(self._next_index)
            self._gather()
            if self._found == 0:
                raise StopIteration
        count = self._codec.rows_within(self._rows + self._given, self._found - self._given, KEPT_BYTES)
        self._given += count
        return self._codec.decode(self._rows + self._given - count, count, NULL, 0)

    def bytes_outside(self):
        """Return the bytes of values that lie outside of the rows."""
        cdef RowPages pages
        cdef uint8_t* rows[CHUNK_ROWS]
        cdef int64_t total = 0
        cdef int64_t count, row
        if not values_lie_outside():
            return 0
        pages = self.row_pages()
        with nogil:
            pages.rewind()
            while True:
                count = pages.next(rows, CHUNK_ROWS)
                if count <= 0:
                    break
                for row in range(count):
                    total += self._codec.bytes_outside(rows[row])
        return total

    def row_pages(self):
        """Return all rows as RowPages, where they lie: good until delete(). In place of reading them."""
        cdef RowPages pages = new_row_pages(self._codec, self.row_count, self._page_count - self._page_index)
        cdef int64_t index
        for index in range(pages.page_count):
            pages.pages[index].memory = self._pages[self._page_index + index].memory
            pages.pages[index].used = self._pages[self._page_index + index].used
        return pages

    cdef int _gather(self) except -1:
        """Find the next rows: about KEPT_ROWS of them, whole pages."""
        cdef int64_t capacity = KEPT_ROWS + self._pool.page_size // 8
        cdef int64_t size = 0
        cdef int64_t count
        cdef RowPage* page
        if self._rows == NULL:
            self._rows = <uint8_t**> malloc(<size_t> capacity * sizeof(uint8_t*))
            if self._rows == NULL:
                raise MemoryError()
        self._found = self._given = 0
        while self._next_index < self._page_count and self._found < KEPT_ROWS and size < KEPT_BYTES:
            page = self._pages + self._next_index
            with nogil:
                count = self._rows_of(page, self._rows + self._found, capacity - self._found)
            if count < 0:
                raise CorruptBlockError("sizes of rows do not add up in a page of parted rows")
            self._found += count
            size += page.used
            self._next_index += 1
        return 0

    cdef int64_t _rows_of(self, const RowPage* page, uint8_t** rows, int64_t capacity) noexcept nogil:
        """Find the rows of a page; those of one size need not be asked where the next one lies."""
        cdef int64_t size = self._codec.fixed_size
        cdef int64_t row
        if not self._codec.is_fixed:
            return rows_of_page(page.memory, page.used, rows, capacity)
        for row in range(page.used // size):
            rows[row] = page.memory + row * size
        return page.used // size

    cdef void _give_pages(self, int64_t end) noexcept nogil:
        while self._page_index < end:
            self._pool.give(self._pages[self._page_index].memory)
            self._page_index += 1

    def delete(self):
        """Give back what has not been read; idempotent."""
        self._given = self._found = 0
        self._next_index = self._page_count
        self._give_pages(self._page_count)
