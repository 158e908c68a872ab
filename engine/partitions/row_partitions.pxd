# RowPartitions: rows parted by the hash of their keys, in pages of the pool and, beyond them, in files.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.iomanager.spill_writer cimport SpillWriter
from engine.memory.page_pool cimport PagePool
from engine.partitions.row_page cimport RowPage
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec

# The rows of one partition; all pages but the last are full.
cdef struct RowPart:
    RowPage* pages
    int64_t page_count
    int64_t page_capacity
    int64_t row_count           # in its pages
    bint is_spilled             # has a file: it keeps one page, which is written when it is full

# Rows of a batch that were looked at together; those before ``placed`` are in their parts.
cdef struct RowChunk:
    int64_t start               # row of the batch
    int64_t count
    int64_t placed

@cython.final
cdef class RowPartitions:
    cdef PagePool _pool
    cdef RowCodec _codec
    cdef object _files                  # PartitionFiles
    cdef object _when_full              # None: the largest partition is spilled
    cdef object _spill                  # of a partition before a large row, None: spill()
    cdef int32_t _key_count
    cdef int32_t* _key_columns
    cdef RowPart* _parts
    cdef readonly int32_t partition_count
    cdef readonly int32_t level
    cdef public int64_t page_limit      # pages to hold at one time
    cdef readonly int64_t pages_held
    cdef void* _scratch
    cdef uint64_t* _hashes
    cdef uint8_t** _targets
    cdef uint32_t* _sizes
    cdef int32_t* _places               # partition of each row of a chunk

    cdef bint _add_batch(self, ArrowBatch batch, RowChunk* chunk) except -1 nogil
    cdef void _look_at_batch(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil
    cdef int64_t _place(self, int64_t row, int64_t count) noexcept nogil
    cdef RowPage* _open_page(self, RowPart* part, int64_t size) noexcept nogil
    cdef bint _add_page(self, RowPart* part) noexcept nogil
    cdef int _encode(self, ArrowBatch batch, int64_t start, int64_t placed, int64_t stop) except -1 nogil
    # Copy rows of the codec's schema, which are sound and have their keys inside. Raises what spilling does.
    cdef int add_rows(self, uint8_t** rows, int64_t count) except -1
    cdef int _make_room(self) except -1
    cdef void _look_at(self, uint8_t** rows, int64_t count) noexcept nogil
    cdef int64_t _add_chunks(self, uint8_t** rows, int64_t row, int64_t count) noexcept nogil
    cdef int64_t _copy(self, uint8_t** rows, int64_t count) noexcept nogil
    cdef int _write_behind(self, int32_t partition, const uint8_t* row, int64_t size) except -1
    cdef bint _make_place(self, int64_t row) except -1
    cdef int _write_large(self, ArrowBatch batch, int64_t start, int64_t row) except -1
    cdef void _give_pages(self, RowPart* part, int64_t keep) noexcept nogil

# Rows of one partition that stayed in memory.
@cython.final
cdef class KeptRows:
    cdef PagePool _pool
    cdef RowCodec _codec
    cdef RowPage* _pages
    cdef int64_t _page_count
    cdef int64_t _page_index            # pages before it are given back
    cdef int64_t _next_index            # pages before it are in _rows
    cdef uint8_t** _rows
    cdef int64_t _found                 # rows in _rows
    cdef int64_t _given                 # of them, decoded
    cdef readonly int64_t row_count
    cdef readonly int64_t page_count    # at the beginning
    cdef readonly bint is_merged        # no two rows have the same keys

    cdef int _gather(self) except -1
    cdef int64_t _rows_of(self, const RowPage* page, uint8_t** rows, int64_t capacity) noexcept nogil
    cdef void _give_pages(self, int64_t end) noexcept nogil
