"""ScanMemory: what a task that reads Parquet files may hold, and how wide the rows were that it has seen.

    memory = ScanMemory(new_space)
    memory.check(path, group, pages)               MemoryBudgetError for a column that no reader can hold
    memory.hold(pages) -> bool                     what columns of a row group take; False: there is not as much
    memory.hold_ahead(size) -> bool                what is fetched of a row group that is read later, from any thread
    memory.take_ahead(size)                        it is read now: it counts as what is held
    memory.passes(read, sizes, rows)               the batches, through a file; None: there is no space for files
    memory.expect(row_bytes)
    memory.row_bytes  memory.batch_bytes_max(row_bytes)  memory.rows_at_once(row_bytes, rows_max)
    memory.bounded(batch, rows_max) -> [batch]     in pieces; notes how wide its rows are
    memory.end_split()  memory.let_go()  memory.close()

It is asked several times for each row group (``group_look``), so none of it is a Python frame.

One row group is held at a time. Widths outlive the file that they were seen in: the files of a source are alike.

Held by: tests/parquet/test_column_passes.py
"""

from libc.stdint cimport int64_t

import threading

import pyarrow as pa

from engine.memory.budget import LEAST_BYTES, Kind, Role, process_budget
from engine.parquet.column_passes import read_in_passes
from engine.parquet.pages import check_fits
from engine.records.batch_limits import BATCH_BYTES_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.wide_rows import average_width

#: bytes of a batch of narrow rows: of less, what every operator pays for a batch is seen beside decoding
NARROW_BATCH_BYTES_MAX = 8 << 20
#: bytes of a batch when there is very little memory for each reader
BATCH_BYTES_MIN = 128 << 10

cdef int64_t NARROW_MAX = NARROW_BATCH_BYTES_MAX
cdef int64_t WIDE_MAX = BATCH_BYTES_MAX
cdef int64_t LITTLE = BATCH_BYTES_MIN

cdef enum:
    NARROW_ROW_BYTES = 128
    # Batches that row groups read together may be at most.
    RUN_BATCHES = 4
    # Parts of a reader, of which there are Role.READER, that may be fetched ahead.
    AHEAD_PARTS = 4
    # A row group that holds so many bytes while it is read leaves blocks that are given back.
    RELEASED_BYTES = 8 << 20
    # Part of what Arrow may have that is given back at the end, where that is less.
    RELEASED_SHARE = 128

# More than any process has; what a damaged file says may be more than that.
cdef int64_t BYTES_MAX = 1 << 60
cdef int64_t READER_PARTS = Role.READER.value


cdef class ScanMemory:
    """The memory of one task's scan. Thread: the task's."""

    def __init__(self, new_space):
        self._new_space = new_space
        self._lock = threading.Lock()
        self.drop_ahead = None
        self._budget = process_budget
        self._reserved = self._budget.reserve(Kind.ARROW, 0, Role.READER)
        self._decoded_widths = {}

    @property
    def part_bytes(self):
        """The bytes that a batch of one reader may have now."""
        return self._reserved.part()

    def check(self, path, group, pages):
        """Raise MemoryBudgetError for a row group with a column that does not fit alone."""
        self._held_bytes = min(pages.held_bytes, BYTES_MAX)
        limit = self._budget.record_bytes_max()
        if self._held_bytes > limit:
            check_fits(path, group, pages.held, limit, is_at_once=pages.row_count == 1)

    def sizes(self, pages):
        """Return the bytes to reserve for each column: no more than a row group has that is smaller than a batch."""
        return dict.fromkeys(pages.held, column_bytes(pages)) if self._is_small(pages) else pages.held

    cdef bint _is_small(self, pages) except -1:
        cdef object size = pages.group_bytes
        return size <= LEAST_BYTES // 2 and size <= self._reserved.part()

    cpdef bint hold(self, pages) except -1:
        """Reserve what columns take while they are read; False: there is not as much, and nothing is held."""
        # A page that is opened is there twice for a moment.
        cdef int64_t wanted = min(pages.held_bytes_max, BYTES_MAX)
        cdef bint is_reserved
        if self._is_small(pages):
            wanted = column_bytes(pages) * (len(pages.held) + 1) if pages.held else 0
        if wanted <= self._now_bytes <= 2 * wanted:     # of a row group before, which was about as large
            return True
        is_reserved = self._resize(wanted)
        if not is_reserved and self._ahead_bytes and self.drop_ahead is not None:
            self.drop_ahead()
            is_reserved = self._resize(wanted)
        if not is_reserved:
            self._resize(0)     # what the last row group had
        return is_reserved

    cdef bint hold_whole(self, pages) except -1:
        if pages.held_bytes > self._budget.record_bytes_max():
            return False
        self._held_bytes = pages.held_bytes
        return self.hold(pages)

    cdef bint is_one_batch(self, pages, int64_t rows_max) except -1:
        cdef double seen = self.row_bytes, row_bytes = max(seen, <double>pages.row_bytes)
        cdef int64_t rows = pages.row_count
        self._fitted_width, self._fitted_part = seen, max(LITTLE, self._reserved.part())
        return seen > 0 and 1 < rows <= rows_max and rows * row_bytes <= min(
            self._fitted_part, NARROW_MAX if row_bytes <= NARROW_ROW_BYTES else WIDE_MAX)

    cdef bint fits_still(self) noexcept:
        return self.row_bytes <= self._fitted_width and self._fitted_part <= max(LITTLE, self._reserved.part())

    def expect(self, double row_bytes):
        """Take rows for so wide until some have come."""
        self.row_bytes = self.row_bytes or row_bytes

    cdef double rows_together(self, pages) except -1:
        cdef double row_bytes = max(self.row_bytes, <double>pages.row_bytes)
        cdef int64_t part = self._reserved.part()
        return min(RUN_BATCHES * self.batch_bytes_max(row_bytes), part) / row_bytes

    cdef bint _resize(self, int64_t size_bytes) except -1:
        with self._lock:
            if not self._reserved.resize(size_bytes + self._ahead_bytes):
                return False
            self._now_bytes = size_bytes
            return True

    def hold_ahead(self, size_bytes):
        """Reserve what is fetched of a row group that is read later; False: there is not as much."""
        cdef int64_t ahead, part
        with self._lock:
            ahead = self._ahead_bytes + min(size_bytes, BYTES_MAX)
            part = self._reserved.part()
            # A row group that is larger than that is fetched alone, if there is room beside the one that is read.
            if ahead > AHEAD_PARTS * part and (self._ahead_bytes or self._now_bytes + ahead > READER_PARTS * part):
                return False
            if not self._reserved.resize(self._now_bytes + ahead):
                return False
            self._ahead_bytes = ahead
            return True

    def take_ahead(self, int64_t size_bytes):
        """Count what was fetched ahead as held for the row group that is read."""
        with self._lock:
            self._ahead_bytes -= size_bytes
            self._now_bytes += size_bytes

    def hold_fetched(self, size_bytes):
        """Reserve what is fetched of a row group before its pages are known; False: there is nothing, or too much."""
        return size_bytes > 0 and self._resize(min(size_bytes, BYTES_MAX))

    def hold_twice(self, sizes not None):
        """Reserve twice what columns take, for a look at them; False: there is not as much, and all stays as it was."""
        return self._resize(min(2 * sum(sizes.values()), BYTES_MAX))

    def passes(self, read, sizes, rows):
        """Return batches of all columns, read some columns after the others; None: there is no space for files."""
        if self._new_space is None or not sizes:
            return None
        return read_in_passes(read, sizes, rows, self._new_space, self._budget)

    cpdef list bounded(self, batch, int64_t rows_max):
        """Return a batch in pieces of bounded size, and note how wide its rows are; one of no rows says nothing."""
        cdef int64_t rows = batch.num_rows
        cdef double width
        cdef object size_bytes
        if rows:
            width = average_width(batch)
            if width != self._row_bytes:
                self._row_bytes = width
                self._settle_width()
        size_bytes = round(self._row_bytes * rows)
        if 0 < size_bytes <= WIDE_MAX:
            return [batch]
        return bounded_batches(batch, rows_max, size_bytes, max(WIDE_MAX, self.batch_bytes_max(self._row_bytes)))

    cdef int _settle_width(self) except -1:
        cdef double decoded = 0
        for width in self._decoded_widths.values():
            decoded += <double>width
        self.row_bytes = max(self._row_bytes, decoded)
        return 0

    def decoded_width(self, columns):
        """Return the width of rows in a stream of columns; 0.0 where it is not known."""
        return self._decoded_widths.get(columns[0], 0.0) if columns else 0.0

    def note_decoded(self, columns, batch):
        """Note how wide the first rows of a stream of columns are."""
        if batch.num_rows and columns and columns[0] not in self._decoded_widths:
            self.note_width(columns[0], average_width(batch))

    cdef int note_width(self, column, double width) except -1:
        if width and self._decoded_widths.get(column) != width:
            self._decoded_widths[column] = width
            self._settle_width()
        return 0

    def forget_decoded(self, columns):
        """Have the next rows of a stream of columns count, and no longer those before."""
        if columns:
            self._decoded_widths.pop(columns[0], None)
            self._settle_width()

    def rows_at_once(self, double row_bytes, int64_t rows_max):
        """Return the number of rows of a row group that are about one batch."""
        if row_bytes:
            rows_max = min(rows_max, <int64_t>(self.batch_bytes_max(row_bytes) / row_bytes))
        return max(1, rows_max)

    cpdef int64_t batch_bytes_max(self, double row_bytes) noexcept:
        """Return the bytes of a batch. It is smaller where many tasks read: several batches of each are in memory."""
        return max(LITTLE, min(NARROW_MAX if row_bytes <= NARROW_ROW_BYTES else WIDE_MAX, self._reserved.part()))

    def end_split(self):
        """Give back large blocks, of pages and dictionaries, which may be smaller in the next split.

        Small ones are kept for its row groups: to give them back and touch them again takes half as long as decoding
        does. What is reserved is so until the next row group, or ``let_go``.
        """
        if self._held_bytes >= RELEASED_BYTES:
            pa.default_memory_pool().release_unused()

    def let_go(self):
        """Reserve nothing for the row group that is read."""
        self._resize(0)

    def close(self):
        """End the reservation, and give back large blocks; idempotent."""
        self._reserved.close()
        if self._held_bytes >= min(<int64_t>RELEASED_BYTES, self._budget.limit(Kind.ARROW) // RELEASED_SHARE):
            pa.default_memory_pool().release_unused()
        self._held_bytes = 0


cdef int64_t column_bytes(pages) except -1:
    return pages.group_bytes // max(1, len(pages.held))
