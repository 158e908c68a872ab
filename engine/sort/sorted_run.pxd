# SortedRun: rows in order, in memory or in a spill file; RunWriter writes one with its sparse index.
#
#     in memory    RecordSorter: index entries in order ──► rows in pages
#     on disk      .. │ block 0 │ block 1 │ block 2 │ ..     and in memory for each block:
#                    first row's number; for every so many of them, the first row's key bytes
#
# A row's number (0-based) is the same in memory and on disk, so a reader that began in memory goes on in the file.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.sort.key_bytes cimport KeyBytes
from engine.sort.record_sorter cimport RecordSorter

@cython.final
cdef class SortedRun:
    cdef readonly int64_t row_count
    cdef readonly int64_t row_bytes         # of all rows in binary form
    cdef RecordSorter memory                # None: on disk
    cdef object file                        # SpillFile, which other runs may lie in too; None: in memory, or not ended
    cdef int64_t first_block                # of the run in its file
    cdef int32_t read_ahead                 # blocks that are read before they are asked for
    cdef object partition                   # id of the result partition that it is a part of, or None
    cdef bint _is_deleted
    cdef int64_t largest_row                # bytes, of those that are larger than a block, on disk
    cdef int64_t block_count
    cdef int64_t _capacity
    cdef int64_t* first_rows                # [block_count]
    cdef int64_t _key_step                  # blocks for which one key is kept
    cdef int64_t _key_count                 # block_count / _key_step, rounded up
    cdef int64_t _key_capacity
    cdef uint8_t* _keys                     # [_key_count * KEY_BYTES_MAX]
    cdef uint8_t* _key_sizes                # [_key_count]
    cdef dict _bounds                       # bound -> number of the first row that is not below it

    # The number of the first row whose key is not below the bound.
    cdef int64_t row_of_bound(self, bytes bound, KeyBytes key_bytes) except -1
    # Say in an error of reading the run which result partition has to be produced again.
    cdef int blame(self, error) except -1
    # The block in which a row lies.
    cdef int64_t block_of_row(self, int64_t row) noexcept nogil
    # A reader of blocks first <= number < end of the run.
    cdef SpillReader reader(self, int64_t first, int64_t end)
    # Become a run on disk: other holds the same rows, and is not to be used any more.
    cdef int take_file(self, SortedRun other) except -1
    cdef int64_t _search_memory(self, bytes bound, KeyBytes key_bytes) except -1
    cdef int64_t _search_file(self, bytes bound, KeyBytes key_bytes) except -1
    cdef int64_t _rows_below(self, int64_t block, bytes bound, KeyBytes key_bytes, int64_t limit) except -1
    # Whether add_key comes before the next add_block.
    cdef bint next_block_has_key(self) noexcept nogil
    cdef int add_block(self, int64_t first_row) except -1 nogil
    cdef int add_key(self, const uint8_t* key, int32_t key_size) except -1 nogil

cdef SortedRun run_in_memory(RecordSorter memory, int64_t row_count)

@cython.final
cdef class RunWriter:
    cdef readonly int64_t row_count
    cdef SpillWriter _writer
    cdef KeyBytes _key_bytes
    cdef SortedRun _run
    cdef int64_t _bytes_before              # of other runs in the file

    # Append one row. Raises what the SpillWriter raises.
    cdef int write(self, const uint8_t* row) except -1 nogil
    # End the run; it can be read when its file, which may take more runs, has been ended and given to it.
    cdef SortedRun end(self)
    # End the run and the file.
    cdef SortedRun finish(self)

# Rows begin <= number < end of a run.
@cython.final
cdef class RunSlice:
    cdef SortedRun run
    cdef int64_t begin
    cdef int64_t end

cdef RunSlice whole_run(SortedRun run)
