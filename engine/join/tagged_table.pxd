# TaggedTable: a directory of tagged pointers over rows that lie in pages.
#
#     cell = 63..48 tag (low 16 bits of the hash)   47..0 row pointer        0: empty
#     the directory is an array of pages of cells; linear probing runs over page ends and wraps at the end

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.join.dictionary_table cimport DictionaryTable
from engine.join.replicated_hashes cimport ReplicatedHashes
from engine.join.dense_table cimport DenseTable
from engine.join.entry_pages cimport EntryPages
from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport KeyEquality
from engine.records.hashing cimport rehash

cdef enum:
    LOOKUP_BLOCK = 1024         # rows looked up at one time: their prefetched lines stay in the cache

cdef extern from *:
    """
    #define DREY_CELL_POINTER 0x0000FFFFFFFFFFFFULL
    #define DREY_SCALE(hash, cells) ((((hash) >> 32) * (uint64_t)(cells)) >> 32)
    """
    const uint64_t CELL_POINTER "DREY_CELL_POINTER"
    uint64_t scale "DREY_SCALE" (uint64_t hash, uint64_t cells) noexcept nogil


@cython.final
cdef class TaggedTable:
    cdef PagePool _pool
    cdef JoinSide _build
    cdef KeyEquality _build_equality     # build rows among themselves
    cdef KeyEquality _probe_equality     # probe batch with build rows
    cdef bint _hash_is_key               # equal hashes are equal keys
    cdef DenseTable dense            # in place of the pages below, where it is open
    cdef DictionaryTable alike                 # in place of rows and all that, where is_alike
    cdef bint is_alike
    cdef ReplicatedHashes copies               # rows of these keys are inserted as matched; None: there are none
    cdef uint64_t** _pages
    cdef int64_t _page_count
    cdef bint _is_borrowed               # the pages are another table's
    cdef int32_t _page_shift
    cdef uint64_t _page_mask
    cdef uint64_t _cell_count
    cdef readonly int64_t row_count
    cdef readonly int64_t key_count      # distinct keys
    cdef readonly int64_t max_row_size   # bytes of the largest row
    cdef int64_t* _positions             # scratch of one lookup block
    cdef int64_t* _batch_rows
    cdef uint64_t* _cursors
    cdef uint8_t** _candidates
    cdef uint8_t* _flags

    # Whether no two rows share a key: a probe row then matches at most once.
    cdef bint is_unique(self) noexcept nogil
    # Pages of a directory for that many rows: at the least, and as wished.
    cdef int64_t pages_needed(self, int64_t rows) noexcept nogil
    cdef int64_t pages_wished(self, int64_t rows) noexcept nogil
    # Take the directory's pages for rows (up to pages_wished). STATUS_FULL when not even pages_needed are there.
    cdef int reserve(self, int64_t rows) noexcept nogil
    # The same for the rows of some partitions, found by the numbers that are their keys. STATUS_FULL: not these rows.
    cdef int reserve_dense(self, EntryPages** partitions, int32_t partition_count, int64_t rows) noexcept nogil
    # Insert rows as they come, before anything is reserved. False: clear() comes next, and links that are not zero.
    cdef bint insert_early(self, uint8_t** rows, int64_t count) noexcept nogil
    # Have what this one has taken, all build rows, as rows of this table, which gives them back.
    cdef int take_alike(self, DictionaryTable alike) except -1
    # Whether insert and lookup read hashes.
    cdef bint needs_hashes(self) noexcept nogil
    # Rows must have links (entry_pages.pxd) that are zero; count of all inserts <= rows of reserve.
    cdef void insert(self, uint8_t** rows, const uint64_t* hashes, int64_t count) noexcept nogil
    # heads[position] = first row with the key of batch row start + position, or NULL; for each of the positions.
    cdef void lookup(self, ArrowBatch batch, int64_t start, const int64_t* positions, int64_t count,
                     const uint64_t* hashes, uint8_t** heads) noexcept nogil
    cdef void clear(self) noexcept nogil
    # Look up in the rows of another table, which must stay as it is until clear().
    cdef int borrow(self, TaggedTable owner) except -1

    cdef int64_t _next_block(self, const int64_t* positions, int64_t* begin, int64_t count,
                             const uint64_t* hashes) noexcept nogil
    cdef uint64_t* _cell(self, uint64_t index) noexcept nogil
    cdef uint64_t _next(self, uint64_t index) noexcept nogil
    cdef void _insert_row(self, uint8_t* row, uint64_t hash) noexcept nogil
    cdef int64_t _candidates_of(self, int64_t start, int64_t pending, const uint64_t* hashes,
                                uint8_t** heads) noexcept nogil
    cdef int64_t _accept(self, int64_t count, uint8_t** heads) noexcept nogil
