"""SortedRun: rows in order with an index by key; RunWriter: a run on its way to disk; RunSlice: a part of a run.

    run = run_in_memory(record_sorter, row_count)       rows where they lie, nothing is copied
    writer = RunWriter(spill_writer, key_bytes) ─► writer.write(row)* ─► run = writer.finish(), or writer.end() and
                                                        another RunWriter for the next run in the same file
    run.take_file(other)                                a run in memory goes on as its copy on disk
    run.row_of_bound(bound, key_bytes)                  where a range begins

Of a run on disk a key is kept in memory for every KEY_STEP_BYTES of blocks, the first one of theirs, and the number of
each block's first row: a bound is found by a binary search over the keys, then over the blocks between two of them,
which are read for it, once a bound, whoever asks. A run in memory is searched itself.

Memory: 65 bytes a key and 8 a block lie outside the budget, up to double while arrays grow: one or two in a thousand of
the rows, and two more where memory is so short that blocks are of 4 KiB.

A run that is a part of a result partition names it in the errors of its file: reading again would not help, its
producer has to run again.

Limits: keys are compared as KeyBytes cuts them; rows that differ behind the cut count as equal here.

Source: the index file of Flink's sort-shuffle; the keys in it are ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.records.row_codec cimport row_size
from engine.sort.key_bytes cimport KEY_BYTES_MAX, KeyBytes, compare_keys
from engine.sort.record_sorter cimport RecordSorter

from engine.errors import CorruptBlockError


cdef enum:
    KEY_STEP_BYTES = 65536      # of blocks for which one key is kept; a larger block has its own
    READ_AHEAD_BYTES = 32768    # blocks from this size on are read ahead: smaller ones come from the system's cache


@cython.final
cdef class SortedRun:

    def __cinit__(self):
        self._bounds = {}
        self._key_step = 1

    def __dealloc__(self):
        free(self.first_rows)
        free(self._keys)
        free(self._key_sizes)

    cdef bint next_block_has_key(self) noexcept nogil:
        return self.block_count % self._key_step == 0

    cdef int add_block(self, int64_t first_row) except -1 nogil:
        cdef int64_t capacity
        if self.block_count == self._capacity:
            capacity = self._capacity + self._capacity // 2 + 8
            self.first_rows = <int64_t*> _grown(self.first_rows, capacity * <int64_t> sizeof(int64_t))
            self._capacity = capacity
        self.first_rows[self.block_count] = first_row
        self.block_count += 1
        return 0

    cdef int add_key(self, const uint8_t* key, int32_t key_size) except -1 nogil:
        cdef int64_t capacity
        if self._key_count == self._key_capacity:
            capacity = self._key_capacity + self._key_capacity // 2 + 8
            self._keys = <uint8_t*> _grown(self._keys, capacity * KEY_BYTES_MAX)
            self._key_sizes = <uint8_t*> _grown(self._key_sizes, capacity)
            self._key_capacity = capacity
        memcpy(self._keys + self._key_count * KEY_BYTES_MAX, key, <size_t> key_size)
        self._key_sizes[self._key_count] = <uint8_t> key_size
        self._key_count += 1
        return 0

    cdef int blame(self, error) except -1:
        if self.partition is not None:
            error.partition = self.partition
        return 0

    cdef int64_t block_of_row(self, int64_t row) noexcept nogil:
        cdef int64_t low = 0
        cdef int64_t high = self.block_count
        cdef int64_t middle
        while high - low > 1:
            middle = (low + high) // 2
            if self.first_rows[middle] <= row:
                low = middle
            else:
                high = middle
        return low

    cdef SpillReader reader(self, int64_t first, int64_t end):
        return self.file.reader(prefetch=self.read_ahead, first_block=self.first_block + first, block_count=end - first)

    cdef int64_t row_of_bound(self, bytes bound, KeyBytes key_bytes) except -1:
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
        """Search the keys for the blocks among which the bound lies, these by their first rows, then one of them."""
        cdef const uint8_t* key = bound
        cdef int32_t size = <int32_t> len(bound)
        cdef int64_t low = 0
        cdef int64_t high = self._key_count
        cdef int64_t middle
        while low < high:
            middle = (low + high) // 2
            if compare_keys(self._keys + middle * KEY_BYTES_MAX, self._key_sizes[middle], key, size) < 0:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return 0
        high = min(low * self._key_step, self.block_count)
        low = (low - 1) * self._key_step
        while high - low > 1:
            middle = (low + high) // 2
            if self._rows_below(middle, bound, key_bytes, 1) == 1:
                low = middle
            else:
                high = middle
        return self.first_rows[low] + self._rows_below(low, bound, key_bytes, self.row_count)

    cdef int64_t _rows_below(self, int64_t block, bytes bound, KeyBytes key_bytes, int64_t limit) except -1:
        """Return how many rows at the beginning of a block are below a bound; it looks at no more than a limit."""
        cdef const uint8_t[::1] rows = self.file.read_block(self.first_block + block)
        cdef const uint8_t* key = bound
        cdef int32_t size = <int32_t> len(bound)
        cdef int64_t offset = 0
        cdef int64_t count = 0
        while count < limit and offset + 8 <= rows.shape[0]:
            if row_size(&rows[offset]) < 8 or row_size(&rows[offset]) > rows.shape[0] - offset:
                raise CorruptBlockError(f"sizes of rows do not add up in block {block} of {self.file!r}")
            if key_bytes.compare(&rows[offset], key, size) >= 0:
                break
            offset += row_size(&rows[offset])
            count += 1
        return count

    def samples(self, KeyBytes key_bytes not None, int64_t count):
        """Return (keys, weights in bytes) of up to `count` rows (in memory) or of all kept keys (on disk), in order."""
        cdef uint8_t[KEY_BYTES_MAX] target
        cdef int64_t index, row
        keys, weights = [], []
        if self.memory is None:
            sizes = self.file.block_sizes(self.first_block, self.block_count)
            for index in range(self._key_count):
                keys.append(self._keys[index * KEY_BYTES_MAX:index * KEY_BYTES_MAX + self._key_sizes[index]])
                weights.append(sum(sizes[index * self._key_step:(index + 1) * self._key_step]))
            return keys, weights
        count = min(count, self.row_count)
        for index in range(count):
            row = index * self.row_count // count
            keys.append((<const char*> target)[:key_bytes.write(self.memory.entries[row].row, target)])
            weights.append(self.row_bytes * (index + 1) // count - self.row_bytes * index // count)
        return keys, weights

    cdef int take_file(self, SortedRun other) except -1:
        self.file, other.file = other.file, None
        self.first_block, self.read_ahead = other.first_block, other.read_ahead
        self.largest_row = other.largest_row
        self.block_count, self._capacity = other.block_count, other._capacity
        self._key_count, self._key_capacity, self._key_step = other._key_count, other._key_capacity, other._key_step
        self.first_rows, self._keys, self._key_sizes = other.first_rows, other._keys, other._key_sizes
        other.first_rows, other._keys, other._key_sizes = NULL, NULL, NULL
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


cdef void* _grown(void* memory, int64_t size) except NULL nogil:
    cdef void* grown = realloc(memory, <size_t> size)
    if grown == NULL:
        with gil:
            raise MemoryError("no memory for the index of a sorted run")
    return grown


cdef SortedRun run_in_memory(RecordSorter memory, int64_t row_count):
    cdef SortedRun run = SortedRun()
    run.memory = memory
    run.row_count = row_count
    run.row_bytes = memory.used_bytes
    return run


@cython.final
cdef class RunWriter:
    """Args: writer: of a file, between two blocks; key_bytes: of the rows."""

    def __cinit__(self, SpillWriter writer not None, KeyBytes key_bytes not None):
        self._writer = writer
        self._key_bytes = key_bytes
        self._run = SortedRun()
        self._run._key_step = max(1, KEY_STEP_BYTES // writer.block_size)
        self._run.first_block = writer.blocks_cut
        self._run.read_ahead = 1 if writer.block_size >= READ_AHEAD_BYTES else 0
        self._bytes_before = writer.raw_bytes

    cdef int write(self, const uint8_t* row) except -1 nogil:
        cdef uint8_t[KEY_BYTES_MAX] key
        cdef int64_t block = self._writer.blocks_cut
        cdef bint is_first = self._writer._fill_size == 0
        cdef int64_t size = row_size(row)
        self._writer.write(row, size)
        if size > self._writer.block_size:
            self._run.largest_row = max(self._run.largest_row, size)
        if is_first or self._writer.blocks_cut != block:
            # with something in it, the old block was cut to make room: the row begins the next one
            if self._run.next_block_has_key():
                self._run.add_key(key, self._key_bytes.write(row, key))
            self._run.add_block(self.row_count)
        self.row_count += 1
        return 0

    cdef SortedRun end(self):
        self._writer.cut()
        self._run.row_count = self.row_count
        self._run.row_bytes = self._writer.raw_bytes - self._bytes_before
        return self._run

    cdef SortedRun finish(self):
        cdef SortedRun run = self.end()
        run.file = self._writer.finish()
        return run


cdef RunSlice whole_run(SortedRun run):
    cdef RunSlice slice = RunSlice()
    slice.run = run
    slice.end = run.row_count
    return slice
