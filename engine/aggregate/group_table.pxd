# GroupTable: find or insert the group of every row of a batch, update its states.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.accumulators.few_groups cimport FewGroups
from engine.accumulators.state_kernels cimport OP_FIRST, OP_LAST, StateField
from engine.aggregate.dense_groups cimport DenseGroups
from engine.aggregate.group_directory cimport GroupDirectory
from engine.aggregate.group_input cimport GroupInput
from engine.aggregate.group_store cimport GroupStore
from engine.aggregate.integer_keys cimport KeyRows
from engine.aggregate.text_key_cache cimport TextKeyCache
from engine.aggregate.value_states cimport ValueScan
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport KeyEquality
from engine.records.hashing cimport partition_of_hash
from engine.records.row_codec cimport RowCodec

cdef enum:
    GROUP_STATES = 16           # offset of the first state

@cython.final
cdef class GroupTable:
    cdef PagePool _pool
    cdef RowCodec _codec                    # of the key columns
    cdef KeyEquality _equality
    cdef int32_t _key_count
    cdef int32_t* _key_columns              # 0, 1, 2 ...
    cdef KeyRows _key_rows                  # of a chunk, where keys are a few integers
    cdef TextKeyCache _recent               # of keys that are one text
    cdef DenseGroups _dense                 # of keys of few values
    cdef FewGroups* _few                    # rows of a block whose groups are few
    cdef StateField* fields
    cdef readonly int32_t field_count
    cdef int32_t key_offset                 # of the key row from the group's start
    cdef uint8_t* _initial                  # [key_offset - GROUP_STATES] states of a new group
    cdef list _overflow_texts
    cdef ValueScan* _scans                  # [_scan_count] one for each state of variable size
    cdef int32_t _scan_count
    cdef bint _has_order                    # some state is FIRST or LAST
    cdef GroupStore* stores
    cdef readonly int32_t store_count       # 1, or partition_count
    cdef readonly int32_t partition_count
    cdef readonly int32_t level
    cdef readonly int64_t group_count
    cdef readonly int64_t groups_made       # since the table exists
    cdef int64_t _group_limit               # full at so many groups, whatever the memory
    cdef int64_t _room                      # full at so many groups, with the directory as it is
    cdef GroupDirectory _directory
    cdef readonly bint frozen
    cdef bint _sealed                       # frozen, and a group has been refused: takes no new one until the reset
    cdef object _owner                      # of wide values, None: they lie in the table
    cdef void* _scratch
    cdef uint64_t* _hashes
    cdef uint8_t** _groups
    cdef uint8_t** _targets
    cdef uint8_t** _candidate_keys
    cdef int64_t* _positions
    cdef int64_t* _candidate_rows
    cdef uint32_t* _sizes
    cdef int32_t* _pending
    cdef int32_t* _candidates
    cdef int32_t* _inserted
    cdef uint8_t* _flags

    # The spill partition of a hash on this level.
    cdef inline int32_t partition_of(self, uint64_t hash) noexcept nogil:
        return partition_of_hash(hash, self.level, self.partition_count)

    # Whether rows were put into a group: one of a row that found no room may have none. Known only with FIRST or LAST.
    cdef inline bint has_rows(self, const uint8_t* group) noexcept nogil:
        cdef int32_t index
        for index in range(self.field_count if self._has_order else 0):
            if (self.fields[index].operation in (OP_FIRST, OP_LAST)) and group[self.fields[index].flag] == 0:
                return False
        return True

    cdef int _lay_out(self, states, list operations) except -1
    cdef int _allocate_scratch(self) except -1
    cdef int64_t _locate_global(self, int64_t count, bint reserved) noexcept nogil
    cdef int64_t _locate(self, GroupInput opened, int64_t start, int64_t count, bint reserved) noexcept nogil
    cdef int64_t _locate_pending(self, ArrowBatch keys, int64_t start, int64_t count, int64_t pending_count,
                                 bint reserved) noexcept nogil
    cdef int64_t _locate_integers(self, ArrowBatch keys, int64_t start, int64_t count, bint reserved) noexcept nogil
    cdef void _encode_inserted(self, ArrowBatch keys, int64_t start, int64_t inserted_count) noexcept nogil
    cdef uint8_t* _new_group(self, uint64_t hash, int64_t key_size, bint reserved) noexcept nogil
    cdef inline GroupStore* _store_of(self, uint64_t hash) noexcept nogil
    cdef int64_t _update_values(self, GroupInput opened, int64_t start, int64_t count, bint reserved) noexcept nogil
    cdef int64_t _probe(self, int64_t start, int64_t count, int64_t pending_count, bint reserved,
                        int64_t* inserted_count, int64_t* candidate_count) noexcept nogil
    cdef int64_t _add_chunk(self, GroupInput opened, int64_t start, int64_t count, bint reserved,
                            int32_t* failed) noexcept nogil
    cdef int64_t _chunk_rows(self) noexcept nogil
