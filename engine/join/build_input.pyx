"""BuildInput: build rows on their way into a join's partitions.

    add_batch (Arrow)         ─┐
    collect ─► add_collected  ─┼─► without null keys, unless they are wanted ─┬─► DictionaryTable, while it takes all
    add_rows                  ─┘                                              └─► hashed, into the PartitionSet,
                                                                                  without RecentRows where one row
                                                                                  of each key is enough

A dictionary table costs a fraction of others, so it is asked first; the first row that it does not take makes it give
back what it has, and from then on rows go to partitions. A build side of less than DICTIONARY_ROWS_MIN rows is given
back as well: a small one is kept as Arrow columns, and that is as short a way.

Held by: tests/join/test_hash_join.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from engine.join.dictionary_table cimport DictionaryTable
from engine.join.entry_pages cimport next_rows_of_block
from engine.join.join_side cimport JoinSide
from engine.join.match_output cimport index_array
from engine.join.partition_set cimport BRIEF_ROWS, CHUNK_ROWS, PartitionSet
from engine.join.recent_rows cimport RECENT_ROW_BYTES_MAX, RecentRows
from engine.join.table_choice cimport TableChoice
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_check cimport check_rows

from engine.errors import CorruptBlockError

cdef enum:
    DICTIONARY_ROWS_MIN = 1 << 16
    BLOCK_ROWS = 1024               # written as rows before it is known whether they came before


@cython.final
cdef class BuildInput:
    """The way in of one join; the methods are for the join (see the .pxd)."""

    def __cinit__(self, JoinSide build not None, bint keeps_null_keys, PartitionSet level not None,
                  RecentRows recent):
        self.rows = <uint8_t**>malloc(CHUNK_ROWS * sizeof(uint8_t*))
        self.hashes = <uint64_t*>malloc(CHUNK_ROWS * sizeof(uint64_t))
        self.null_flags = <uint8_t*>malloc(CHUNK_ROWS)
        self._indices = <int64_t*>malloc(CHUNK_ROWS * sizeof(int64_t))
        if self.rows == NULL or self.hashes == NULL or self.null_flags == NULL or self._indices == NULL:
            raise MemoryError("scratch of a hash join")
        self.begin(build, keeps_null_keys, level, recent)

    def __dealloc__(self):
        free(self.rows)
        free(self.hashes)
        free(self.null_flags)
        free(self._indices)
        free(self._block)
        free(self._block_sizes)

    cdef int begin(self, JoinSide build, bint keeps_null_keys, PartitionSet level, RecentRows recent) except -1:
        self._build = build
        self._keeps_null_keys = keeps_null_keys
        self._level = level
        self._recent = recent
        return 0

    cdef int fill_dictionary(self, TableChoice tables) except -1:
        # To take rows back, a level needs a page for each partition, for null keys and for the directory.
        self._dictionary = tables.open_dictionary(self._level.fan_out + 3, self._recent is not None)
        return 0

    cdef int add_batch(self, ArrowBatch batch) except -1:
        cdef int64_t start
        self._build.codec.accept(batch)
        for start in range(0, batch.row_count, CHUNK_ROWS):
            self._add_chunk(batch, start, min(<int64_t>CHUNK_ROWS, batch.row_count - start))
        return 0

    cdef int _add_chunk(self, ArrowBatch batch, int64_t start, int64_t count) except -1:
        cdef int64_t null_count, index, kept = 0
        self.row_count += count
        with nogil:
            null_count = self._build.null_keys_of_batch(batch, start, count, self.null_flags)
        self.null_key_count += null_count
        if null_count and not self._keeps_null_keys:
            with nogil:
                for index in range(count):
                    if not self.null_flags[index]:
                        self._indices[kept] = start + index
                        kept += 1
            batch = ArrowBatch.open(batch.batch.take(index_array(self._indices, kept)))
            start, count, null_count = 0, kept, 0
        if self._dictionary is not None:
            with nogil:
                kept = self._dictionary.insert_batch(batch, start, count)
            if kept == count:
                return 0
            self._give_up_dictionary()
            start += kept
            count -= kept
        with nogil:
            self._build.hash_batch(batch, start, count, self.hashes)
        if self._recent is not None and count:
            return self._add_once(batch, start, count)
        return self._level.add_batch(batch, start, count, self.hashes, self.null_flags if null_count else NULL)

    # Add hashed batch rows with keys that did not come just now.
    cdef int _add_once(self, ArrowBatch batch, int64_t start, int64_t count) except -1:
        cdef int64_t begin, block, index, kept
        cdef uint8_t* end
        if self._block == NULL:
            self._block = <uint8_t*>malloc(BLOCK_ROWS * RECENT_ROW_BYTES_MAX)
            self._block_sizes = <uint32_t*>malloc(BLOCK_ROWS * sizeof(uint32_t))
            if self._block == NULL or self._block_sizes == NULL:
                raise MemoryError("scratch of a hash join's build side")
        for begin in range(0, count, BLOCK_ROWS):
            block = min(<int64_t>BLOCK_ROWS, count - begin)
            with nogil:
                self._build.codec.measure(batch, start + begin, block, self._block_sizes)
                end = self._block
                for index in range(block):
                    self.rows[index] = end
                    end += self._block_sizes[index]
                    if end > self._block + BLOCK_ROWS * RECENT_ROW_BYTES_MAX:
                        end = NULL
                        break
                if end != NULL:
                    self._build.codec.encode(batch, start + begin, block, self._block_sizes, self.rows)
                    kept = self._recent.leave_out(self.rows, self.hashes + begin, block)
            if end != NULL:
                self._level.add_rows(self.rows, kept, self.hashes + begin, NULL)
            else:
                self._level.add_batch(batch, start + begin, block, self.hashes + begin, NULL)
        return 0

    cdef int64_t collect(self, const uint8_t[::1] data, int64_t count) except -1:
        cdef int64_t found, size = data.shape[0], offset = 0
        while offset < size:
            if count == CHUNK_ROWS:
                count = self.add_collected(count)
            found = next_rows_of_block(&data[0], size, &offset, self.rows + count, CHUNK_ROWS - count, size)
            if found < 0:
                raise CorruptBlockError(f"bytes {offset} to {size} of a page of build rows are not rows")
            count += found
        return count

    cdef int add_collected(self, int64_t count) except -1:
        check_rows(self._build.codec, self.rows, count)
        self.row_count += count
        return self.add_rows(count, True)

    cdef int add_rows(self, int64_t count, bint count_nulls) except -1:
        cdef int64_t null_count = 0
        cdef int64_t taken = 0
        if count <= BRIEF_ROWS:
            count = self._take_rows(count, count_nulls, &null_count, &taken)
        else:
            with nogil:
                count = self._take_rows(count, count_nulls, &null_count, &taken)
        if self._dictionary is not None:
            if taken == count:
                return 0
            self._give_up_dictionary()
            self._build.hash_rows(self.rows + taken, count - taken, self.hashes)
        if self._recent is not None:
            with nogil:
                count = taken + self._recent.leave_out(self.rows + taken, self.hashes, count - taken)
        return self._level.add_rows(self.rows + taken, count - taken, self.hashes,
                                    self.null_flags if null_count else NULL)

    # Leaves out unneeded rows without key; returns how many there are then, null_count of them without key.
    # The first of them are taken, or all hashed.
    cdef int64_t _take_rows(self, int64_t count, bint count_nulls, int64_t* null_count, int64_t* taken) noexcept nogil:
        cdef int64_t index, kept = 0
        if count_nulls:
            null_count[0] = self._build.null_keys_of_rows(self.rows, count, self.null_flags)
            self.null_key_count += null_count[0]
        if null_count[0] and not self._keeps_null_keys:
            for index in range(count):
                if not self.null_flags[index]:
                    self.rows[kept] = self.rows[index]
                    kept += 1
            count = kept
            null_count[0] = 0
        if self._dictionary is not None:
            taken[0] = self._dictionary.insert(self.rows, NULL, count)
        else:
            self._build.hash_rows(self.rows, count, self.hashes)
        return count

    cdef int _give_up_dictionary(self) except -1:
        cdef uint8_t** rows
        cdef int64_t count
        while True:
            with nogil:
                count = self._dictionary.take_back(&rows)
                self._build.hash_rows(rows, count, self.hashes)
            if count == 0:
                self._dictionary = None
                return 0
            self._level.add_rows(rows, count, self.hashes, NULL)

    cdef bint finish(self) except -1:
        if self._dictionary is not None and self._dictionary.row_count < DICTIONARY_ROWS_MIN:
            self._give_up_dictionary()
        is_filled = self._dictionary is not None
        self._dictionary = None
        return is_filled

    cdef int release(self) except -1:
        if self._dictionary is not None:
            self._dictionary.release()
            self._dictionary = None
        return 0
