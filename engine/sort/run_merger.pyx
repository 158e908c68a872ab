"""RunMerger: rows of slices of sorted runs in one order, by a tree of losers over cursors.

    merger = RunMerger(slices, normalized_key, comparator)      opens the first rows of every slice
    merger.head() / merger.advance()                            row by row, or
    merger.collect(rows, ...)                                   the addresses of many
    merger.write_to(run_writer, row_limit)                      all of it into one run
    merger.take_group(target)                                   the smallest row, with those that have its keys
    merger.close()                                              closes the readers

    in memory   entries of the sorted index ─┐ 64 rows at a time:
    on disk     SpillReader ─► block ────────┴─ addresses and prefixes ──► leaf of the tree

The address of a row in memory is good while its run is; that of a row on disk points into its reader's block and dies
when that run's next block is read, so ``collect`` copies it. ``follow_to_disk`` is for runs that lose their pages to
somebody else between two batches: their cursors go on in the file, at the same row.

With a combiner rows of equal keys become one, whichever runs they come from: the first one is copied, and the others
are combined into it. What is collected or written is complete: the next row has other keys. Rows of runs are never
changed; a reader that begins anew finds them as they were.

Errors: CorruptBlockError when the sizes of rows do not add up to their block; what a SpillReader raises. Both name
the result partition that the run is a part of.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from engine.iomanager.spill_reader cimport SpillReader
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page
from engine.records.row_combiner cimport RowCombiner
from engine.sort.loser_tree cimport tree_build, tree_create, tree_destroy, tree_replay
from engine.sort.radix_sort cimport IndexEntry
from engine.sort.sorted_run cimport RunSlice, RunWriter, SortedRun

from engine.errors import CorruptBlockError, ResourceError

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void* address) noexcept nogil

cdef enum:
    CURSOR_READY = 0
    CURSOR_NEEDS_BLOCK = 1
    CURSOR_CORRUPT = 2
    CURSOR_END = 3


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
        self._ties = not normalized_key.decides
        self._cursors = <RunCursor*> calloc(len(slices), sizeof(RunCursor))
        if self._cursors == NULL or tree_create(&self._tree, <int32_t> len(slices)) != 0:
            raise MemoryError()
        try:
            for leaf in range(self._tree.leaf_count):
                self._open(leaf, (<RunSlice> slices[leaf]).begin)
            if tree_build(&self._tree, comparator, self._ties) != 0:
                raise MemoryError()
        except BaseException:
            self.close()
            raise

    def __dealloc__(self):
        tree_destroy(&self._tree)
        free(self._cursors)
        free(self._pending)

    cdef int _open(self, int32_t leaf, int64_t begin) except -1:
        """Put row `begin` of the leaf's run into the leaf, and what follows behind it."""
        cdef RunSlice slice = self._slices[leaf]
        cdef SortedRun run = slice.run
        cdef RunCursor* cursor = &self._cursors[leaf]
        cdef int64_t first_block, skip
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
        first_block = run.block_of_row(begin)
        try:
            self._readers[leaf] = run.file.reader(
                prefetch=1, first_block=first_block, block_count=run.block_of_row(slice.end - 1) + 1 - first_block
            )
        except ResourceError as error:
            run.blame(error)
            raise
        skip = begin - run.first_rows[first_block]
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
        cdef int status = cursor_fill(cursor, self._normalized_key)
        while status == CURSOR_NEEDS_BLOCK:
            reader = self._readers[leaf]
            if reader.next_block(&cursor.block, &cursor.block_left) == 0:
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

    cdef int _load_winner(self, int status) except -1:
        """Do what a step could not: read a block, or note the end of a slice; then play."""
        cdef int32_t leaf = self._tree.winner
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
            self._load_winner(status)
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
            if status == CURSOR_READY:
                self.collected_bytes = used
                return count
            self._load_winner(status)
            status = CURSOR_READY

    # ---------------------------------------------------------------------------------------------------- combining

    cdef bint _is_equal(self, const uint8_t* last, uint64_t prefix) noexcept nogil:
        """Whether the smallest row has the keys of another one, of that prefix."""
        cdef int32_t leaf = self._tree.winner
        if self._tree.rows[leaf] == NULL or self._tree.prefixes[leaf] != prefix:
            return False
        return not self._ties or self._comparator.compare(last, self._tree.rows[leaf]) == 0

    cdef int64_t _collect_combined(self, uint8_t** rows, int64_t row_limit, int64_t size_limit, uint8_t* arena,
                                   int64_t arena_size) except -1:
        """As collect; the rows of a group become one, in the arena, before the next one or the end is looked at."""
        cdef int64_t count = 0
        cdef int64_t used = 0
        cdef int64_t size
        cdef uint64_t prefix = 0
        cdef uint8_t* row
        cdef uint8_t* last = NULL
        cdef int failure = 0
        cdef int status = CURSOR_READY
        while True:
            with nogil:
                while status == CURSOR_READY:
                    row = self._tree.rows[self._tree.winner]
                    if last != NULL and self._is_equal(last, prefix):
                        failure |= self._combiner.combine(last, row)
                    else:
                        if failure != 0 or row == NULL or count == row_limit:
                            break
                        size = row_size(row)
                        if (used + size > size_limit and count > 0) or used + size > arena_size:
                            break
                        last = arena + used
                        memcpy(last, row, <size_t> size)
                        prefix = self._tree.prefixes[self._tree.winner]
                        rows[count] = last
                        used += size
                        count += 1
                    status = self._step()
            if failure != 0:
                self._combiner.raise_failure(failure)
            if status == CURSOR_READY:
                self.collected_bytes = used
                return count
            self._load_winner(status)
            status = CURSOR_READY

    cdef int take_group(self, uint8_t* target) except -1:
        cdef uint64_t prefix = self._tree.prefixes[self._tree.winner]
        cdef int failure = 0
        memcpy(target, self.head(), row_size(self.head()))
        self.advance()
        while self._combiner is not None and self._is_equal(target, prefix):
            failure = self._combiner.combine(target, self.head())
            if failure != 0:
                self._combiner.raise_failure(failure)
            self.advance()
        return 0

    cdef int _grow_pending(self, int64_t size) except -1 nogil:
        """Have room for a row of that size."""
        if size <= self._pending_capacity:
            return 0
        free(self._pending)
        self._pending_capacity = 0
        self._pending = <uint8_t*> malloc(<size_t> (2 * size))
        if self._pending == NULL:
            with gil:
                raise MemoryError(f"no memory to combine rows of {size} bytes")
        self._pending_capacity = 2 * size
        return 0

    cdef int _write_combined(self, RunWriter writer) except -1:
        cdef uint64_t prefix = 0
        cdef bint has_pending = False
        cdef uint8_t* row
        cdef int failure = 0
        cdef int status = CURSOR_READY
        while True:
            with nogil:
                while status == CURSOR_READY and failure == 0:
                    row = self.head()
                    if has_pending and self._is_equal(self._pending, prefix):
                        failure = self._combiner.combine(self._pending, row)
                    else:
                        if has_pending:
                            writer.write(self._pending)
                            has_pending = False
                        if row == NULL:
                            break
                        self._grow_pending(row_size(row))
                        memcpy(self._pending, row, row_size(row))
                        prefix = self._tree.prefixes[self._tree.winner]
                        has_pending = True
                    status = self._step()
            if failure != 0:
                self._combiner.raise_failure(failure)
            if status == CURSOR_READY:
                return 0
            self._load_winner(status)
            status = CURSOR_READY

    cdef bint reads_disk(self) noexcept:
        cdef int32_t leaf
        for leaf in range(self._tree.leaf_count):
            if self._cursors[leaf].entries == NULL and self._tree.rows[leaf] != NULL:
                return True
        return False

    cdef int write_to(self, RunWriter writer, int64_t row_limit) except -1:
        cdef int status = CURSOR_READY
        if self._combiner is not None:
            return self._write_combined(writer)
        while True:
            with nogil:
                while status == CURSOR_READY and row_limit > 0 and self.head() != NULL:
                    writer.write(self.head())
                    row_limit -= 1
                    status = self._step()
            if status == CURSOR_READY:
                return 0
            self._load_winner(status)
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
        errors = []
        readers, self._readers = self._readers, []
        for leaf in range(self._tree.leaf_count):
            self._tree.rows[leaf] = NULL
        for reader in readers:
            try:
                if reader is not None:
                    reader.close()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]
