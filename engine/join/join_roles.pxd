# JoinRoles: everything of a join that depends on which side is built.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.join.replicated_hashes cimport ReplicatedHashes
from engine.join.tagged_table cimport TaggedTable
from engine.join.join_side cimport JoinSide
from engine.join.match_output cimport MatchOutput
from engine.join.pair_filter cimport PairFilter
from engine.join.probe_matches cimport Emits
from engine.memory.page_pool cimport PagePool


@cython.final
cdef class JoinRoles:
    cdef JoinSide build
    cdef JoinSide probe
    cdef bint build_is_left
    cdef Emits emits
    cdef TaggedTable table
    cdef MatchOutput output
    cdef PairFilter condition           # None: equal keys are enough
    cdef ReplicatedHashes probe_copies        # None: no probe row is a copy
    cdef PagePool _pool

    # Whether build rows carry the matched bit: such a table belongs to one join.
    cdef bint marks_build(self) noexcept
    # Whether one build row of each key is enough: nobody asks for more than its presence.
    cdef bint asks_for_presence(self) noexcept
    # Whether build rows may be kept once that differ in their key alone: nobody asks a build row for its key.
    cdef bint may_be_alike(self) noexcept
    # Keep the columns of alike rows as Arrow arrays.
    cdef int keep_alike(self) except -1
    # Keep the columns of a small build side, all of it in the table, as Arrow arrays.
    cdef int keep_small_build(self, list partitions) except -1
    # Blocks that the build rows of a pair would make, a little pessimistic. row_limit: rows of a block, or -1.
    cdef int64_t block_count(self, object pair, int64_t row_limit) except -1
    cdef tuple _source_of(self, bint is_build, int32_t column)
    cdef int _number_rows(self, list partitions, uint8_t** rows) except -1
