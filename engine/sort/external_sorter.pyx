"""ExternalSorter: sorts more rows than fit in its pages.

    sorter = ExternalSorter(schema, keys, pool, space, limit=None, force_spill=False, reader_count=1)
    sorter.add_batch(batch) / add_page(segment, used_bytes) / add_rows(buffer)      any number, in any mix
    sorter.finish()
    for batch in sorter.batches(max_rows, max_bytes): ...                           or row_batches: not decoded
    sorter.close()                                                                  always; idempotent

    sorter.cut_groups(limit)                            before the first row: the first rows of each group are enough
    or, in place of finish:  runs = sorter.take_runs()      SortedRuns for readers of ranges elsewhere; pages and files
                                                            are theirs from then on

    FILLING ──► rows into RecordSorter ──► full: sort, write a run, start anew (SortWorker: in the background)
       │ finish()
       ├── no run written ──► sort in memory ──► batches from the pages
       └── runs written ────► last run, merges of neighbouring runs down to the fan-in ──► batches from the merge
    close() ──► CLOSED

Rows with equal keys stay in order of arrival (the sort is stable). With a limit whose rows fit an eighth of the pool
(and 256 KiB), or with groups whose first rows do, just those are kept from time to time, and nothing is spilled; with
more every run is cut to the rows that are wanted.

Values that a combiner may exchange stay in their rows, however wide they are.

Memory: while filling, rows and index fill the pool: in two halves, one being filled while the other is sorted and
spilled, from 2 * HALF_PAGES_MIN pages and without a limit, else in one. While merging, half of the pool's bytes are
blocks of runs (memory of their readers, of small pools 2 MiB) and up to a quarter is a large page to which rows are
copied for decoding. A row larger than that is decoded where it lies in its block. A row larger than the whole pool lies
beside it, alone, and becomes a run of its own.

Spilled bytes: the input once with up to fan-in runs (128 and more; a sort for several readers divides them), of more
runs a part twice: with a thousand times the memory 1.7 times the input. To that end blocks are small and a small memory
is not divided, which makes runs twice as long. It is never more than twice: the fan-in is at least the square root of
the number of runs.

Source: Flink's UnilateralSortMerger and MergeIterator.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from engine.memory.page_pool cimport PagePool
from engine.memory.segment cimport MemorySegment
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_check cimport check_rows
from engine.records.row_codec cimport row_size, rows_of_page
from engine.records.row_combiner cimport RowCombiner
from engine.sort.group_cut cimport GroupCut
from engine.sort.group_firsts cimport FIRSTS_CHUNK
from engine.sort.record_sorter cimport RecordSorter
from engine.sort.sort_worker cimport SortWorker, sort_rows, spill_rows
from engine.sort.sorted_run cimport run_in_memory
from engine.sort.sorted_runs cimport SortedRuns

from engine.closing import close_all
from engine.errors import CorruptBlockError, MemoryBudgetError
from engine.records.whole_rows import rows_outside
from engine.sort.group_firsts import group_firsts
from engine.sort.merge_plan import block_size_bytes
from engine.sort.merged_batches import MergedBatches

cdef enum:
    CHUNK_ROWS = 1024       # rows measured, placed and encoded together
    FORCED_RUN_ROWS = 16    # with force_spill
    KEPT_BYTES_MAX = 256 << 10      # rows within a limit that are kept in memory and not spilled
    FIRST_ROWS_MIN = 8192   # so many rows are sorted, and but for the first ones dropped, where few are wanted
    JUDGED_BYTES = 64 << 10     # bytes of rows that are written aside, and judged before they are placed
    HALF_PAGES_MIN = 64     # with fewer pages in a half there is one memory only: longer runs, and fewer to merge

cdef int64_t NO_LIMIT = <int64_t> 1 << 62

cdef enum:
    STATE_FILLING = 0
    STATE_FINISHED = 1
    STATE_CLOSED = 2


@cython.final
cdef class ExternalSorter:

    cdef PagePool _pool
    cdef SortedRuns _runs           # None once they are taken
    cdef RecordSorter _sorter       # being filled
    cdef RecordSorter _other        # the other half of the memory: None, the worker's, in memory, or empty
    cdef GroupCut _cut              # None: all rows are wanted
    cdef object _group_limit        # GroupLimit
    cdef uint8_t* _aside            # [JUDGED_BYTES] of rows that are judged; NULL until there are some
    cdef SortWorker _worker         # None where there is one memory only
    cdef tuple _keys
    cdef bint _has_spilled          # the worker has been told to
    cdef object _output             # MergedBatches, after finish
    cdef int _state
    cdef int64_t _limit             # rows of output, NO_LIMIT: all
    cdef bint _force_spill
    cdef int64_t _drop_at           # number of rows in memory from which unneeded ones are dropped
    cdef int64_t _row_limit         # of one memory, 0: none
    cdef int32_t _reader_count      # sorters whose runs are merged together, and readers that do it
    cdef uint32_t* _sizes           # [CHUNK_ROWS]
    cdef uint8_t** _targets         # [CHUNK_ROWS]
    cdef uint8_t** _rows            # [CHUNK_ROWS]
    cdef readonly object schema
    cdef readonly int64_t rows_in
    cdef readonly int64_t background_ns     # once filling has ended: time in which the worker sorted and spilled
    cdef readonly int64_t waited_ns         # ... and of that, how long filling waited for it

    def __cinit__(self, schema, keys, PagePool pool not None, space, limit=None, bint force_spill=False,
                  int32_t reader_count=1, RowCombiner combiner=None):
        if combiner is not None and limit is not None:
            raise ValueError("rows that are combined can have no limit: it is not known how many will be left")
        self.schema = schema
        self._pool = pool
        self._reader_count = reader_count
        self._runs = SortedRuns(schema, keys, space, block_size_bytes(pool.page_limit * pool.page_size // reader_count),
                                combiner)
        self._keys = tuple(keys)
        self._row_limit = FORCED_RUN_ROWS if force_spill else 0
        if limit is None and pool.page_limit >= 2 * HALF_PAGES_MIN:
            self._worker = SortWorker(self._runs)
        self._sorter = self._new_sorter()
        self._state = STATE_FILLING
        self._limit = NO_LIMIT if limit is None else limit
        self._force_spill = force_spill
        self._drop_at = FIRST_ROWS_MIN
        self._sizes = <uint32_t*> malloc(CHUNK_ROWS * sizeof(uint32_t))
        self._targets = <uint8_t**> malloc(CHUNK_ROWS * sizeof(uint8_t*))
        self._rows = <uint8_t**> malloc(CHUNK_ROWS * sizeof(uint8_t*))
        if self._sizes == NULL or self._targets == NULL or self._rows == NULL:
            raise MemoryError()

    cdef RecordSorter _new_sorter(self):
        """Return memory to fill: all of the pool, or a half."""
        cdef int64_t pages = self._pool.page_limit if self._worker is None else self._pool.page_limit // 2
        cdef RecordSorter made = RecordSorter(self._pool, self._runs.normalized_key, self._runs.comparator,
                                              self._runs.tail, self._row_limit, pages)
        self._limit_groups(made)
        return made

    cdef int _limit_groups(self, RecordSorter sorter) except -1:
        sorter.cut = self._cut
        if self._cut is not None and self._runs.combiner is None:
            sorter.firsts = group_firsts(self._runs.codec, self._keys, self._group_limit, self._pool)
        return 0

    def cut_groups(self, limit not None):
        """Keep only the first rows of each group in runs, as a GroupLimit says; before the first row."""
        self._cut = GroupCut(self._runs.codec, self._keys, limit)
        self._group_limit = limit
        self._limit_groups(self._sorter)

    def __dealloc__(self):
        free(self._sizes)
        free(self._targets)
        free(self._rows)
        free(self._aside)

    @property
    def spilled_bytes(self):
        """Bytes of rows written to runs, merged ones included."""
        return self._runs.spilled_bytes if self._runs is not None else 0

    @property
    def run_count(self):
        """Runs written, merged ones included."""
        return self._runs.run_count if self._runs is not None else 0

    # ------------------------------------------------------------------------------------------------------ filling

    def add_batch(self, batch):
        """Take the rows of an Arrow batch of the sorter's schema.

        Raises: SchemaError when the schema differs; SpillError when a run cannot be written.
        """
        cdef ArrowBatch opened
        cdef int64_t start = 0
        cdef int64_t count, placed
        self._require(STATE_FILLING, "add_batch")
        opened = ArrowBatch.open(batch)
        self._runs.codec.accept(opened)
        self._runs.codec.move_outside(opened)
        while start < opened.row_count:
            if self._sorter.begins_firsts():
                start += self._add_firsts(opened, start)
                continue
            count = min(<int64_t> CHUNK_ROWS, opened.row_count - start)
            with nogil:
                self._runs.codec.measure(opened, start, count, self._sizes)
                placed = self._place(count, False)
            if placed == 0:
                self._make_room(self._sizes[0])
                with nogil:
                    placed = self._place(count, True)
                if placed == 0:
                    self._refuse(self._sizes[0])
            with nogil:
                self._runs.codec.encode(opened, start, placed, self._sizes, self._targets)
            start += placed
        self.rows_in += opened.row_count
        self._drop_others()

    cdef int64_t _add_firsts(self, ArrowBatch batch, int64_t start) except -1:
        """Take rows that can be among the first of their group; returns how many rows were looked at."""
        cdef int64_t count = min(<int64_t> FIRSTS_CHUNK, batch.row_count - start)
        cdef int64_t used = 0
        cdef int64_t index = 0
        if self._aside == NULL:
            self._aside = <uint8_t*> malloc(JUDGED_BYTES)
            if self._aside == NULL:
                raise MemoryError()
        with nogil:
            self._runs.codec.measure(batch, start, count, self._sizes)
            while index < count and used + self._sizes[index] <= JUDGED_BYTES:
                self._targets[index] = self._aside + used
                used += self._sizes[index]
                index += 1
            self._runs.codec.encode(batch, start, index, self._sizes, self._targets)
        return self._place_firsts(self._targets, index)

    cdef int64_t _place_firsts(self, uint8_t** rows, int64_t count) except -1:
        """Place the first rows of their groups and return how many rows were looked at; without room some is made."""
        cdef int64_t done = 0
        if count == 0:
            self._sorter.end_firsts()
            return 0
        with nogil:
            done = self._sorter.place_firsts(rows, count)
        raise_failed_comparison()
        if not self._sorter.is_judging:
            self._make_room(row_size(rows[done]))
        return done

    def add_page(self, MemorySegment segment not None, int64_t used_bytes):
        """Take the binary rows in the first used_bytes of a segment; they are copied.

        Raises: CorruptBlockError when sizes of rows do not add up; SpillError.
        """
        if not 0 <= used_bytes <= segment.size:
            raise ValueError(f"{used_bytes} bytes used of a page of {segment.size}")
        self._require(STATE_FILLING, "add_page")
        self._add_encoded(segment.data, used_bytes)

    def add_rows(self, const uint8_t[::1] buffer not None):
        """Take contiguous binary rows, also larger than a page; they are copied, wide values go outside.

        Raises: as add_page.
        """
        self._require(STATE_FILLING, "add_rows")
        moved = rows_outside(self._runs.codec, buffer)
        if moved is not None:
            buffer = moved
        if buffer.shape[0] > 0:
            self._add_encoded(&buffer[0], buffer.shape[0])

    cdef int _add_encoded(self, const uint8_t* data, int64_t size) except -1:
        cdef int64_t offset = 0
        cdef int64_t count, done, placed, index
        while offset < size:
            with nogil:
                count = rows_of_page(data + offset, size - offset, self._rows, CHUNK_ROWS)
            if count <= 0:
                raise CorruptBlockError(f"sizes of rows do not add up in a page of {size} bytes given to a sort")
            done = 0
            offset = self._rows[count - 1] + row_size(self._rows[count - 1]) - data
            check_rows(self._runs.codec, self._rows, count)
            while done < count:
                if self._sorter.begins_firsts():
                    done += self._place_firsts(self._rows + done, count - done)
                    continue
                with nogil:
                    for index in range(count - done):
                        self._sizes[index] = row_size(self._rows[done + index])
                    placed = self._place(count - done, False)
                if placed == 0:
                    self._make_room(self._sizes[0])
                    with nogil:
                        placed = self._place(count - done, True)
                    if placed == 0:
                        self._refuse(self._sizes[0])
                with nogil:
                    for index in range(placed):
                        memcpy(self._targets[index], self._rows[done + index], self._sizes[index])
                done += placed
            self.rows_in += count
        self._drop_others()
        return 0

    cdef int _drop_others(self) except -1:
        """Drop the unneeded rows, once there are some times as many as others: the caches hold those."""
        cdef int64_t row_count = self._sorter.row_count
        cdef int64_t used_bytes = self._sorter.used_bytes
        if self._limit == NO_LIMIT and (self._cut is None or self._runs.combiner is not None):
            return 0
        if self._sorter.is_judging:
            return 0
        if self._force_spill or row_count < self._drop_at or (self._cut is None and row_count // 4 < self._limit):
            return 0
        sort_rows(self._sorter, self._runs.combiner)
        if min(self._sorter.row_count, self._limit) > row_count // 4 or not self._keep_first():
            self._sorter.forget_order(row_count, used_bytes)
            self._drop_at = 2 * row_count
        return 0

    cdef int64_t _place(self, int64_t count, bint beyond_limit) noexcept nogil:
        """Find room for rows of _sizes[0 .. count); returns for how many there was."""
        cdef int64_t index
        for index in range(count):
            self._targets[index] = self._sorter.place(self._sizes[index], beyond_limit and index == 0)
            if self._targets[index] == NULL:
                return index
        return count

    cdef int _make_room(self, int64_t size) except -1:
        """Empty the memory for a row of size bytes, but for the first rows when there is a small limit."""
        if self._sorter.row_count == 0:
            return 0
        if self._worker is not None:
            return self._change_halves()
        sort_rows(self._sorter, self._runs.combiner)
        if self._limit == NO_LIMIT or self._force_spill or size > self._pool.page_size or not self._keep_first():
            self._spill()
        return 0

    cdef int _change_halves(self) except -1:
        """Give the full half to the worker and go on with the other one, which it may have to empty first."""
        cdef RecordSorter full = self._sorter
        if self._other is None:
            self._worker.submit(full, False)
            self._sorter, self._other = self._new_sorter(), full
            return 0
        if not self._has_spilled:
            self._worker.submit(self._other, True)
            self._has_spilled = True
        self._worker.submit(full, True)
        self._worker.wait(self._other)
        self._sorter, self._other = self._other, full
        return 0

    cdef bint _keep_first(self) except -1:
        """Drop all rows but the first `limit`; False, and nothing done, when those are too many to keep."""
        cdef int64_t count = min(self._sorter.row_count, self._limit)
        cdef int64_t most = min(<int64_t> KEPT_BYTES_MAX, self._pool.page_limit * self._pool.page_size // 8)
        cdef int64_t size = 0
        cdef int64_t index, offset
        cdef uint8_t* kept
        for index in range(count):
            size += row_size(self._sorter.entries[index].row)
            if size > most:
                return False
        kept = <uint8_t*> malloc(<size_t> size + 1)
        if kept == NULL:
            raise MemoryError()
        offset = 0
        for index in range(count):
            memcpy(kept + offset, self._sorter.entries[index].row, row_size(self._sorter.entries[index].row))
            offset += row_size(self._sorter.entries[index].row)
        self._sorter.clear()
        offset = 0
        while offset < size:
            memcpy(self._sorter.place(row_size(kept + offset), False), kept + offset, row_size(kept + offset))
            offset += row_size(kept + offset)
        free(kept)
        return True

    cdef int _refuse(self, int64_t size) except -1:
        raise MemoryBudgetError(f"no memory for a row of {size} bytes in {self._pool!r}, nor beside it")

    cdef int _spill(self) except -1:
        """Write the sorted rows in memory as a run and forget them."""
        spill_rows(self._sorter, min(self._sorter.row_count, self._limit), self._runs)
        return 0

    # ------------------------------------------------------------------------------------------------------- output

    def finish(self):
        """End the input; sorts, and merges until the last merge can give the output.

        Raises: SpillError, CorruptBlockError.
        """
        self._require(STATE_FILLING, "finish")
        # two halves that are to be combined need memory to do it in
        needs_room = self._runs.combiner is not None and self._other is not None
        self._end_filling(not (self._has_spilled or self._runs.runs or needs_room))
        self._output = MergedBatches([self._runs], self._pool, limit=None if self._limit == NO_LIMIT else self._limit,
                                     combiner=self._runs.combiner)
        self._state = STATE_FINISHED

    def take_runs(self):
        """End the input and return all rows as SortedRuns, which own pages and files from now on.

        Raises: SpillError, CorruptBlockError.
        """
        cdef SortedRuns runs
        self._require(STATE_FILLING, "take_runs")
        # a row beyond the limit is not kept
        keep_in_memory = not (self._force_spill or self._sorter._is_beyond_limit)
        if self._other is not None:
            keep_in_memory = keep_in_memory and not self._other._is_beyond_limit
        self._end_filling(keep_in_memory)
        runs, self._runs = self._runs, None
        self._state = STATE_CLOSED
        return runs

    def _end_filling(self, bint keep_in_memory):
        """Make runs of everything, few enough to be merged at once."""
        if self._worker is not None:
            self._worker.wait(None)
            self._end_worker()
        if self._other is not None and self._other.row_count > 0:       # sorted, and never had to leave
            if keep_in_memory:
                self._runs.add(run_in_memory(self._other, self._other.row_count))
            else:
                spill_rows(self._other, self._other.row_count, self._runs)
        if self._sorter.row_count > 0:
            sort_rows(self._sorter, self._runs.combiner)
            if keep_in_memory:
                self._runs.add(run_in_memory(self._sorter, min(self._sorter.row_count, self._limit)))
            else:
                self._spill()
        self._runs.end_file()
        self._runs.merge_down(self._pool.page_limit * self._pool.page_size, self._reader_count, self._limit)

    def batches(self, int64_t max_rows=8192, int64_t max_bytes=1 << 20):
        """Return an iterator over the rows in order as Arrow batches; once.

        Args: max_rows: 1 or more; max_bytes: bound of a batch's rows in binary form, exceeded only by a single row.
        """
        if self._state != STATE_FINISHED:
            raise RuntimeError("batches() comes after finish() and before close()")
        return self._output.batches(max_rows, max_bytes)

    def row_batches(self, int64_t max_rows=8192, int64_t max_bytes=1 << 20):
        """Return an iterator over the rows in order as RowBatches, good until close(); once, in place of batches().

        Args: as batches().
        """
        if self._state != STATE_FINISHED:
            raise RuntimeError("row_batches() comes after finish() and before close()")
        return self._output.row_batches(max_rows, max_bytes)

    # ---------------------------------------------------------------------------------------------------------- end

    cdef int _require(self, int state, str what) except -1:
        if self._state != state:
            names = ("filling", "finished", "closed")
            raise RuntimeError(f"{what}() on a sort that is {names[self._state]}")
        return 0

    def close(self):
        """Give every page back and delete the runs, unless they were taken; idempotent, in every state."""
        if self._state == STATE_CLOSED:
            return
        self._state = STATE_CLOSED
        output = [] if self._output is None else [self._output.close]
        close_all([*output, self._give_pages_back, self._runs.release])

    def _give_pages_back(self):
        self._end_worker()          # first: it works on them
        self._sorter.clear()
        if self._other is not None:
            self._other.clear()

    cdef int _end_worker(self) except -1:
        """Join the worker's thread."""
        if self._worker is not None:
            self._worker.close()
            self.background_ns = self._worker.busy_ns
            self.waited_ns = self._worker.waited_ns
            self._worker = None
        return 0
