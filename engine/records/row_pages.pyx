"""RowPages: rows where they lie in pages, passed from their owner to a reader that finds them a few at a time.

    pages = new_row_pages(codec, row_count, page_count) ─► pages.pages[n] = ... filled in
    pages = pages_of_rows(record_batch)                    the same of an Arrow batch, for tests
    while (count := pages.next(rows, capacity)) > 0: ...   addresses, in order
    pages.rewind()

    pages   │ ● ● ● ● │ ● ● ● │ ...         rows of a page are found by their sizes, one behind the other
                ▲ next

A reader that looks at rows as soon as they are found has them near; addresses of all rows first would bring each row
from memory twice.

Invariants: addresses are valid as long as their maker says. Thread: one at a time.

Held by: tests/records/test_row_pages.py
Held by: tests/aggregate/test_state_partitions.py
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from engine.records.row_codec cimport RowCodec, row_size, rows_of_page


cdef class RowPages:
    """Rows in pages; the methods are for kernels (see the .pxd)."""

    def __dealloc__(self):
        free(self.pages)

    def decoded(self):
        """Return all rows as a pyarrow.RecordBatch, for tests. Raises: as RowCodec.decode."""
        cdef uint8_t** rows = <uint8_t**> malloc((<size_t> self.row_count + 1) * sizeof(uint8_t*))
        if rows == NULL:
            raise MemoryError(f"addresses of {self.row_count} rows")
        try:
            self.rewind()
            return self.codec.decode(rows, self.next(rows, self.row_count), NULL, 0)
        finally:
            free(rows)

    cdef void rewind(self) noexcept nogil:
        self._page = self._offset = 0

    cdef int64_t next(self, uint8_t** rows, int64_t capacity) noexcept nogil:
        cdef int64_t found = 0
        cdef const PageSpan* page
        cdef int64_t count
        while found < capacity and self._page < self.page_count:
            page = self.pages + self._page
            if self._offset == page.used:
                self._page += 1
                self._offset = 0
                continue
            count = rows_of_page(page.memory + self._offset, page.used - self._offset, rows + found, capacity - found)
            if count < 0:
                return -1
            found += count
            self._offset = rows[found - 1] + row_size(rows[found - 1]) - page.memory
        return found


cdef RowPages new_row_pages(RowCodec codec, int64_t row_count, int64_t page_count):
    cdef RowPages made = RowPages.__new__(RowPages)
    made.codec = codec
    made.row_count = row_count
    made.page_count = page_count
    made.pages = <PageSpan*> calloc(<size_t> page_count + 1, sizeof(PageSpan))
    if made.pages == NULL:
        raise MemoryError(f"{page_count} pages of rows")
    return made


def pages_of_rows(batch not None):
    """Return the rows of a pyarrow.RecordBatch as a page.

    Raises: SchemaError for a column that rows cannot hold, or a null where none is declared.
    """
    cdef RowCodec codec = RowCodec(batch.schema)
    cdef RowPages made = new_row_pages(codec, batch.num_rows, 1)
    cdef const uint8_t[::1] page
    made._owner = codec.to_rows(batch)
    page = made._owner
    if page.shape[0]:
        made.pages[0].memory = &page[0]
        made.pages[0].used = page.shape[0]
    return made
