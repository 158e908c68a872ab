# HashJoin: fields and the steps between kernels (interface in hash_join.pyx).

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t

from engine.join.build_blocks cimport BuildBlocks
from engine.join.build_input cimport BuildInput
from engine.join.join_roles cimport JoinRoles
from engine.join.matched_rows cimport MatchedRows
from engine.join.partition_set cimport PartitionSet
from engine.join.probe_matches cimport ProbeMatches
from engine.join.recent_rows cimport RecentRows
from engine.join.row_stream cimport RowStream
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch


@cython.final
cdef class HashJoin:
    cdef readonly int64_t probe_rows
    cdef readonly int64_t partitions_spilled     # on all levels
    cdef readonly int64_t repartition_count      # pairs that were scattered again
    cdef readonly int64_t block_wise_count       # pairs that took more than one pass
    cdef readonly int64_t block_pass_count       # passes over probe files
    cdef readonly int32_t level_max              # deepest level of partitions
    cdef readonly int64_t reversed_count         # pairs whose probe file was built
    cdef readonly int64_t probe_rows_spilled     # on all levels
    cdef readonly int64_t probe_rows_filtered    # answered by a Bloom filter instead
    cdef readonly PagePool pool
    cdef readonly object spec                    # JoinSpec
    cdef JoinRoles _roles                        # as the pair in work has them
    cdef JoinRoles _resting_roles                # the reverse of them, once it was needed
    cdef bint _is_reversed                       # whether _roles are not those of the beginning
    cdef object _space
    cdef ProbeMatches _matches
    cdef PartitionSet _level                     # the partitions in work; None while a pair is joined block-wise,
                                                 # and of a borrowed build side
    cdef BuildBlocks _blocks                     # the block-wise pair in work
    cdef MatchedRows _matched
    cdef RowStream _stream
    cdef BuildInput _input                       # rows on their way into the level
    cdef bint _has_copies
    cdef bint _null_aware
    cdef bint _drops_null_probe
    cdef int64_t _probe_null_keys
    cdef bint _build_finished
    cdef bint _closed
    cdef int64_t _row_limit

    # What is known of the build side besides its rows.
    cdef int _count_build_like(self, HashJoin owner) except -1
    cdef bint _returns_nothing(self) noexcept
    cdef bint _finds_numbers(self, ArrowBatch batch) noexcept
    cdef object _of_numbers(self, ArrowBatch batch, int64_t start, int64_t count)
    cdef int _look_up(self, ArrowBatch batch, int64_t start, int64_t count, bint emit_unmatched) except -1
    cdef bint _any_spilled(self) noexcept nogil
    cdef void _choose(self, ProbeMatches matches, int64_t null_count) noexcept nogil
    cdef int _spill_probe_rows(self, ArrowBatch batch) except -1
    cdef int _take_roles(self, object pair) except -1
    cdef RecentRows _recent_rows(self)
    cdef PartitionSet _new_level(self, int32_t fan_out, uint32_t level)
