"""RunMerger: rows of slices of sorted runs in one order, by a tree of losers over cursors.

    merger = RunMerger(slices, normalized_key, comparator)      opens the first rows of every slice
    merger.head() / merger.advance()                            row by row, or
    merger.collect(rows, ...)                                   the addresses of many
    merger.write_to(run_writer, row_limit)                      all of it into one run
    merger.close()                                              closes the readers

    in memory   entries of the sorted index ─┐ 64 rows at a time:
    on disk     SpillReader ─► block ────────┴─ addresses and prefixes ──► leaf of the tree

The address of a row in memory is good while its run is; that of a row on disk points into its reader's block and dies
when that run's next block is read, so ``collect`` copies it. ``follow_to_disk`` is for runs that lose their pages to
somebody else between two batches: their cursors go on in the file, at the same row.

Errors: CorruptBlockError when the sizes of rows do not add up to their block; what a SpillReader raises. Both name
the result partition that the run is a part of.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from engine.iomanager.spill_reader cimport SpillReader
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page
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
    """Args: slices: one RunSlice for each run, in order of arrival; at least one."""

    def __cinit__(self, list slices not None, NormalizedKey normalized_key not None,
                  RowComparator comparator not None, RowCodec codec not None):
        cdef int32_t leaf
        self._slices = slices
        self._readers = [None] * len(slices)
        self._normalized_key = normalized_key
        self._comparator = comparator
        self._codec = codec
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

    cdef bint reads_disk(self) noexcept:
        cdef int32_t leaf
        for leaf in range(self._tree.leaf_count):
            if self._cursors[leaf].entries == NULL and self._tree.rows[leaf] != NULL:
                return True
        return False

    cdef int write_to(self, RunWriter writer, int64_t row_limit) except -1:
        cdef int status = CURSOR_READY
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
