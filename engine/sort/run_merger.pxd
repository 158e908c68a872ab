# RunMerger: rows of several sorted runs in one order.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey, Ties
from engine.records.row_codec cimport RowCodec
from engine.records.row_combiner cimport RowCombiner
from engine.sort.loser_tree cimport LoserTree
from engine.sort.radix_sort cimport IndexEntry
from engine.sort.sorted_run cimport RunWriter

cdef enum:
    CURSOR_ROWS = 64

cdef struct RunCursor:
    const IndexEntry* entries       # run in memory: entries not yet in `rows`; NULL: on disk
    const uint8_t* block            # run on disk: rows not yet in `rows`
    int64_t block_left              # bytes from block to the block's end
    int64_t left                    # rows of the slice not yet in `rows`
    int32_t index                   # position in rows
    int32_t count
    uint8_t* rows[CURSOR_ROWS]      # addresses in pages, or in the reader's block
    uint64_t prefixes[CURSOR_ROWS]

@cython.final
cdef class RunMerger:
    cdef NormalizedKey _normalized_key
    cdef RowComparator _comparator
    cdef RowCodec _codec
    cdef RowCombiner _combiner      # None: rows of equal keys stay apart
    cdef const Ties* _ties             # of the normalized key
    cdef list _slices               # RunSlice of each leaf
    cdef list _readers              # SpillReader of each leaf on disk, None of those in memory
    cdef LoserTree _tree
    cdef RunCursor* _cursors
    cdef int64_t collected_bytes    # of the rows of the last collect
    cdef uint8_t* _group            # with a combiner: the row of the next group; what has its keys went into it
    cdef int64_t _group_capacity
    cdef int64_t _group_size        # bytes of it, 0: none
    cdef uint64_t _group_prefix
    cdef uint8_t* _spare            # memory for a row that is made anew
    cdef int64_t _spare_capacity
    cdef int _failure               # of combining

    # The smallest row, or NULL at the end; valid until the next advance.
    cdef uint8_t* head(self) noexcept nogil
    # Take the smallest row away. 0; raises what reading a block raises.
    cdef int advance(self) except -1
    # The addresses of rows in order, until row_limit or size_limit bytes (a first row may be larger) are reached, the
    # arena has no room or no row is left. Rows of runs in memory stay where they are, others are copied to the arena;
    # with a combiner all are, and each is complete. Returns their count.
    cdef int64_t collect(self, uint8_t** rows, int64_t row_limit, int64_t size_limit, uint8_t* arena,
                         int64_t arena_size) except -1
    # Whether any row is still to come from disk.
    cdef bint reads_disk(self) noexcept
    # Copy whole rows, complete ones with a combiner, while they fit and have no values outside. Returns their bytes; 0:
    # at the end or when there is not even one.
    cdef int64_t fill(self, uint8_t* target, int64_t room) except -1
    # The row that did not fit when collect or fill returned 0, NULL: at the end; valid until the next call.
    cdef uint8_t* waiting(self) noexcept nogil
    # Take that row away.
    cdef int drop_waiting(self) except -1
    # Write at most row_limit rows to a new run.
    cdef int write_to(self, RunWriter writer, int64_t row_limit) except -1
    # Go on in their files with runs that were in memory and are not any more.
    cdef int follow_to_disk(self) except -1

    cdef uint8_t* _next_row(self, int* status) noexcept nogil
    cdef int _take_row(self) noexcept nogil
    cdef int _complete_group(self) noexcept nogil
    cdef int _begin_group(self, const uint8_t* row) noexcept nogil
    cdef int _add_to_group(self, const uint8_t* row) noexcept nogil
    cdef int64_t _collect_combined(self, uint8_t** rows, int64_t row_limit, int64_t size_limit, uint8_t* arena,
                                   int64_t arena_size) except -1
    cdef int _open(self, int32_t leaf, int64_t begin) except -1
    cdef int _load(self, int32_t leaf) except -1
    cdef int _read(self, int32_t leaf) except -1
    cdef int _step(self) noexcept nogil
    cdef int _go_on(self, int status) except -1
