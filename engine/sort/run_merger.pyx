"""RunMerger: rows of slices of sorted runs in one order, by a tree of losers over cursors.

    merger = RunMerger(slices, normalized_key, comparator)      opens the first rows of every slice
    merger.head() / merger.advance()                            row by row, or
    merger.collect(rows, ...)                                   the addresses of many
    merger.write_to(run_writer, row_limit)                      all of it into one run
    merger.fill(target, room)                                   all that fit, copied one behind the other
    merger.close()                                              closes the readers

    in memory   entries of the sorted index ─┐ 64 rows at a time:
    on disk     SpillReader ─► block ────────┴─ addresses and prefixes ──► leaf of the tree

The address of a row in memory is good while its run is; that of a row on disk points into its reader's block and dies
when that run's next block is read, so ``collect`` copies it. ``follow_to_disk`` is for runs that lose their pages to
another thread between two batches: their cursors go on in the file, at the same row.

With a combiner rows of equal keys become one, whichever runs they come from: the first one is copied, and the others
are combined into the copy, which may grow. What is given out is complete: the next row has other keys. Rows of runs
are never changed; a reader that begins anew finds them as they were.

Memory: with a combiner the row of one group, and another one while values of variable size are exchanged.

Errors: CorruptBlockError when the sizes of rows do not add up to their block; what a SpillReader raises. Both name
the result partition that the run is a part of.

Held by: tests/sort/test_external_sorter.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from engine.iomanager.spill_reader cimport SpillReader
from engine.records.byte_kernels cimport prefetch
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey, may_differ
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page
from engine.records.row_combiner cimport RowCombiner
from engine.sort.loser_tree cimport tree_build, tree_create, tree_destroy, tree_replay
from engine.sort.radix_sort cimport IndexEntry
from engine.sort.sorted_run cimport RunSlice, RunWriter, SortedRun

from engine.closing import close_all
from engine.errors import CorruptBlockError, ResourceError

cdef enum:
    CURSOR_READY = 0
    CURSOR_NEEDS_BLOCK = 1
    CURSOR_CORRUPT = 2
    CURSOR_END = 3
    CURSOR_FAILED = 4           # to combine rows
    CURSOR_NO_MEMORY = 5        # to do so
    GROUP_BYTES_KEPT = 1 << 20  # memory for a larger row is not kept for the next one


cdef int cursor_fill(RunCursor* cursor, NormalizedKey normalized_key) noexcept nogil:
    """Open the next rows of the cursor's run."""
    cdef int64_t count = min(cursor.left, <int64_t> CURSOR_ROWS)
    cdef int64_t index
    cdef const uint8_t* last
    if count == 0:
        return CURSOR_END
    if cursor.entries != NULL:
        for index in range(count):
            cursor.rows[index] = cursor.entries[index].row
            cursor.prefixes[index] = cursor.entries[index].prefix
            prefetch(cursor.rows[index])
        cursor.entries += count
    else:
        if cursor.block_left == 0:
            return CURSOR_NEEDS_BLOCK
        count = rows_of_page(cursor.block, cursor.block_left, cursor.rows, count)
        if count <= 0:
            return CURSOR_CORRUPT
        last = cursor.rows[count - 1]
        cursor.block_left -= (last + row_size(last)) - cursor.block
        cursor.block = last + row_size(last)
        normalized_key.prefixes_of_rows(cursor.rows, count, cursor.prefixes)
    cursor.left -= count
    cursor.index = 0
    cursor.count = <int32_t> count
    return CURSOR_READY


cdef bint _make_room(uint8_t** memory, int64_t* capacity, int64_t size) noexcept nogil:
    """Replace memory by more; what is in it is lost."""
    free(memory[0])
    capacity[0] = 2 * size if size < GROUP_BYTES_KEPT else size
    memory[0] = <uint8_t*> malloc(<size_t> capacity[0])
    if memory[0] == NULL:
        capacity[0] = 0
    return memory[0] != NULL


@cython.final
cdef class RunMerger:
    """Args: slices: one RunSlice for each run, in order of arrival; at least one; combiner: of rows with equal keys."""

    def __cinit__(self, list slices not None, NormalizedKey normalized_key not None,
                  RowComparator comparator not None, RowCodec codec not None, RowCombiner combiner=None):
        cdef int32_t leaf
        self._slices = slices
        self._readers = [None] * len(slices)
        self._normalized_key = normalized_key
        self._comparator = comparator
        self._codec = codec
        self._combiner = combiner
        self._ties = &normalized_key.ties
        self._cursors = <RunCursor*> calloc(len(slices), sizeof(RunCursor))
        if self._cursors == NULL or tree_create(&self._tree, <int32_t> len(slices)) != 0:
            raise MemoryError()
        try:
            for leaf in range(self._tree.leaf_count):
                self._open(leaf, (<RunSlice> slices[leaf]).begin)
            if tree_build(&self._tree, comparator, self._ties) != 0:
                raise MemoryError()
            raise_failed_comparison()
        except BaseException:
            self.close()
            raise

    def __dealloc__(self):
        tree_destroy(&self._tree)
        free(self._cursors)
        free(self._group)
        free(self._spare)

    cdef int _open(self, int32_t leaf, int64_t begin) except -1:
        """Put row `begin` of the leaf's run into the leaf, and what follows behind it."""
        cdef RunSlice slice = self._slices[leaf]
        cdef SortedRun run = slice.run
        cdef RunCursor* cursor = &self._cursors[leaf]
        cdef int64_t first_row = 0
        cdef int64_t skip
        cursor.left = slice.end - begin
        cursor.index = cursor.count = 0
        cursor.entries = NULL
        cursor.block_left = 0
        self._tree.rows[leaf] = NULL
        if cursor.left <= 0:
            cursor.left = 0
            return 0
        if run.memory is not None:
            cursor.entries = run.memory.entries + begin
            self._load(leaf)
            return 0
        try:
            self._readers[leaf] = run.reader_of_row(begin, &first_row)
        except ResourceError as error:
            run.blame(error)
            raise
        skip = begin - first_row
        cursor.left += skip
        self._load(leaf)
        while skip > 0:
            if skip < cursor.count - cursor.index:
                cursor.index += <int32_t> skip
                skip = 0
            else:
                skip -= cursor.count - cursor.index
                self._load(leaf)
        self._tree.rows[leaf] = cursor.rows[cursor.index]
        self._tree.prefixes[leaf] = cursor.prefixes[cursor.index]
        return 0

    cdef int _load(self, int32_t leaf) except -1:
        """Open the leaf's next rows, reading its next block if need be; NULL at the end of the slice."""
        try:
            return self._read(leaf)
        except ResourceError as error:
            (<RunSlice> self._slices[leaf]).run.blame(error)
            raise

    cdef int _read(self, int32_t leaf) except -1:
        cdef RunCursor* cursor = &self._cursors[leaf]
        cdef SpillReader reader
        cdef int found
        cdef int status = cursor_fill(cursor, self._normalized_key)
        while status == CURSOR_NEEDS_BLOCK:
            reader = self._readers[leaf]
            with nogil:
                found = reader.next_block(&cursor.block, &cursor.block_left)
            if found == 0:
                status = CURSOR_CORRUPT         # the slice has more rows than its blocks
            else:
                status = cursor_fill(cursor, self._normalized_key)
        if status == CURSOR_CORRUPT:
            raise CorruptBlockError(
                f"sizes of rows do not add up in a block of {(<RunSlice> self._slices[leaf]).run.file!r}"
            )
        if status == CURSOR_END:
            self._tree.rows[leaf] = NULL
            return 0
        self._tree.rows[leaf] = cursor.rows[0]
        self._tree.prefixes[leaf] = cursor.prefixes[0]
        return 0

    cdef int _step(self) noexcept nogil:
        """Move the winner's cursor on and play again, or say what stops it (then the tree is as before)."""
        cdef int32_t leaf = self._tree.winner
        cdef RunCursor* cursor = &self._cursors[leaf]
        cdef int status
        if cursor.index + 1 < cursor.count:
            cursor.index += 1
        else:
            status = cursor_fill(cursor, self._normalized_key)
            if status != CURSOR_READY:
                return status
        self._tree.rows[leaf] = cursor.rows[cursor.index]
        self._tree.prefixes[leaf] = cursor.prefixes[cursor.index]
        tree_replay(&self._tree, leaf, self._comparator, self._ties)
        return CURSOR_READY

    cdef int _go_on(self, int status) except -1:
        """Do what could not be done without the GIL: read a block, or note the end of a slice, and play; or raise."""
        cdef int32_t leaf = self._tree.winner
        if status == CURSOR_FAILED:
            self._combiner.raise_failure(self._failure)
        if status == CURSOR_NO_MEMORY:
            raise MemoryError(f"no memory to combine rows of {self._group_size} bytes")
        if status == CURSOR_CORRUPT:
            self._cursors[leaf].block_left = -1     # again, for its error
        self._load(leaf)
        tree_replay(&self._tree, leaf, self._comparator, self._ties)
        return 0

    cdef uint8_t* head(self) noexcept nogil:
        return self._tree.rows[self._tree.winner]

    cdef int advance(self) except -1:
        cdef int status
        with nogil:
            status = self._step()
        if status != CURSOR_READY:
            self._go_on(status)
        raise_failed_comparison()
        return 0

    cdef int64_t collect(self, uint8_t** rows, int64_t row_limit, int64_t size_limit, uint8_t* arena,
                         int64_t arena_size) except -1:
        cdef int64_t count = 0
        cdef int64_t used = 0
        cdef int64_t arena_used = 0
        cdef int64_t size, outside
        cdef uint8_t* row
        cdef int status = CURSOR_READY
        if self._combiner is not None:
            return self._collect_combined(rows, row_limit, size_limit, arena, arena_size)
        while True:
            with nogil:
                while status == CURSOR_READY:
                    row = self._tree.rows[self._tree.winner]
                    if row == NULL or count == row_limit:
                        break
                    size = row_size(row)
                    outside = self._codec.bytes_outside(row)
                    if used + size + outside > size_limit and count > 0:
                        break
                    if self._cursors[self._tree.winner].entries == NULL:
                        if arena_used + size > arena_size:
                            break
                        memcpy(arena + arena_used, row, <size_t> size)
                        row = arena + arena_used
                        arena_used += size
                    rows[count] = row
                    used += size + outside
                    count += 1
                    status = self._step()
            raise_failed_comparison()
            if status == CURSOR_READY:
                self.collected_bytes = used
                return count
            self._go_on(status)
            status = CURSOR_READY

    # ---------------------------------------------------------------------------------------------------- combining

    cdef int _complete_group(self) noexcept nogil:
        """Put the smallest row, and all that have its keys, into the group; without a row at the end."""
        cdef const uint8_t* row
        cdef int status = CURSOR_READY
        while status == CURSOR_READY:
            row = self._tree.rows[self._tree.winner]
            if row == NULL:
                return CURSOR_READY
            if self._group_size == 0:
                status = self._begin_group(row)
            elif self._tree.prefixes[self._tree.winner] == self._group_prefix and (
                not may_differ(self._ties, self._group_prefix) or self._comparator.compare(self._group, row) == 0
            ):
                status = self._add_to_group(row)
            else:
                return CURSOR_READY
            if status == CURSOR_READY:
                status = self._step()
        return status

    cdef int _begin_group(self, const uint8_t* row) noexcept nogil:
        cdef int64_t size = row_size(row)
        if size > self._group_capacity and not _make_room(&self._group, &self._group_capacity, size):
            return CURSOR_NO_MEMORY
        memcpy(self._group, row, <size_t> size)
        self._group_size = size
        self._group_prefix = self._tree.prefixes[self._tree.winner]
        return CURSOR_READY

    cdef int _add_to_group(self, const uint8_t* row) noexcept nogil:
        cdef int64_t size = 0
        if not self._combiner.keeps_size:
            size = self._combiner.combined_size(self._group, row)
        if size == 0:
            self._failure = self._combiner.combine(self._group, row)
        else:
            if size > self._spare_capacity and not _make_room(&self._spare, &self._spare_capacity, size):
                return CURSOR_NO_MEMORY
            self._failure = self._combiner.combine_into(self._spare, self._group, row)
            self._group, self._spare = self._spare, self._group
            self._group_capacity, self._spare_capacity = self._spare_capacity, self._group_capacity
            self._group_size = size
        return CURSOR_READY if self._failure == 0 else CURSOR_FAILED

    cdef int64_t _collect_combined(self, uint8_t** rows, int64_t row_limit, int64_t size_limit, uint8_t* arena,
                                   int64_t arena_size) except -1:
        """Collect as ``collect`` does; the rows of a group become one, copied to the arena when it is complete."""
        cdef int64_t count = 0
        cdef int64_t used = 0
        cdef int64_t outside = 0
        cdef int status
        while True:
            with nogil:
                status = self._complete_group()
                while status == CURSOR_READY and self._group_size > 0 and count < row_limit:
                    outside += self._codec.bytes_outside(self._group)
                    if used + self._group_size > arena_size or (
                            count > 0 and used + self._group_size + outside > size_limit):
                        break
                    rows[count] = arena + used
                    memcpy(rows[count], self._group, <size_t> self._group_size)
                    used += self._group_size
                    count += 1
                    self._group_size = 0
                    status = self._complete_group()
            raise_failed_comparison()
            if status == CURSOR_READY:
                self.collected_bytes = used
                return count
            self._go_on(status)

    # -------------------------------------------------------------------------------------------------- row by row

    cdef uint8_t* _next_row(self, int* status) noexcept nogil:
        """Return the smallest row, complete with a combiner; NULL at the end, or when status has become another."""
        if self._combiner is None:
            return self._tree.rows[self._tree.winner]
        status[0] = self._complete_group()
        return self._group if self._group_size > 0 and status[0] == CURSOR_READY else NULL

    cdef int _take_row(self) noexcept nogil:
        """Take away what _next_row returned."""
        if self._combiner is None:
            return self._step()
        self._group_size = 0
        return CURSOR_READY

    cdef uint8_t* waiting(self) noexcept nogil:
        if self._combiner is None:
            return self._tree.rows[self._tree.winner]
        return self._group if self._group_size > 0 else NULL

    cdef int drop_waiting(self) except -1:
        if self._combiner is None:
            return self.advance()
        self._group_size = 0
        if self._group_capacity > GROUP_BYTES_KEPT:
            free(self._group)
            self._group = NULL
            self._group_capacity = 0
        return 0

    cdef int64_t fill(self, uint8_t* target, int64_t room) except -1:
        cdef int64_t used = 0
        cdef int64_t size
        cdef uint8_t* row
        cdef int status = CURSOR_READY
        while True:
            with nogil:
                while status == CURSOR_READY:
                    row = self._next_row(&status)
                    if row == NULL:
                        break
                    size = row_size(row)
                    if used + size > room or self._codec.bytes_outside(row) > 0:
                        break
                    memcpy(target + used, row, <size_t> size)
                    used += size
                    status = self._take_row()
            raise_failed_comparison()
            if status == CURSOR_READY:
                return used
            self._go_on(status)
            status = CURSOR_READY

    cdef bint reads_disk(self) noexcept:
        cdef int32_t leaf
        for leaf in range(self._tree.leaf_count):
            if self._cursors[leaf].entries == NULL and self._tree.rows[leaf] != NULL:
                return True
        return False

    cdef int write_to(self, RunWriter writer, int64_t row_limit) except -1:
        cdef uint8_t* row
        cdef int status = CURSOR_READY
        while True:
            with nogil:
                while status == CURSOR_READY and row_limit > 0:
                    row = self._next_row(&status)
                    if row == NULL:
                        break
                    writer.write(row)
                    row_limit -= 1
                    status = self._take_row()
            raise_failed_comparison()
            if status == CURSOR_READY:
                return 0
            self._go_on(status)
            status = CURSOR_READY

    cdef int follow_to_disk(self) except -1:
        cdef RunSlice slice
        cdef RunCursor* cursor
        cdef int32_t leaf
        for leaf in range(self._tree.leaf_count):
            slice = self._slices[leaf]
            cursor = &self._cursors[leaf]
            if cursor.entries != NULL and slice.run.memory is None and self._tree.rows[leaf] != NULL:
                self._open(leaf, slice.end - cursor.left - (cursor.count - cursor.index))
        return 0

    def close(self):
        """Close every reader; idempotent. All are closed, the first error is raised."""
        readers, self._readers = self._readers, []
        for leaf in range(self._tree.leaf_count):
            self._tree.rows[leaf] = NULL
        close_all([reader.close for reader in readers if reader is not None])
