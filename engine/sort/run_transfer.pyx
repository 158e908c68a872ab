"""RunReceiver: sorted runs of rows that come in order from another process.

    producer   pages = runs.range_pages(lower, upper) ─► pages.fill(memory)* until 0 ─► pages.close()
    consumer   receiver = RunReceiver(schema, keys, space, block_size)
               (receiver.add_page(...) | add_row(...))* ─► receiver.end_run()    for each producer
               receiver.take_runs() ─► MergedBatches, beside the runs of this process ─► release()

    runs ── slices [lower, upper) ──► RunMerger ──► rows, one after the other ═══► SpillWriter ──► one run on disk

The producer needs no memory but the page that is filled and a block for each of its runs on disk: a row is copied as
soon as it is the smallest. The consumer needs none but the block that is written: what comes is in order already. So
neither takes pages for a neighbour, however much it is; the price is that the rows are written once more.

Values that lie outside of the producer's rows are in those that travel, one row at a time, and lie outside of the
consumer's again (``whole_rows``).

Limits: a row that is larger than the page is asked for on its own (``fill`` says how large).
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from engine.memory.segment cimport MemorySegment
from engine.records.row_check cimport check_rows
from engine.records.row_codec cimport rows_of_page
from engine.sort.sorted_run cimport RunWriter, SortedRun
from engine.sort.sorted_runs cimport SortedRuns

from engine.errors import CorruptBlockError
from engine.records.whole_rows import rows_outside

cdef int64_t MIN_ROW_BYTES = 8


@cython.final
cdef class RunReceiver:
    """Args: schema, keys: as of the sender's runs; space: SpillSpace; block_size: of the files, bytes."""

    cdef SortedRuns _runs
    cdef RunWriter _writer          # None: no row of this run has come yet
    cdef readonly int64_t rows

    def __cinit__(self, schema, keys, space, int64_t block_size):
        self._runs = SortedRuns(schema, keys, space, block_size)

    def add_page(self, MemorySegment segment not None, int64_t used_bytes):
        """Write the rows of a page, which follow those that came before."""
        segment._check(0, used_bytes)
        self._add(segment.data, used_bytes)

    def add_row(self, const uint8_t[::1] row not None):
        """Write one row of any size; its wide values go outside."""
        moved = rows_outside(self._runs.codec, row)
        if moved is not None:
            row = moved
        self._add(&row[0], row.shape[0])

    def end_run(self, int64_t producer=0):
        """The rows of one sender, a subtask of that number, have come: the next are another run's."""
        cdef SortedRun run
        if self._writer is not None:
            run = self._writer.finish()
            run.producer = producer
            self._runs.add(run)
            self._writer = None

    def take_runs(self):
        """Return the SortedRuns, which the caller releases."""
        return self._runs

    cdef int _add(self, const uint8_t* data, int64_t size) except -1:
        cdef int64_t row = 0
        cdef int64_t count
        cdef uint8_t** rows = <uint8_t**> malloc(<size_t> (size // MIN_ROW_BYTES + 1) * sizeof(uint8_t*))
        if rows == NULL:
            raise MemoryError
        try:
            count = rows_of_page(data, size, rows, size // MIN_ROW_BYTES + 1)
            if count < 0:
                raise CorruptBlockError(f"{size} bytes of a sorted result do not consist of whole rows")
            check_rows(self._runs.codec, rows, count)
            if self._writer is None:
                self._writer = self._runs.new_writer("run of another process")
            with nogil:
                for row in range(count):
                    self._writer.write(rows[row])
            self.rows += count
        finally:
            free(rows)
        return 0
