"""RowBatch: some rows of one schema, passed from their owner to a reader without being decoded.

    batch = new_row_batch(codec, capacity) ─► batch.take(bytes), rows filled in ─► batch.end(count)
    batch = batch_of_rows(record_batch)             the same of an Arrow batch

    rows    │ ● │ ● │ ● │ ● │ ...       addresses in order
              │   │   └───┴──► memory of the batch      rows that would not stay where they were
              └───┴──► wherever they lie                rows that stay as long as the batch is read

Out-of-line values stay where they are: a row has a reference, and a reader that needs the value decodes it.

Invariants: addresses are valid as long as the batch, or as long as the giver of the batch says.
Memory: 8 bytes a row, and the rows that were copied. Thread: one at a time.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc

from engine.records.row_codec cimport RowCodec, row_size, rows_of_page


@cython.final
cdef class RowBatch:
    """Rows as addresses; the methods are for kernels (see the .pxd)."""

    def __dealloc__(self):
        free(self.rows)
        free(self.memory)

    @property
    def num_rows(self):
        """Rows that are there."""
        return self.count

    def decoded(self):
        """Return the rows as a pyarrow.RecordBatch, for tests and tools. Raises: as RowCodec.decode."""
        return self.codec.decode(self.rows, self.count, NULL, 0)

    cdef int take(self, int64_t size) except -1:
        self.memory = <uint8_t*>malloc(<size_t>size + 1)
        if self.memory == NULL:
            raise MemoryError(f"{size} bytes for rows")
        self.memory_size = size
        return 0

    cdef int end(self, int64_t count) except -1:
        cdef void* smaller = realloc(self.rows, (<size_t>count + 1) * sizeof(uint8_t*))
        if smaller != NULL:
            self.rows = <uint8_t**>smaller
        self.count = count
        if self.memory != NULL:
            with nogil:
                self._shrink()
        return 0

    cdef void _shrink(self) noexcept nogil:
        """Give back memory that is not used; rows go with the rest if that moves."""
        cdef uintptr_t begin = <uintptr_t>self.memory
        cdef uintptr_t end = begin + <uintptr_t>self.memory_size
        cdef int64_t used = 0
        cdef int64_t row
        cdef void* smaller
        for row in range(self.count):
            if begin <= <uintptr_t>self.rows[row] < end:
                used += row_size(self.rows[row])
        if used > self.memory_size - self.memory_size // 4:
            return
        smaller = realloc(self.memory, <size_t>used + 1)
        if smaller == NULL:
            return
        self.memory = <uint8_t*>smaller
        self.memory_size = used
        if <uintptr_t>smaller == begin:
            return
        for row in range(self.count):
            if begin <= <uintptr_t>self.rows[row] < end:
                self.rows[row] = self.memory + (<uintptr_t>self.rows[row] - begin)


cdef RowBatch new_row_batch(RowCodec codec, int64_t capacity):
    cdef RowBatch batch = RowBatch.__new__(RowBatch)
    batch.codec = codec
    batch.rows = <uint8_t**>malloc((<size_t>capacity + 1) * sizeof(uint8_t*))
    if batch.rows == NULL:
        raise MemoryError(f"addresses of {capacity} rows")
    return batch


def batch_of_rows(batch):
    """Return the rows of a pyarrow.RecordBatch.

    Raises: SchemaError for a column that rows cannot hold, or a null where none is declared.
    """
    cdef RowCodec codec = RowCodec(batch.schema)
    cdef RowBatch made = new_row_batch(codec, batch.num_rows)
    cdef const uint8_t[::1] page
    made._owner = codec.to_rows(batch)
    page = made._owner
    if page.shape[0]:
        made.end(rows_of_page(&page[0], page.shape[0], made.rows, batch.num_rows))
    return made
