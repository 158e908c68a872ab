"""RunMerger: rows of several sorted runs in one order, by a tree of losers over cursors that read block by block.

    merger = RunMerger(readers, normalized_key, comparator)     opens the first block of every run
    merger.head() / merger.advance()                            row by row, or
    merger.copy_rows(target, capacity, rows, row_limit)         many rows at once into the caller's memory
    merger.close()                                              closes the readers

    run ── SpillReader ──► block │ row │ row │ row │ ...          one block of each run in memory
                             64 rows at a time: addresses and prefixes ──► leaf of the tree

A row's address points into its reader's block and dies when that run's next block is read; whoever wants more than one
row at a time copies (copy_rows), which costs less than keeping blocks alive.

Errors: CorruptBlockError when the sizes of rows do not add up to their block; what a SpillReader raises.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from engine.iomanager.spill_reader cimport SpillReader
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport row_size, rows_of_page
from engine.sort.loser_tree cimport tree_build, tree_create, tree_destroy, tree_replay

from engine.errors import CorruptBlockError

cdef enum:
    CURSOR_READY = 0
    CURSOR_NEEDS_BLOCK = 1
    CURSOR_CORRUPT = 2


cdef int cursor_fill(RunCursor* cursor, NormalizedKey normalized_key) noexcept nogil:
    """Open the next rows of the cursor's block."""
    cdef int64_t count
    cdef const uint8_t* last
    if cursor.block_left == 0:
        return CURSOR_NEEDS_BLOCK
    count = rows_of_page(cursor.block, cursor.block_left, cursor.rows, CURSOR_ROWS)
    if count <= 0:
        return CURSOR_CORRUPT
    last = cursor.rows[count - 1]
    cursor.block_left -= (last + row_size(last)) - cursor.block
    cursor.block = last + row_size(last)
    cursor.index = 0
    cursor.count = <int32_t> count
    normalized_key.prefixes_of_rows(cursor.rows, count, cursor.prefixes)
    return CURSOR_READY


@cython.final
cdef class RunMerger:
    """Args: readers: one SpillReader for each run, in order of arrival; at least one."""

    def __cinit__(self, list readers not None, NormalizedKey normalized_key not None,
                  RowComparator comparator not None):
        cdef int32_t leaf
        self._readers = readers
        self._normalized_key = normalized_key
        self._comparator = comparator
        self._ties = not normalized_key.decides
        self._cursors = <RunCursor*> calloc(len(readers), sizeof(RunCursor))
        if self._cursors == NULL or tree_create(&self._tree, <int32_t> len(readers)) != 0:
            raise MemoryError()
        for leaf in range(self._tree.leaf_count):
            self._load(leaf)
        if tree_build(&self._tree, comparator, self._ties) != 0:
            raise MemoryError()

    def __dealloc__(self):
        tree_destroy(&self._tree)
        free(self._cursors)

    cdef int _load(self, int32_t leaf) except -1:
        """Read the next block of a run and put its first row in the leaf; NULL at the end of the run."""
        cdef RunCursor* cursor = &self._cursors[leaf]
        cdef SpillReader reader = self._readers[leaf]
        cdef int status = CURSOR_NEEDS_BLOCK
        while status == CURSOR_NEEDS_BLOCK:
            if reader.next_block(&cursor.block, &cursor.block_left) == 0:
                self._tree.rows[leaf] = NULL
                return 0
            status = cursor_fill(cursor, self._normalized_key)
        if status == CURSOR_CORRUPT:
            raise CorruptBlockError(f"sizes of rows do not add up in a block of a sorted run ({reader!r})")
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

    cdef int _load_winner(self) except -1:
        cdef int32_t leaf = self._tree.winner
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
            self._require_block(status)
            self._load_winner()
        return 0

    cdef int _require_block(self, int status) except -1:
        if status == CURSOR_CORRUPT:
            raise CorruptBlockError(
                f"sizes of rows do not add up in a block of a sorted run ({self._readers[self._tree.winner]!r})"
            )
        return 0

    cdef int64_t copy_rows(self, uint8_t* target, int64_t capacity, uint8_t** rows, int64_t row_limit) except -1:
        cdef int64_t count = 0
        cdef int64_t used = 0
        cdef int64_t size
        cdef uint8_t* row
        cdef int status = CURSOR_READY
        while True:
            with nogil:
                while status == CURSOR_READY:
                    row = self._tree.rows[self._tree.winner]
                    if row == NULL or count == row_limit:
                        break
                    size = row_size(row)
                    if used + size > capacity:
                        break
                    memcpy(target + used, row, <size_t> size)
                    rows[count] = target + used
                    used += size
                    count += 1
                    status = self._step()
            if status == CURSOR_READY:
                return count
            self._require_block(status)
            self._load_winner()
            status = CURSOR_READY

    def close(self):
        """Close every reader; idempotent. All are closed, the first error is raised."""
        errors = []
        readers, self._readers = self._readers, []
        self._tree.rows[self._tree.winner] = NULL
        for reader in readers:
            try:
                reader.close()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]
