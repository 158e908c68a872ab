# BuildTable: finds the build rows of probe rows; what every kind of table does.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.entry_pages cimport EntryPages
from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch

cdef enum TableKind:
    TABLE_TAGGED = 0
    TABLE_DENSE = 1
    TABLE_DICTIONARY = 2


cdef class BuildTable:
    cdef PagePool _pool
    cdef TableKind kind
    cdef bint needs_hashes               # insert and probe read hashes
    cdef readonly int64_t row_count
    cdef readonly int64_t key_count      # distinct keys
    cdef readonly int64_t max_row_size   # bytes of the largest row

    # Take the pages for so many rows, all of which lie in these partitions. STATUS_FULL: there are too few pages, or
    # this is no table for these rows.
    cdef int reserve(self, EntryPages** partitions, int32_t partition_count, int64_t rows) noexcept nogil
    # Insert rows, whose links are zero (entry_pages.pxd). Returns how many were taken; less than count: this is no
    # table for the next one.
    cdef int64_t insert(self, uint8_t** rows, const uint64_t* hashes, int64_t count) noexcept nogil
    # heads[position] = first row with the key of batch row start + position, or NULL; for each of the positions.
    cdef void probe(self, ArrowBatch batch, int64_t start, const int64_t* positions, int64_t count,
                    const uint64_t* hashes, uint8_t** heads) noexcept nogil
    # The rows that the table keeps itself, each for all that differ from it in their key alone; 0: rows lie in
    # partitions.
    cdef int64_t distinct_rows(self, uint8_t*** rows) noexcept nogil
    # Of a table with distinct rows: write which of them the batch rows from start on find, no key of which is null;
    # returns how many do before the first one that finds none.
    cdef int64_t find_indices(self, ArrowBatch batch, int64_t start, int64_t count, int32_t* indices) noexcept nogil
    # Read the pages of another table of the same kind, which must stay as it is until release().
    cdef int borrow(self, BuildTable owner) except -1
    # Forget all rows and give the pages back.
    cdef void release(self) noexcept nogil

    cdef void _count_rows(self, uint8_t** rows, int64_t count) noexcept nogil
    cdef void _count_like(self, BuildTable owner) noexcept nogil
    cdef void _forget_counts(self) noexcept nogil

# Whether no two rows share a key: a probe row then matches at most once.
cdef inline bint is_unique(BuildTable table) noexcept nogil:
    return table.key_count == table.row_count
