# SortedRun: rows in order, in memory or in a spill file; RunWriter writes one with its sparse index.
#
#     in memory    RecordSorter: index entries in order ──► rows in pages
#     on disk      .. │ block 0 │ block 1 │ ... │ index │ ..     in memory: where block 0 is
#                     ▲ mark                    ▲ the next mark
#
#     index       RunIndexEntry of block 0, and of one block in every step behind it, in one block of the same file
#
# A row's number (0-based) is the same in memory and on disk, so a reader that began in memory goes on in the file.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.iomanager.spill_file cimport BlockPlace
from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.sort.key_bytes cimport KEY_BYTES_MAX, KeyBytes
from engine.sort.record_sorter cimport RecordSorter

# The first row of a block: its number, the bytes of rows before it, where its block is, its key bytes.
cdef struct RunIndexEntry:
    int64_t first_row
    int64_t first_byte
    BlockPlace place
    int64_t key_size
    uint8_t[KEY_BYTES_MAX] key

@cython.final
cdef class SortedRun:
    cdef readonly int64_t row_count
    cdef readonly int64_t row_bytes         # of all rows in binary form
    cdef RecordSorter memory                # None: on disk
    cdef object file                        # SpillFile, which other runs may lie in too; None: in memory, or not ended
    cdef int64_t _mark                      # of its first block in its file; the next one is of its index
    cdef int64_t _index_count               # entries of the index, 0: there is none
    cdef int32_t read_ahead                 # blocks that are read before they are asked for
    cdef object partition                   # id of the result partition that it is a part of, or None
    cdef int64_t producer                   # subtask whose rows it has: of equal keys those of lower ones come first
    cdef bint _is_deleted
    cdef int64_t largest_row                # bytes, of those that are larger than a block, on disk
    cdef int64_t block_count                # of rows
    cdef dict _bounds                       # bound -> number of the first row that is not below it; None: none yet

    # The number of the first row whose key is not below the bound.
    cdef int64_t row_of_bound(self, bytes bound, KeyBytes key_bytes) except -1
    # Say in an error of reading the run which result partition has to be produced again.
    cdef int blame(self, error) except -1
    # A reader of the block with a row, or of one before it, up to the run's end; and the number of its first row.
    cdef SpillReader reader_of_row(self, int64_t row, int64_t* first_row)
    # Become a run on disk: other holds the same rows, and is not to be used any more.
    cdef int take_file(self, SortedRun other) except -1
    cdef int64_t _search_memory(self, bytes bound, KeyBytes key_bytes) except -1
    cdef int64_t _search_file(self, bytes bound, KeyBytes key_bytes) except -1
    cdef bytes _index(self)
    cdef SpillReader _reader(self, int32_t prefetch, place)
    cdef int64_t _rows_below(self, SpillReader reader, bytes bound, KeyBytes key_bytes) except -1

cdef SortedRun run_in_memory(RecordSorter memory, int64_t row_count)

@cython.final
cdef class RunWriter:
    cdef readonly int64_t row_count
    cdef SpillWriter _writer
    cdef KeyBytes _key_bytes
    cdef SortedRun _run
    cdef int64_t _bytes_before              # of other runs in the file
    cdef int64_t _blocks_before
    cdef RunIndexEntry* _entries            # memory of the writer's buffers, in which its thread notes places; or NULL
    cdef int64_t _entry_count
    cdef int64_t _step_bytes                # of rows, at least, between two entries
    cdef int64_t _next_entry_byte

    # Append one row. Raises what the SpillWriter raises.
    cdef int write(self, const uint8_t* row) except -1 nogil
    cdef int _begin_block(self, const uint8_t* row) except -1 nogil
    cdef void _thin_out(self) noexcept nogil
    cdef int _write_index(self) except -1
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
