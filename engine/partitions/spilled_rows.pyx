"""SpilledRows: batches as binary rows, to and from spill files.

    rows = SpilledRows(schema, key_count, pool)   schema: key columns, then others; takes one page of the pool; None: it
                                                only reads
    rows.write(batch, writer)                   a batch to a SpillWriter
    rows.scatter(batch, files, level, count)    each row to the file of its partition on that level
    for batch in rows.read(reader): ...         back, at most 8192 rows or one block at a time
    rows.read(reader, level, part, parts)       only those whose key falls into a part, as partitions of that level do
    rows.close()

Rows are encoded into the page and written page by page; a row larger than a page is encoded into memory of its own,
taken from the pool or, where that is full (it is, mostly: rows are spilled because it is), beyond its limit.
About 200 KiB of scratch lie outside of the pool.

Held by: tests/partitions/test_spilled_rows.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.memory.page_pool cimport PagePool, take_for_row
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.hashing cimport hash_rows, partition_of_hash
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page

from engine.errors import CorruptBlockError, MemoryBudgetError
from engine.records.wide_rows import room_for

cdef enum:
    CHUNK_ROWS = 1024
    READ_ROWS = 8192
    GATHER_BYTES = 32 << 10         # rows of smaller blocks are put together to so much
    WIDE_BATCH_BYTES = 1 << 20      # of values outside in a batch, but for a single row


cdef void* writer_of(object files, int32_t partition) except NULL:
    """Return the SpillWriter of a partition, which files keeps."""
    cdef SpillWriter writer = files.writer(partition)
    return <void*> writer


@cython.final
cdef class SpilledRows:

    cdef RowCodec _codec
    cdef PagePool _pool
    cdef uint8_t* _page
    cdef uint32_t* _sizes       # [CHUNK_ROWS]
    cdef uint8_t** _rows        # [READ_ROWS]
    cdef uint64_t* _hashes      # [READ_ROWS]
    cdef uint8_t** _gathered    # [READ_ROWS], in _room
    cdef uint8_t* _room         # [GATHER_BYTES]
    cdef int32_t _key_count
    cdef int32_t* _key_columns  # 0, 1, 2 ...

    def __cinit__(self, schema, int32_t key_count, PagePool pool):
        cdef int32_t index
        self._codec = RowCodec(schema)
        self._pool = pool
        self._key_count = key_count
        self._sizes = <uint32_t*> malloc(CHUNK_ROWS * sizeof(uint32_t))
        self._rows = <uint8_t**> malloc(READ_ROWS * sizeof(uint8_t*))
        self._hashes = <uint64_t*> malloc(READ_ROWS * sizeof(uint64_t))
        self._gathered = <uint8_t**> malloc(READ_ROWS * sizeof(uint8_t*))
        self._room = <uint8_t*> malloc(GATHER_BYTES)
        self._key_columns = <int32_t*> calloc(key_count + 1, sizeof(int32_t))
        if (self._sizes == NULL or self._rows == NULL or self._hashes == NULL or self._gathered == NULL
                or self._room == NULL or self._key_columns == NULL):
            raise MemoryError()
        for index in range(key_count):
            self._key_columns[index] = index
        if pool is None:
            return
        self._page = pool.take()
        if self._page == NULL:
            raise MemoryBudgetError(f"no page for the spilling of rows in {pool!r}")

    def __dealloc__(self):
        free(self._sizes)
        free(self._rows)
        free(self._hashes)
        free(self._gathered)
        free(self._room)
        free(self._key_columns)

    def keep_outside(self, owner):
        """Let wide values lie with owner (write_value)."""
        self._codec.let_outside(owner, ())

    def write(self, batch, SpillWriter writer not None):
        """Write the rows of a batch. Raises: SpillError, DiskFullError."""
        cdef ArrowBatch opened = self._open(batch)
        cdef int64_t start = 0
        cdef int64_t count, used = 0
        while start < opened.row_count:
            count = self._encode_page(opened, start, &used)
            if count == 0:
                self._write_large(opened, start, writer, None, 0, 1)
                count = 1
            else:
                with nogil:
                    writer.write(self._page, used)
            start += count

    def scatter(self, batch, files not None, int32_t level, int32_t partition_count):
        """Write each row of a batch to the writer that `files` (PartitionFiles) has for its partition.

        Raises: as write.
        """
        cdef ArrowBatch opened = self._open(batch)
        cdef void** writers = <void**> calloc(partition_count, sizeof(void*))
        cdef int64_t start = 0
        cdef int64_t count, row, used = 0
        cdef int32_t partition
        if writers == NULL:
            raise MemoryError()
        try:
            while start < opened.row_count:
                count = self._encode_page(opened, start, &used)
                if count == 0:
                    self._write_large(opened, start, None, files, level, partition_count)
                    start += 1
                    continue
                row = 0
                with nogil:
                    self._hash_rows(count)
                while True:
                    with nogil:
                        row = self._write_rows(writers, row, count, level, partition_count)
                    if row == count:
                        break
                    partition = partition_of_hash(self._hashes[row], level, partition_count)
                    writers[partition] = writer_of(files, partition)
                start += count
        finally:
            free(writers)

    cdef int64_t _write_rows(self, void** writers, int64_t row, int64_t count, int32_t level,
                             int32_t partition_count) except -1 nogil:
        """Write rows to their writers, up to the first that has none yet; returns its number, or count."""
        cdef void* writer
        while row < count:
            writer = writers[partition_of_hash(self._hashes[row], level, partition_count)]
            if writer == NULL:
                break
            (<SpillWriter> writer).write(self._rows[row], self._sizes[row])
            row += 1
        return row

    cdef ArrowBatch _open(self, batch):
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        if self._page == NULL:
            raise RuntimeError("rows are written without a page: it only reads, or is closed")
        self._codec.accept(opened)
        self._codec.move_outside(opened)
        return opened

    cdef int64_t _encode_page(self, ArrowBatch opened, int64_t start, int64_t* used) except -1:
        """Encode rows from start on into the page, side by side; returns how many, 0: the first is too large."""
        cdef int64_t count = min(<int64_t> CHUNK_ROWS, opened.row_count - start)
        cdef int64_t placed = 0
        with nogil:
            self._codec.measure(opened, start, count, self._sizes)
            used[0] = 0
            while placed < count and used[0] + self._sizes[placed] <= self._pool.page_size:
                self._rows[placed] = self._page + used[0]
                used[0] += self._sizes[placed]
                placed += 1
            self._codec.encode(opened, start, placed, self._sizes, self._rows)
        return placed

    cdef int _write_large(self, ArrowBatch opened, int64_t row, SpillWriter writer, object files, int32_t level,
                          int32_t partition_count) except -1:
        """Write one row that is larger than a page; its size is in _sizes[0]. Without writer: to its partition's."""
        cdef int64_t size = self._sizes[0]
        cdef uint8_t* memory
        with room_for(size, 1):
            memory = take_for_row(self._pool, size)
            try:
                with nogil:
                    self._codec.encode(opened, row, 1, self._sizes, &memory)
                    self._rows[0] = memory
                    self._hash_rows(1)
                if writer is None:
                    writer = files.writer(partition_of_hash(self._hashes[0], level, partition_count))
                with nogil:
                    writer.write(memory, size)
            finally:
                self._pool.give_large(memory, size)
        return 0

    def read(self, SpillReader reader not None, int32_t level=0, int32_t part=0, int32_t parts=1):
        """Yield the rows of a file as batches, in order; closes the reader. Raises: CorruptBlockError, SpillError.

        Args: level, part, parts: only those whose key falls into partition `part` of `parts` on a level.
        """
        cdef ReadPosition position = ReadPosition()
        position.level, position.part, position.parts = level, part, parts
        try:
            batch = self._next_batch(reader, position)
            while batch is not None:
                yield batch
                batch = self._next_batch(reader, position)
        finally:
            reader.close()

    cdef object _next_batch(self, SpillReader reader, ReadPosition position):
        cdef int64_t count
        position.gathered = position.gathered_bytes = position.outside_bytes = 0
        while True:
            while position.left == 0:
                if reader.next_block(&position.block, &position.left) == 0:
                    return self._codec.decode(self._gathered, position.gathered, NULL, 0) if position.gathered else None
            count = rows_of_page(position.block, position.left, self._rows, READ_ROWS)
            if count <= 0:
                raise CorruptBlockError(f"sizes of rows do not add up in a block of parted rows ({reader!r})")
            if position.gathered == 0 and position.parts == 1 and position.left >= GATHER_BYTES:
                count = self._codec.rows_within(self._rows, count, WIDE_BATCH_BYTES)
                position.move_to(self._rows[count - 1] + row_size(self._rows[count - 1]))
                return self._codec.decode(self._rows, count, NULL, 0)
            with nogil:
                count = self._gather(position, count)
            if count > 0:                       # one row that is larger than all that is gathered
                return self._codec.decode(self._rows, 1, NULL, 0)
            if count < 0:
                return self._codec.decode(self._gathered, position.gathered, NULL, 0)

    cdef int64_t _gather(self, ReadPosition position, int64_t count) noexcept nogil:
        """Copy wanted rows to the others. 0: go on; -1: no more find room; 1: the first of _rows is a batch by itself.

        Blocks are as small as the memory is, and of each a part may be wanted: too few rows for a batch.
        """
        cdef int64_t row, size, outside
        if position.parts > 1:
            self._hash_rows(count)
        for row in range(count):
            if position.parts > 1 and (
                    partition_of_hash(self._hashes[row], position.level, position.parts) != position.part):
                continue
            size = row_size(self._rows[row])
            outside = self._codec.bytes_outside(self._rows[row])
            if position.gathered_bytes + size > GATHER_BYTES or (
                    position.outside_bytes + outside > WIDE_BATCH_BYTES or position.gathered == READ_ROWS):
                if position.gathered > 0:
                    position.move_to(self._rows[row])
                    return -1
                position.move_to(self._rows[row] + size)
                self._rows[0] = self._rows[row]
                return 1
            memcpy(self._room + position.gathered_bytes, self._rows[row], size)
            self._gathered[position.gathered] = self._room + position.gathered_bytes
            position.gathered += 1
            position.gathered_bytes += size
            position.outside_bytes += outside
        position.move_to(self._rows[count - 1] + row_size(self._rows[count - 1]))
        return 0

    cdef void _hash_rows(self, int64_t count) noexcept nogil:
        """The hashes of the keys of _rows."""
        if self._key_count > 0:
            hash_rows(self._codec, self._key_columns, self._key_count, self._rows, count, self._hashes)
        else:
            memset(self._hashes, 0, count * sizeof(uint64_t))

    def close(self):
        """Give the page back; idempotent."""
        if self._page != NULL:
            self._pool.give(self._page)
            self._page = NULL


@cython.final
cdef class ReadPosition:
    """The position of a reading generator in a block, and the rows that it wants."""

    cdef const uint8_t* block
    cdef int64_t left
    cdef int32_t level
    cdef int32_t part
    cdef int32_t parts
    cdef int64_t gathered           # rows, and their bytes
    cdef int64_t gathered_bytes
    cdef int64_t outside_bytes

    cdef void move_to(self, const uint8_t* row) noexcept nogil:
        self.left -= row - self.block
        self.block = row
