"""ExternalSorter: sorts more rows than fit in its pages.

    sorter = ExternalSorter(schema, keys, pool, space, limit=None, force_spill=False)
    sorter.add_batch(batch) / add_page(segment, used_bytes) / add_rows(buffer)      any number, in any mix
    sorter.finish()
    for batch in sorter.batches(max_rows, max_bytes): ...
    sorter.close()                                                                  always; idempotent

    FILLING ──► rows into RecordSorter ──► full: sort, write a run, start anew
       │ finish()
       ├── no run written ──► sort in memory ──► batches from the pages
       └── runs written ────► last run, merges of neighbouring runs down to the fan-in ──► batches from the merge
    close() ──► CLOSED

Rows with equal keys stay in order of arrival (the sort is stable). With a limit whose rows fit an eighth of the pool
(and 256 KiB) a full memory keeps just those, and nothing is spilled; with a larger one every run is cut to the first
`limit` rows.

Memory: while filling, rows and index fill the pool. While merging, half of the pool's bytes are blocks of runs (memory
of their readers) and up to a quarter is a grant into which rows are copied for decoding. A row larger than that is
decoded where it lies in its block. A row larger than the whole pool uses the reserved grant, alone, and becomes a run
of its own.

Spilled bytes: once the input with up to fan-in runs (64 or more from 512 KiB of pages), less than twice with one
intermediate merge.

Source: Flink's UnilateralSortMerger and MergeIterator; here one thread does all of it in turn.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from engine.iomanager.spill_writer cimport SpillWriter
from engine.memory.page_pool cimport PagePool
from engine.memory.segment cimport MemorySegment
from engine.memory.status cimport STATUS_OK
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page
from engine.sort.radix_sort cimport IndexEntry
from engine.sort.record_sorter cimport RecordSorter
from engine.sort.run_merger cimport RunMerger

from engine.errors import CorruptBlockError, MemoryBudgetError
from engine.sort.merge_plan import block_size_bytes, fan_in, next_window

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void* address) noexcept nogil

cdef enum:
    CHUNK_ROWS = 1024       # rows measured, placed and encoded together
    FORCED_RUN_ROWS = 16    # with force_spill
    KEPT_BYTES_MAX = 256 << 10      # rows within a limit that are kept in memory and not spilled
    AHEAD = 8               # rows fetched before they are written

cdef int64_t NO_LIMIT = <int64_t> 1 << 62

cdef enum:
    STATE_FILLING = 0
    STATE_IN_MEMORY = 1
    STATE_MERGING = 2
    STATE_CLOSED = 3


@cython.final
cdef class ExternalSorter:

    cdef RowCodec _codec
    cdef NormalizedKey _normalized_key
    cdef RowComparator _comparator
    cdef PagePool _pool
    cdef object _space
    cdef RecordSorter _sorter
    cdef int _state
    cdef list _runs                 # SpillFiles in order of arrival
    cdef int32_t _block_size        # of runs, bytes
    cdef RunMerger _merger
    cdef int64_t _limit             # rows of output, -1: all
    cdef bint _force_spill
    cdef int64_t _rows_left         # rows of output still to come
    cdef int64_t _position          # in memory: next entry
    cdef uint8_t* _arena            # merging: rows copied for decoding
    cdef int64_t _arena_size
    cdef uint32_t* _sizes           # [CHUNK_ROWS]
    cdef uint8_t** _targets         # [CHUNK_ROWS]
    cdef uint8_t** _rows            # [CHUNK_ROWS]
    cdef uint8_t** _output          # [_output_capacity]
    cdef int64_t _output_capacity
    cdef readonly object schema
    cdef readonly int64_t rows_in
    cdef readonly int64_t spilled_bytes
    cdef readonly int32_t run_count

    def __cinit__(self, schema, keys, PagePool pool not None, space, limit=None, bint force_spill=False):
        self.schema = schema
        self._codec = RowCodec(schema)
        self._normalized_key = NormalizedKey(self._codec, keys)
        self._comparator = RowComparator(self._codec, keys)
        self._pool = pool
        self._space = space
        self._sorter = RecordSorter(pool, self._normalized_key, self._comparator, FORCED_RUN_ROWS if force_spill else 0)
        self._state = STATE_FILLING
        self._runs = []
        self._block_size = block_size_bytes(pool.page_limit * pool.page_size)
        self._limit = -1 if limit is None else limit
        self._force_spill = force_spill
        self._sizes = <uint32_t*> malloc(CHUNK_ROWS * sizeof(uint32_t))
        self._targets = <uint8_t**> malloc(CHUNK_ROWS * sizeof(uint8_t*))
        self._rows = <uint8_t**> malloc(CHUNK_ROWS * sizeof(uint8_t*))
        if self._sizes == NULL or self._targets == NULL or self._rows == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self._sizes)
        free(self._targets)
        free(self._rows)
        free(self._output)

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
        self._codec.accept(opened)
        while start < opened.row_count:
            count = min(<int64_t> CHUNK_ROWS, opened.row_count - start)
            with nogil:
                self._codec.measure(opened, start, count, self._sizes)
                placed = self._place(count, False)
            if placed == 0:
                self._make_room(self._sizes[0])
                with nogil:
                    placed = self._place(count, True)
                if placed == 0:
                    self._refuse(self._sizes[0])
            with nogil:
                self._codec.encode(opened, start, placed, self._sizes, self._targets)
            start += placed
        self.rows_in += opened.row_count

    def add_page(self, MemorySegment segment not None, int64_t used_bytes):
        """Take the binary rows in the first used_bytes of a segment; they are copied.

        Raises: CorruptBlockError when sizes of rows do not add up; SpillError.
        """
        if not 0 <= used_bytes <= segment.size:
            raise ValueError(f"{used_bytes} bytes used of a page of {segment.size}")
        self._require(STATE_FILLING, "add_page")
        self._add_encoded(segment.data, used_bytes)

    def add_rows(self, const uint8_t[::1] buffer not None):
        """Take contiguous binary rows, also larger than a page; they are copied.

        Raises: as add_page.
        """
        self._require(STATE_FILLING, "add_rows")
        if buffer.shape[0] > 0:
            self._add_encoded(&buffer[0], buffer.shape[0])

    cdef int _add_encoded(self, const uint8_t* data, int64_t size) except -1:
        cdef int64_t offset = 0
        cdef int64_t count, done, placed, index
        while offset < size:
            count = rows_of_page(data + offset, size - offset, self._rows, CHUNK_ROWS)
            if count <= 0:
                raise CorruptBlockError(f"sizes of rows do not add up in a page of {size} bytes given to a sort")
            done = 0
            while done < count:
                for index in range(count - done):
                    self._sizes[index] = row_size(self._rows[done + index])
                with nogil:
                    placed = self._place(count - done, False)
                if placed == 0:
                    self._make_room(self._sizes[0])
                    with nogil:
                        placed = self._place(count - done, True)
                    if placed == 0:
                        self._refuse(self._sizes[0])
                for index in range(placed):
                    memcpy(self._targets[index], self._rows[done + index], self._sizes[index])
                done += placed
            offset = self._rows[count - 1] + row_size(self._rows[count - 1]) - data
            self.rows_in += count
        return 0

    cdef int64_t _place(self, int64_t count, bint reserved) noexcept nogil:
        """Find room for rows of _sizes[0 .. count); returns for how many there was."""
        cdef int64_t index
        for index in range(count):
            self._targets[index] = self._sorter.place(self._sizes[index], reserved and index == 0)
            if self._targets[index] == NULL:
                return index
        return count

    cdef int _make_room(self, int64_t size) except -1:
        """Empty the memory for a row of size bytes, but for the first rows when there is a small limit."""
        if self._sorter.row_count == 0:
            return 0
        self._sort_in_memory()
        if self._limit < 0 or self._force_spill or size > self._pool.page_size or not self._keep_first():
            self._spill()
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
        raise MemoryBudgetError(f"no memory for a row of {size} bytes in {self._pool!r}, not even the reserved grant")

    # ----------------------------------------------------------------------------------------------------- spilling

    cdef int _sort_in_memory(self) except -1:
        cdef int status
        with nogil:
            status = self._sorter.sort()
        if status != STATUS_OK:
            raise MemoryBudgetError(f"no memory for the index of {self._sorter.row_count} rows in {self._pool!r}")
        return 0

    cdef int _spill(self) except -1:
        """Write the sorted rows in memory as a run and forget them."""
        cdef SpillWriter writer
        cdef IndexEntry* entries = self._sorter.entries
        cdef int64_t count = self._sorter.row_count
        cdef int64_t index
        if self._limit >= 0:
            count = min(count, self._limit)
        writer = self._space.writer("run", block_size=self._block_size)
        with nogil:
            for index in range(count):
                if index + AHEAD < count:
                    prefetch(entries[index + AHEAD].row)
                writer.write(entries[index].row, row_size(entries[index].row))
        self._sorter.clear()
        self._keep_run(writer.finish(), len(self._runs), len(self._runs))
        return 0

    cdef int _keep_run(self, file, Py_ssize_t start, Py_ssize_t stop) except -1:
        """Put a new run in the place of runs start .. stop, which are deleted."""
        merged = self._runs[start:stop]
        self._runs[start:stop] = [file]
        self.spilled_bytes += file.raw_bytes
        self.run_count += 1
        for old in merged:
            old.delete()
        return 0

    cdef RunMerger _open_merger(self, list runs):
        readers = []
        try:
            for run in runs:
                readers.append(run.reader(prefetch=1))
            return RunMerger(readers, self._normalized_key, self._comparator)
        except BaseException:
            for reader in readers:
                reader.close()
            raise

    cdef int _merge_to_run(self, Py_ssize_t start, Py_ssize_t stop) except -1:
        """Merge the runs start .. stop into one run in their place."""
        cdef RunMerger merger = self._open_merger(self._runs[start:stop])
        cdef SpillWriter writer
        cdef int64_t left = self._limit if self._limit >= 0 else NO_LIMIT
        cdef int64_t count
        cdef uint8_t* end
        try:
            self._take_arena(self._block_size)
            writer = self._space.writer("merged run", block_size=self._block_size)
            while left > 0 and merger.head() != NULL:
                count = merger.copy_rows(self._arena, self._arena_size, self._rows, min(left, <int64_t> CHUNK_ROWS))
                if count > 0:
                    end = self._rows[count - 1] + row_size(self._rows[count - 1])
                    writer.write(self._arena, end - self._arena)
                else:
                    count = 1
                    writer.write(merger.head(), row_size(merger.head()))
                    merger.advance()
                left -= count
        finally:
            self._give_arena()
            merger.close()
        self._keep_run(writer.finish(), start, stop)
        return 0

    cdef int _take_arena(self, int64_t wanted) except -1:
        """Take memory into which merged rows are copied: at most a quarter of the pool, at least a page."""
        cdef int64_t quarter = max(self._pool.page_limit // 4, <int64_t> 1) * self._pool.page_size
        self._arena_size = min(quarter, max(wanted, <int64_t> self._pool.page_size))
        with nogil:
            self._arena = self._pool.take_large(self._arena_size, False)
        if self._arena == NULL:
            self._refuse(self._arena_size)
        return 0

    cdef void _give_arena(self) noexcept:
        if self._arena != NULL:
            self._pool.give_large(self._arena, self._arena_size, False)
            self._arena = NULL

    # ------------------------------------------------------------------------------------------------------- output

    def finish(self):
        """Say that all rows are in; sorts, and merges until the last merge can give the output.

        Raises: SpillError, CorruptBlockError.
        """
        self._require(STATE_FILLING, "finish")
        if not self._runs:
            self._sort_in_memory()
            self._state = STATE_IN_MEMORY
            self._rows_left = self._sorter.row_count
            if self._limit >= 0:
                self._rows_left = min(self._rows_left, self._limit)
            return
        if self._sorter.row_count > 0:
            self._sort_in_memory()
            self._spill()
        ways = fan_in(self._pool.page_limit * self._pool.page_size, self._block_size)
        window = next_window([run.raw_bytes for run in self._runs], ways)
        while window is not None:
            self._merge_to_run(window[0], window[0] + window[1])
            window = next_window([run.raw_bytes for run in self._runs], ways)
        self._merger = self._open_merger(self._runs)
        self._rows_left = self._limit if self._limit >= 0 else NO_LIMIT
        self._state = STATE_MERGING

    def batches(self, int64_t max_rows=8192, int64_t max_bytes=1 << 20):
        """Yield the rows in order as Arrow batches; once.

        Args: max_rows: 1 or more; max_bytes: bound of a batch's rows in binary form, exceeded only by a single row.
        """
        if self._state not in (STATE_IN_MEMORY, STATE_MERGING):
            raise RuntimeError("batches() comes after finish() and before close()")
        self._reserve_output(max(max_rows, 1))
        batch = self._next_batch(max_bytes)
        while batch is not None:
            yield batch
            batch = self._next_batch(max_bytes)

    cdef int _reserve_output(self, int64_t max_rows) except -1:
        free(self._output)
        self._output = <uint8_t**> malloc(<size_t> max_rows * sizeof(uint8_t*))
        self._output_capacity = max_rows
        if self._output == NULL:
            raise MemoryError()
        return 0

    cdef object _next_batch(self, int64_t max_bytes):
        cdef int64_t count
        if self._state == STATE_IN_MEMORY:
            count = self._next_from_memory(max_bytes)
        elif self._state == STATE_MERGING:
            count = self._next_from_merge(max_bytes)
        else:
            raise RuntimeError("the sort was closed while its batches were read")
        if count == 0:
            return None
        self._rows_left -= count
        batch = self._codec.decode(self._output, count, NULL, 0)
        if self._state == STATE_MERGING and self._output[0] == self._merger.head():
            self._merger.advance()      # a row larger than the arena was decoded in its block
        return batch

    cdef int64_t _next_from_memory(self, int64_t max_bytes) noexcept:
        cdef int64_t limit = min(self._rows_left, self._output_capacity)
        cdef int64_t count = 0
        cdef int64_t used = 0
        cdef uint8_t* row
        while count < limit:
            row = self._sorter.entries[self._position].row
            used += row_size(row)
            if used > max_bytes and count > 0:
                break
            self._output[count] = row
            self._position += 1
            count += 1
        return count

    cdef int64_t _next_from_merge(self, int64_t max_bytes) except -1:
        cdef int64_t limit = min(self._rows_left, self._output_capacity)
        cdef int64_t count
        if self._arena == NULL:
            self._take_arena(max_bytes)
        count = self._merger.copy_rows(self._arena, min(self._arena_size, max_bytes), self._output, limit)
        if count == 0 and limit > 0 and self._merger.head() != NULL:
            self._output[0] = self._merger.head()
            count = 1
        return count

    # ---------------------------------------------------------------------------------------------------------- end

    cdef int _require(self, int state, str what) except -1:
        if self._state != state:
            names = ("filling", "finished", "finished", "closed")
            raise RuntimeError(f"{what}() on a sort that is {names[self._state]}")
        return 0

    def close(self):
        """Give every page back and delete the runs; idempotent, in every state."""
        if self._state == STATE_CLOSED:
            return
        self._state = STATE_CLOSED
        self._sorter.clear()
        self._give_arena()
        runs, self._runs = self._runs, []
        try:
            if self._merger is not None:
                self._merger.close()
        finally:
            for run in runs:
                run.delete()
