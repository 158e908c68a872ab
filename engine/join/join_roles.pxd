# JoinRoles: everything of a join that depends on which side is built.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.join.join_side cimport JoinSide
from engine.join.match_output cimport MatchOutput
from engine.join.pair_filter cimport PairFilter
from engine.join.partition_set cimport PartitionSet
from engine.join.probe_matches cimport Emits
from engine.join.replicated_hashes cimport ReplicatedHashes
from engine.join.table_choice cimport TableChoice
from engine.memory.page_pool cimport PagePool


@cython.final
cdef class JoinRoles:
    cdef JoinSide build
    cdef JoinSide probe
    cdef bint build_is_left
    cdef Emits emits
    cdef TableChoice tables
    cdef MatchOutput output
    cdef PairFilter condition           # None: equal keys are enough
    cdef ReplicatedHashes probe_copies        # None: no probe row is a copy
    cdef PagePool _pool

    # Whether build rows carry the matched bit: such a table belongs to one join.
    cdef bint marks_build(self) noexcept
    # Whether one build row of each key is enough: only its presence is needed.
    cdef bint asks_for_presence(self) noexcept
    # Whether the build side may be dictionary-encoded: no row carries a matched bit, none is asked for its key.
    cdef bint may_be_dictionary(self) noexcept
    # Keep the columns of build rows as Arrow arrays, where these are few: the table's own rows, or all of the
    # level, of which no partition is spilled.
    cdef int keep_columns(self, PartitionSet level) except -1
    # Blocks that the build rows of a pair would make, a little pessimistic. row_limit: rows of a block, or -1.
    cdef int64_t block_count(self, object pair, int64_t row_limit) except -1
    cdef tuple _source_of(self, bint is_build, int32_t column)
    cdef int _keep_rows(self, uint8_t** rows, int64_t count) except -1
    cdef int _number_rows(self, PartitionSet level, uint8_t** rows, int64_t capacity) except -1
