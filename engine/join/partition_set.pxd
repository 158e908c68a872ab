# PartitionSet: the partitions of one level of a hash join, and the scatter of rows into them.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.join.bloom_filter cimport BloomFilter
from engine.join.entry_pages cimport EntryCursor, EntryPages
from engine.join.hash_partition cimport HashPartition
from engine.join.join_side cimport JoinSide
from engine.join.table_choice cimport TableChoice
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch

cdef enum:
    CHUNK_ROWS = 32768          # rows handled at one time: size of all scratch arrays
    BRIEF_ROWS = 2048           # are done with in less time than it takes to give the GIL away and get it back

# Position of a walk over the resident rows of all partitions.
cdef struct ResidentCursor:
    int32_t partition
    EntryCursor entries


@cython.final
cdef class PartitionSet:
    cdef JoinSide _build
    cdef JoinSide _probe
    cdef PagePool _pool
    cdef object _space
    cdef readonly int32_t fan_out
    cdef readonly uint32_t level
    cdef readonly list partitions        # fan_out HashPartitions, then one for build rows with null keys
    cdef EntryPages** _entries           # their structs
    cdef int64_t _row_limit              # resident rows at most (debug.force-spill), or -1
    cdef int64_t _resident_rows
    cdef readonly int32_t spilled_count
    cdef BloomFilter filter              # hashes of spilled build rows
    cdef uint8_t* _filtered              # 1: the filter has all rows of this partition
    cdef const uint64_t* _build_hashes   # of the build rows being scattered; NULL: they are probe rows
    cdef uint32_t* _sizes                # scratch of one chunk
    cdef uint8_t** _targets
    cdef TableChoice _early              # takes rows as they come; None: in fill
    cdef bint _is_filled                 # a table has taken the rows as they came
    cdef TableChoice _seeing             # looks at the keys of build rows as they come, from then on
    cdef int32_t* _parts
    cdef uint64_t* _hashes

    # Let a table take build rows as they come, if it can; the same tables are then given to fill.
    cdef int fill_early(self, TableChoice tables) except -1
    # Whether a spilled partition may have a build row with this hash.
    cdef bint may_match(self, int32_t partition, uint64_t hash) noexcept nogil
    # Build rows start..start+count of a batch (count <= CHUNK_ROWS). null_flags: NULL, or rows with 1 are kept apart.
    cdef int add_batch(self, ArrowBatch batch, int64_t start, int64_t count, const uint64_t* hashes,
                       const uint8_t* null_flags) except -1
    # The same with binary rows.
    cdef int add_rows(self, uint8_t** rows, int64_t count, const uint64_t* hashes, const uint8_t* null_flags) except -1
    # Choose a table; spills until table and rows fit.
    cdef int end_build(self, TableChoice tables) except -1
    # Fill the table with the resident rows.
    cdef int fill(self, TableChoice tables) except -1
    # Up to capacity of the resident build rows that have a key, from the cursor on; 0 at the end.
    cdef int64_t next_resident(self, ResidentCursor* cursor, uint8_t** rows, int64_t capacity) noexcept nogil
    # Probe rows of spilled partitions, all rows of the batch (at most CHUNK_ROWS).
    cdef int add_probe_batch(self, ArrowBatch batch, const uint64_t* hashes) except -1
    # The same with binary rows.
    cdef int add_probe_rows(self, uint8_t** rows, int64_t count, const uint64_t* hashes) except -1
    cdef int finish_probe(self) except -1
    # SpilledPairs of the spilled partitions.
    cdef list pairs(self, bint is_reversed)
    cdef int _reserve(self, TableChoice tables) except -1
    cdef void _fill(self, TableChoice tables) noexcept nogil
    cdef int release(self) except -1

    cdef int _insert_early(self, int64_t begin, int64_t end) except -1
    cdef int _give_up_early(self) except -1
    cdef int _see_no_more(self) except -1
    cdef void _part_rows(self, uint8_t** rows, int64_t count, const uint64_t* hashes,
                         const uint8_t* null_flags) noexcept nogil
    cdef int64_t _place_run(self, int64_t begin, int64_t count) noexcept nogil
    cdef int _scatter(self, JoinSide side, ArrowBatch batch, int64_t start, uint8_t** rows, int64_t count) except -1
    cdef void _write_run(self, JoinSide side, ArrowBatch batch, int64_t start, uint8_t** rows, int64_t begin,
                         int64_t end) noexcept nogil
    cdef int _add_large(self, JoinSide side, ArrowBatch batch, int64_t start, uint8_t** rows, int64_t index) except -1
    cdef int _make_room(self, int32_t partition) except -1
    cdef bint _spill_largest(self, int32_t asking) except -1
    cdef int _spill(self, int32_t index) except -1
    cdef void _keep_hashes(self, EntryPages* entries) noexcept nogil
    cdef void _filter_kept(self, const EntryPages* entries) noexcept nogil
    cdef object _too_few_pages(self)
    cdef bint _write_buffers_are_there(self) noexcept nogil
