"""StateRows: partial states as binary rows, to and from spill files.

    rows = StateRows(schema, pool)              schema: key columns, then states; takes one page of the pool
    rows.write(batch, writer)                   a batch of states to a SpillWriter
    for batch in rows.read(reader): ...         back, at most 8192 rows or one block at a time
    rows.close()

Rows are encoded into the page and written page by page; a row larger than a page is encoded into memory of its own,
taken from the pool or, where that is full (it is, mostly: states are spilled because it is), from the reserved grant.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.memory.page_pool cimport PagePool, take_for_row
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page

from engine.errors import CorruptBlockError, MemoryBudgetError

cdef enum:
    CHUNK_ROWS = 1024
    READ_ROWS = 8192
    WIDE_BATCH_BYTES = 1 << 20      # of values outside in a batch, but for a single row


@cython.final
cdef class StateRows:

    cdef RowCodec _codec
    cdef PagePool _pool
    cdef uint8_t* _page
    cdef uint32_t* _sizes       # [CHUNK_ROWS]
    cdef uint8_t** _rows        # [READ_ROWS]

    def __cinit__(self, schema, PagePool pool not None):
        self._codec = RowCodec(schema)
        self._pool = pool
        self._sizes = <uint32_t*> malloc(CHUNK_ROWS * sizeof(uint32_t))
        self._rows = <uint8_t**> malloc(READ_ROWS * sizeof(uint8_t*))
        if self._sizes == NULL or self._rows == NULL:
            raise MemoryError()
        self._page = pool.take()
        if self._page == NULL:
            raise MemoryBudgetError(f"no page for the spilling of aggregate states in {pool!r}")

    def __dealloc__(self):
        free(self._sizes)
        free(self._rows)

    def keep_outside(self, owner):
        """Let wide values lie with owner (write_value)."""
        self._codec.let_outside(owner, ())

    def write(self, batch, SpillWriter writer not None):
        """Write the rows of a batch. Raises: SpillError, DiskFullError."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef int64_t start = 0
        cdef int64_t count, placed, used
        self._codec.accept(opened)
        self._codec.move_outside(opened)
        while start < opened.row_count:
            count = min(<int64_t> CHUNK_ROWS, opened.row_count - start)
            with nogil:
                self._codec.measure(opened, start, count, self._sizes)
                placed = used = 0
                while placed < count and used + self._sizes[placed] <= self._pool.page_size:
                    self._rows[placed] = self._page + used
                    used += self._sizes[placed]
                    placed += 1
            if placed == 0:
                self._write_large(opened, start, writer)
                start += 1
                continue
            with nogil:
                self._codec.encode(opened, start, placed, self._sizes, self._rows)
                writer.write(self._page, used)
            start += placed

    cdef int _write_large(self, ArrowBatch opened, int64_t row, SpillWriter writer) except -1:
        """Write one row that is larger than a page; its size is in _sizes[0]."""
        cdef int64_t size = self._sizes[0]
        cdef bint reserved = False
        cdef uint8_t* memory
        with nogil:
            memory = take_for_row(self._pool, size, &reserved)
        try:
            with nogil:
                self._codec.encode(opened, row, 1, self._sizes, &memory)
                writer.write(memory, size)
        finally:
            self._pool.give_large(memory, size, reserved)
        return 0

    def read(self, SpillReader reader not None):
        """Yield the rows of a file as batches, in order; closes the reader. Raises: CorruptBlockError, SpillError."""
        cdef ReadPosition position = ReadPosition()
        try:
            batch = self._next_batch(reader, position)
            while batch is not None:
                yield batch
                batch = self._next_batch(reader, position)
        finally:
            reader.close()

    cdef object _next_batch(self, SpillReader reader, ReadPosition position):
        cdef int64_t count
        cdef const uint8_t* last
        while position.left == 0:
            if reader.next_block(&position.block, &position.left) == 0:
                return None
        count = rows_of_page(position.block, position.left, self._rows, READ_ROWS)
        if count <= 0:
            raise CorruptBlockError(f"sizes of rows do not add up in a block of aggregate states ({reader!r})")
        count = self._codec.rows_within(self._rows, count, WIDE_BATCH_BYTES)
        last = self._rows[count - 1] + row_size(self._rows[count - 1])
        position.left -= last - position.block
        position.block = last
        return self._codec.decode(self._rows, count, NULL, 0)

    def close(self):
        """Give the page back; idempotent."""
        if self._page != NULL:
            self._pool.give(self._page)
            self._page = NULL


@cython.final
cdef class ReadPosition:
    """Where in a block a reading generator is."""

    cdef const uint8_t* block
    cdef int64_t left
