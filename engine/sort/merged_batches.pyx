"""MergedBatches: the rows of one range of many sorted runs, in order, as Arrow batches.

    merged = MergedBatches(sources, pool, lower, upper, limit)      sources: SortedRuns, of one or of many sorters
    for batch in merged.batches(max_rows, max_bytes): ...           once
    for rows in merged.row_batches(max_rows, max_bytes): ...        or so: the same, not decoded
    merged.close()                                                  always; idempotent. The sources stay.

    sources ── slices [lower, upper) ──► RunMerger ──► addresses of rows ─┬► decode ──► RecordBatch
                                                                          └► RowBatch

Rows of runs in memory are decoded where they lie; those of runs on disk are copied to an arena first, a quarter of the
pool or a page, which is taken when the first such run is met. A row larger than the arena is decoded in its block.
Sources are read (``begin_read``) for one batch at a time and in one order, so no reader waits for memory that a reader
holds while it waits itself.

A consumer of encoded rows keeps several batches at a time: rows from disk are copied to memory of their
batch, those of runs in memory stay where they lie. So this is for an exclusive owner of the runs: no other thread
spills them meanwhile, and the batches are done with when they are closed.

Rows with equal keys come in the order of their producers, and those of one producer in its order: the merge is stable.

Memory: the arena; beside the pool one or two blocks for each run on disk.

Held by: tests/sort/test_sorted_runs.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from engine.memory.page_pool cimport PagePool
from engine.records.row_batch cimport RowBatch, new_row_batch
from engine.records.row_codec cimport row_size
from engine.records.row_combiner cimport RowCombiner
from engine.sort.run_merger cimport RunMerger
from engine.sort.sorted_run cimport RunSlice
from engine.sort.sorted_runs cimport SortedRuns

from engine.errors import MemoryBudgetError

cdef int64_t NO_LIMIT = <int64_t> 1 << 62


def _producer(RunSlice slice):
    return slice.run.producer


@cython.final
cdef class MergedBatches:
    """Args: sources: of one schema and order, at least one; lower, upper: key bytes or None; limit: rows or None;
    combiner: of rows with equal keys."""

    cdef tuple _sources
    cdef PagePool _pool
    cdef RunMerger _merger          # None: no row in the range
    cdef uint8_t* _arena            # NULL until it is needed
    cdef int64_t _arena_size
    cdef uint8_t** _rows            # [_row_capacity]
    cdef int64_t _row_capacity
    cdef int64_t _rows_left
    cdef bint _is_combined
    cdef bint _is_closed
    cdef readonly int64_t rows_out
    cdef readonly int64_t bytes_in  # binary form of the rows so far

    def __cinit__(self, sources, PagePool pool not None, bytes lower=None, bytes upper=None, limit=None,
                  RowCombiner combiner=None):
        self._sources = tuple(sources)
        self._pool = pool
        self._rows_left = NO_LIMIT if limit is None else limit
        slices = []
        for source in self._sources:
            slices += source.slices(lower, upper)
        # Runs of one producer are neighbours and stay so; sources are in any order.
        slices.sort(key=_producer)
        # in one run each row has keys of its own, unless combined rows found no room there
        self._is_combined = combiner is not None and (len(slices) > 1 or not combiner.keeps_size)
        if slices:
            self._begin_read(len(self._sources))
            try:
                self._merger = (<SortedRuns> self._sources[0]).merger(slices, combiner if self._is_combined else None)
            finally:
                self._end_read(len(self._sources))

    def __dealloc__(self):
        free(self._rows)

    def batches(self, int64_t max_rows=8192, int64_t max_bytes=1 << 20):
        """Yield the rows in order as Arrow batches; once.

        Args: max_rows: 1 or more; max_bytes: bound of a batch's rows in binary form, exceeded only by a single row.
        Raises: CorruptBlockError, SpillError; PartitionReleasedError when a source is gone.
        """
        if self._merger is None:
            return
        free(self._rows)
        self._row_capacity = max(max_rows, 1)
        self._rows = <uint8_t**> malloc(<size_t> self._row_capacity * sizeof(uint8_t*))
        if self._rows == NULL:
            raise MemoryError()
        while (batch := self._next_batch(max_bytes)) is not None:
            yield batch

    cdef object _next_batch(self, int64_t max_bytes):
        if self._is_closed:
            raise RuntimeError("the sort was closed while its batches were read")
        self._begin_read(len(self._sources))
        try:
            return self._decode_next(max_bytes)
        finally:
            self._end_read(len(self._sources))

    cdef object _decode_next(self, int64_t max_bytes):
        cdef int64_t limit = min(self._rows_left, self._row_capacity)
        cdef int64_t count
        cdef bint is_huge = False
        self._merger.follow_to_disk()
        if self._arena == NULL and (self._is_combined or self._merger.reads_disk()):
            self._take_arena(max_bytes)
        count = self._merger.collect(self._rows, limit, max_bytes, self._arena, self._arena_size)
        if count == 0:
            if limit == 0 or self._merger.waiting() == NULL:
                return None
            self._rows[0] = self._merger.waiting()
            count, is_huge = 1, True
        self.bytes_in += row_size(self._rows[0]) if is_huge else self._merger.collected_bytes
        batch = (<SortedRuns> self._sources[0]).codec.decode(self._rows, count, NULL, 0)
        if is_huge:
            self._merger.drop_waiting()
        self._rows_left -= count
        self.rows_out += count
        return batch

    def row_batches(self, int64_t max_rows=8192, int64_t max_bytes=1 << 20):
        """Yield the rows in order as RowBatches, good until the sources are closed; once, in place of batches().

        Args, Raises: as batches().
        """
        if self._merger is None:
            return
        batch = self._next_rows(max(max_rows, 1), max_bytes)
        while batch is not None:
            yield batch
            batch = self._next_rows(max(max_rows, 1), max_bytes)

    cdef RowBatch _next_rows(self, int64_t max_rows, int64_t max_bytes):
        cdef RowBatch batch
        if self._is_closed:
            raise RuntimeError("the sort was closed while its rows were read")
        self._begin_read(len(self._sources))
        try:
            batch = self._collect_next(min(self._rows_left, max_rows), max_bytes)
        finally:
            self._end_read(len(self._sources))
        if batch is not None:
            self._rows_left -= batch.count
            self.rows_out += batch.count
        return batch

    cdef RowBatch _collect_next(self, int64_t limit, int64_t max_bytes):
        cdef RowBatch batch = new_row_batch((<SortedRuns> self._sources[0]).codec, limit)
        cdef const uint8_t* large
        cdef int64_t count
        self._merger.follow_to_disk()
        if self._is_combined or self._merger.reads_disk():
            batch.take(max_bytes)
        count = self._merger.collect(batch.rows, limit, max_bytes, batch.memory, batch.memory_size)
        self.bytes_in += self._merger.collected_bytes
        if count == 0:
            large = self._merger.waiting()
            if limit == 0 or large == NULL:
                return None
            batch = new_row_batch(batch.codec, 1)
            batch.take(row_size(large))
            with nogil:
                memcpy(batch.memory, large, <size_t> batch.memory_size)
            batch.rows[0] = batch.memory
            self.bytes_in += batch.memory_size
            self._merger.drop_waiting()
            count = 1
        batch.end(count)
        return batch

    cdef int _begin_read(self, Py_ssize_t count) except -1:
        cdef Py_ssize_t index = 0
        try:
            while index < count:
                (<SortedRuns> self._sources[index]).begin_read()
                index += 1
        except BaseException:
            self._end_read(index)
            raise
        return 0

    cdef int _end_read(self, Py_ssize_t count) except -1:
        for source in self._sources[:count]:
            (<SortedRuns> source).end_read()
        return 0

    cdef int _take_arena(self, int64_t wanted) except -1:
        """Take memory into which rows from disk are copied: at most a quarter of the pool, at least a page.

        What else the pool has stands for the readers' blocks, which come from the I/O room.
        """
        cdef int64_t quarter = max(self._pool.page_limit // 4, <int64_t> 1) * self._pool.page_size
        self._arena_size = min(quarter, max(wanted, <int64_t> self._pool.page_size))
        with nogil:
            self._arena = self._pool.take_large(self._arena_size, False)
        if self._arena == NULL:
            raise MemoryBudgetError(f"no memory to decode {self._arena_size} bytes of rows in {self._pool!r}")
        return 0

    def close(self):
        """Close the readers and give the arena back; idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._arena != NULL:
            self._pool.give_large(self._arena, self._arena_size)
            self._arena = NULL
        if self._merger is not None:
            self._merger.close()
