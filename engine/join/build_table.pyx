"""BuildTable: finds the build rows of probe rows; the interface of all kinds of tables.

    reserve(partitions, n, rows) ─► insert(rows, hashes, count) ... ─► probe(batch, ...) ... ─► release()

    TaggedTable       any keys: a directory of tagged pointers to rows in partitions
    DenseTable        one key of numbers close together: a cell for each number points to the first row (perfect hash)
    DictionaryTable   rows that differ in such a key alone: a code for each number, each distinct row once

Which kind a build side gets is decided by a ``TableChoice``, nowhere else. A call is for a block of rows; loops over
rows are inside of it, in the table's own module.

Invariants: ``probe`` and ``find_indices`` write nothing of the table but its scratch arrays: a table is probed by one
thread, and another table may borrow its pages for another thread.

Held by: tests/join/test_table_choice.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.entry_pages cimport EntryPages
from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.memory.status cimport STATUS_FULL
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport row_size


cdef class BuildTable:
    """One table of a join's build side; the methods are kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, JoinSide build not None, JoinSide probe not None):
        self._pool = pool

    cdef int reserve(self, EntryPages** partitions, int32_t partition_count, int64_t rows) noexcept nogil:
        return STATUS_FULL

    cdef int64_t insert(self, uint8_t** rows, const uint64_t* hashes, int64_t count) noexcept nogil:
        return 0

    cdef void probe(self, ArrowBatch batch, int64_t start, const int64_t* positions, int64_t count,
                    const uint64_t* hashes, uint8_t** heads) noexcept nogil:
        cdef int64_t index
        for index in range(count):
            heads[positions[index]] = NULL

    cdef int64_t distinct_rows(self, uint8_t*** rows) noexcept nogil:
        return 0

    cdef int64_t find_indices(self, ArrowBatch batch, int64_t start, int64_t count, int32_t* indices) noexcept nogil:
        return 0

    cdef int borrow(self, BuildTable owner) except -1:
        raise NotImplementedError(f"{type(self).__name__} is no table that borrows")

    cdef void release(self) noexcept nogil:
        self._forget_counts()

    cdef void _count_rows(self, uint8_t** rows, int64_t count) noexcept nogil:
        cdef int64_t position
        for position in range(count):
            self.max_row_size = max(self.max_row_size, <int64_t>row_size(rows[position]))
        self.row_count += count

    cdef void _count_like(self, BuildTable owner) noexcept nogil:
        self.row_count = owner.row_count
        self.key_count = owner.key_count
        self.max_row_size = owner.max_row_size

    cdef void _forget_counts(self) noexcept nogil:
        self.row_count = 0
        self.key_count = 0
        self.max_row_size = 0
