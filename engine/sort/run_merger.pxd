# RunMerger: rows of several sorted runs in one order.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.sort.loser_tree cimport LoserTree

cdef enum:
    CURSOR_ROWS = 64

cdef struct RunCursor:
    const uint8_t* block            # rows not yet in `rows`
    int64_t block_left              # bytes from block to the block's end
    int32_t index                   # position in rows
    int32_t count
    uint8_t* rows[CURSOR_ROWS]      # addresses in the reader's block
    uint64_t prefixes[CURSOR_ROWS]

@cython.final
cdef class RunMerger:
    cdef NormalizedKey _normalized_key
    cdef RowComparator _comparator
    cdef bint _ties
    cdef list _readers
    cdef LoserTree _tree
    cdef RunCursor* _cursors

    # The smallest row, or NULL at the end; valid until the next advance.
    cdef uint8_t* head(self) noexcept nogil
    # Take the smallest row away. 0; raises what reading a block raises.
    cdef int advance(self) except -1
    # Copy rows in order to target until the next one does not fit capacity bytes, row_limit is reached or no row is
    # left. rows[i] = address of the copy. Returns their count.
    cdef int64_t copy_rows(self, uint8_t* target, int64_t capacity, uint8_t** rows, int64_t row_limit) except -1

    cdef int _load(self, int32_t leaf) except -1
    cdef int _step(self) noexcept nogil
    cdef int _load_winner(self) except -1
    cdef int _require_block(self, int status) except -1
