"""SortedRun: rows in order with an index by key; RunWriter: a run on its way to disk; RunSlice: a part of a run.

    run = run_in_memory(record_sorter, row_count)       rows where they lie, nothing is copied
    writer = RunWriter(spill_writer, key_bytes) ─► writer.write(row)* ─► run = writer.finish(), or writer.end() and
                                                        another RunWriter for the next run in the same file
    run.take_file(other)                                a run in memory goes on as its copy on disk
    run.row_of_bound(bound, key_bytes)                  where a range begins

Of a run on disk a key is kept for every step of so many bytes, the first one of a block, with the place of that block:
the run's index. It lies in the file, in one block behind the run; while the run is written, in memory: INDEX_ENTRIES of
it, of which every other one is dropped, and the step doubled, when they are full. So a run takes the same memory
however long it is, and finds any bound by reading its index and one step of its rows, once a bound, for all callers. A
run of one step has no index. A run in memory is searched itself.

A run that is a part of a result partition names it in the errors of its file: reading again would not help, its
producer has to run again.

Limits: keys are compared as KeyBytes cuts them; rows that differ behind the cut count as equal here.

Source: the index file of Flink's sort-shuffle; the keys in it are ours.

Held by: tests/sort/test_sorted_runs.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.records.row_codec cimport row_size
from engine.sort.key_bytes cimport KEY_BYTES_MAX, KeyBytes, compare_keys
from engine.sort.record_sorter cimport RecordSorter

from engine.errors import CorruptBlockError


cdef enum:
    STEP_BYTES = 65536          # of rows between two entries of an index, until there are too many
    INDEX_ENTRIES = 256         # at most: 28 KiB
    SAMPLES_MIN = 8             # of a run, where it has so many entries
    READ_AHEAD_BYTES = 32768    # blocks from this size on are read ahead: smaller ones come from the system's cache


@cython.final
cdef class SortedRun:

    cdef int blame(self, error) except -1:
        if self.partition is not None:
            error.partition = self.partition
        return 0

    cdef SpillReader _reader(self, int32_t prefetch, place):
        return self.file.reader(prefetch, place, self.file.place(self._mark)[0] + self.block_count - place[0])

    cdef SpillReader reader_of_row(self, int64_t row, int64_t* first_row):
        cdef bytes index = self._index() if row > 0 else b""
        cdef const RunIndexEntry* entries = <const RunIndexEntry*> <const char*> index
        cdef int64_t low = 0
        cdef int64_t high = len(index) // <int64_t> sizeof(RunIndexEntry)
        cdef int64_t middle
        first_row[0] = 0
        if high == 0:
            return self._reader(self.read_ahead, self.file.place(self._mark))
        while high - low > 1:
            middle = (low + high) // 2
            if entries[middle].first_row <= row:
                low = middle
            else:
                high = middle
        first_row[0] = entries[low].first_row
        return self._reader(self.read_ahead, _place_of(entries + low))

    cdef bytes _index(self):
        """Return the entries, in order of rows; none where the run is one step."""
        if self._index_count == 0:
            return b""
        with self.file.reader(0, self.file.place(self._mark + 1), 1) as reader:
            index = next(reader)
        if len(index) != self._index_count * <int64_t> sizeof(RunIndexEntry):
            raise CorruptBlockError(f"the index of a sorted run in {self.file!r} has {len(index)} bytes")
        return index

    cdef int64_t row_of_bound(self, bytes bound, KeyBytes key_bytes) except -1:
        if self._bounds is None:
            self._bounds = {}
        known = self._bounds.get(bound)
        if known is None:
            if self.memory is not None:
                known = self._search_memory(bound, key_bytes)
            else:
                known = self._search_file(bound, key_bytes)
            self._bounds[bound] = known
        return known

    cdef int64_t _search_memory(self, bytes bound, KeyBytes key_bytes) except -1:
        cdef const uint8_t* key = bound
        cdef int32_t size = <int32_t> len(bound)
        cdef int64_t low = 0
        cdef int64_t high = self.row_count
        cdef int64_t middle
        while low < high:
            middle = (low + high) // 2
            if key_bytes.compare(self.memory.entries[middle].row, key, size) < 0:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int64_t _search_file(self, bytes bound, KeyBytes key_bytes) except -1:
        """Search the index for the step in which the bound lies, and this from its beginning."""
        cdef bytes index = self._index()
        cdef const RunIndexEntry* entries = <const RunIndexEntry*> <const char*> index
        cdef const uint8_t* key = bound
        cdef int32_t size = <int32_t> len(bound)
        cdef int64_t low = 0
        cdef int64_t high = len(index) // <int64_t> sizeof(RunIndexEntry)
        cdef int64_t middle, before
        if high == 0:
            with self._reader(0, self.file.place(self._mark)) as reader:
                return self._rows_below(reader, bound, key_bytes)
        while low < high:
            middle = (low + high) // 2
            if compare_keys(entries[middle].key, <int32_t> entries[middle].key_size, key, size) < 0:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return 0
        before = entries[low - 1].first_row
        with self._reader(0, _place_of(entries + low - 1)) as reader:
            return before + self._rows_below(reader, bound, key_bytes)

    cdef int64_t _rows_below(self, SpillReader reader, bytes bound, KeyBytes key_bytes) except -1:
        """Return the number of rows below a bound: blocks whose last row is, and the first rows of the next one."""
        cdef const uint8_t* rows
        cdef const uint8_t* key = bound
        cdef int32_t size = <int32_t> len(bound)
        cdef int64_t rows_size, offset, last, in_block
        cdef int64_t count = 0
        while reader.next_block(&rows, &rows_size):
            offset = last = in_block = 0
            while offset < rows_size:
                last = row_size(rows + offset) if rows_size - offset >= 8 else 0
                if last < 8 or last > rows_size - offset:
                    raise CorruptBlockError(f"sizes of rows do not add up in block {reader.next_index - 1} of "
                                            f"{self.file!r}")
                last = offset
                offset += row_size(rows + offset)
                in_block += 1
            if key_bytes.compare(rows + last, key, size) < 0:
                count += in_block
                continue
            offset = 0
            while key_bytes.compare(rows + offset, key, size) < 0:
                offset += row_size(rows + offset)
                count += 1
            break
        return count

    def samples(self, KeyBytes key_bytes not None, int64_t count, double phase=0):
        """Return (keys, weights in bytes) of about `count` rows, in order; on disk of those that have entries.

        Args: phase: from which part of the first one's weight on its key is, so that runs alike differ in it; 0 to 1.
        """
        cdef uint8_t[KEY_BYTES_MAX] target
        cdef int64_t number, row
        keys, weights = [], []
        if self.memory is None:
            return self._samples_of_file(key_bytes, max(count, SAMPLES_MIN), phase)
        count = min(count, self.row_count)
        for number in range(count):
            row = number * self.row_count // count
            keys.append((<const char*> target)[:key_bytes.write(self.memory.entries[row].row, target)])
            weights.append(self.row_bytes * (number + 1) // count - self.row_bytes * number // count)
        return keys, weights

    def _samples_of_file(self, KeyBytes key_bytes, int64_t most, double phase):
        cdef bytes index = self._index()
        cdef const RunIndexEntry* entries = <const RunIndexEntry*> <const char*> index
        cdef int64_t entry_count = len(index) // <int64_t> sizeof(RunIndexEntry)
        cdef int64_t count = min(entry_count, most)
        cdef uint8_t[KEY_BYTES_MAX] target
        cdef const uint8_t* rows
        cdef int64_t size, number, begin, end, chosen
        keys, weights = [], []
        if entry_count == 0:
            with self._reader(0, self.file.place(self._mark)) as reader:
                if (<SpillReader> reader).next_block(&rows, &size):
                    keys.append((<const char*> target)[:key_bytes.write(rows, target)])
            return keys, [self.row_bytes] * len(keys)
        for number in range(count):
            begin, end = number * entry_count // count, (number + 1) * entry_count // count
            chosen = begin + <int64_t> (phase * <double> (end - begin))
            keys.append((<const char*> entries[chosen].key)[:entries[chosen].key_size])
            weights.append((entries[end].first_byte if end < entry_count else self.row_bytes)
                           - entries[begin].first_byte)
        return keys, weights

    cdef int take_file(self, SortedRun other) except -1:
        self.file, other.file = other.file, None
        self._mark, self._index_count, self.read_ahead = other._mark, other._index_count, other.read_ahead
        self.largest_row, self.block_count = other.largest_row, other.block_count
        self.memory.clear()
        self.memory = None
        return 0

    def delete(self):
        """Give pages or file back; idempotent."""
        if self.memory is not None:
            self.memory.clear()
            self.memory = None
        if self.file is not None and not self._is_deleted:
            self._is_deleted = True
            self.file.release()


cdef tuple _place_of(const RunIndexEntry* entry):
    return entry.place.sequence, entry.place.offset, entry.place.extent


cdef SortedRun run_in_memory(RecordSorter memory, int64_t row_count):
    cdef SortedRun run = SortedRun()
    run.memory = memory
    run.row_count = row_count
    run.row_bytes = memory.used_bytes
    return run


@cython.final
@cython.no_gc_clear         # __dealloc__ needs the writer
cdef class RunWriter:
    """Args: writer: of a file, between two blocks; key_bytes: of the rows."""

    def __cinit__(self, SpillWriter writer not None, KeyBytes key_bytes not None):
        self._writer = writer
        self._key_bytes = key_bytes
        self._run = SortedRun()
        self._run._mark = writer.mark()
        self._run.read_ahead = 1 if writer.block_size >= READ_AHEAD_BYTES else 0
        self._bytes_before = writer.raw_bytes
        self._blocks_before = writer.blocks_cut
        self._step_bytes = STEP_BYTES

    def __dealloc__(self):
        if self._entries != NULL:
            self._writer.settle()           # its thread may be about to note a place
            self._writer._buffers.give(<uint8_t*> self._entries, INDEX_ENTRIES * sizeof(RunIndexEntry))

    cdef int write(self, const uint8_t* row) except -1 nogil:
        cdef int64_t size = row_size(row)
        if self._writer.begins_block(size) and self._writer.raw_bytes - self._bytes_before >= self._next_entry_byte:
            self._begin_block(row)
        self._writer.write(row, size)
        if size > self._writer.block_size:
            self._run.largest_row = max(self._run.largest_row, size)
        self.row_count += 1
        return 0

    cdef int _begin_block(self, const uint8_t* row) except -1 nogil:
        """Enter the block that begins with a row into the index."""
        cdef RunIndexEntry* entry
        if self._entries == NULL:
            self._entries = <RunIndexEntry*> self._writer._buffers.take(INDEX_ENTRIES * sizeof(RunIndexEntry))
            if self._entries == NULL:
                with gil:
                    raise MemoryError("no memory for the index of a sorted run")
        elif self._entry_count == INDEX_ENTRIES:
            self._thin_out()
        entry = self._entries + self._entry_count
        memset(entry, 0, sizeof(RunIndexEntry))
        entry.first_row = self.row_count
        entry.first_byte = self._writer.raw_bytes - self._bytes_before
        entry.key_size = self._key_bytes.write(row, entry.key)
        self._writer.note_next(&entry.place)
        self._entry_count += 1
        self._next_entry_byte = entry.first_byte + self._step_bytes
        return 0

    cdef void _thin_out(self) noexcept nogil:
        cdef int64_t number
        self._writer.settle()
        for number in range(INDEX_ENTRIES // 2):
            self._entries[number] = self._entries[2 * number]
        self._entry_count = INDEX_ENTRIES // 2
        self._step_bytes *= 2

    cdef SortedRun end(self):
        self._writer.cut()
        self._run.row_count = self.row_count
        self._run.row_bytes = self._writer.raw_bytes - self._bytes_before
        self._run.block_count = self._writer.blocks_cut - self._blocks_before
        if self._entry_count > 1:
            self._write_index()
        return self._run

    cdef int _write_index(self) except -1:
        """Pass the entries to the writer's thread, which has noted all places when it comes to them."""
        cdef uint8_t* data = <uint8_t*> self._entries
        self._run._index_count = self._entry_count
        self._writer.mark()
        self._entries = NULL
        return self._writer.write_own(data, self._entry_count * <int64_t> sizeof(RunIndexEntry),
                                      INDEX_ENTRIES * <int64_t> sizeof(RunIndexEntry))

    cdef SortedRun finish(self):
        cdef SortedRun run = self.end()
        run.file = self._writer.finish()
        return run


cdef RunSlice whole_run(SortedRun run):
    cdef RunSlice slice = RunSlice()
    slice.run = run
    slice.end = run.row_count
    return slice
