# HashJoin: fields and the steps between kernels (interface in hash_join.pyx).

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t

from engine.join.batch_prober cimport BatchProber
from engine.join.build_blocks cimport BuildBlocks
from engine.join.build_input cimport BuildInput
from engine.join.join_roles cimport JoinRoles
from engine.join.partition_set cimport PartitionSet
from engine.join.recent_rows cimport RecentRows
from engine.join.row_stream cimport RowStream
from engine.memory.page_pool cimport PagePool


@cython.final
cdef class HashJoin:
    cdef readonly int64_t probe_rows
    cdef readonly int64_t partitions_spilled     # on all levels
    cdef readonly int64_t repartition_count      # pairs that were scattered again
    cdef readonly int64_t block_wise_count       # pairs that took more than one pass
    cdef readonly int64_t block_pass_count       # passes over probe files
    cdef readonly int32_t level_max              # deepest level of partitions
    cdef readonly int64_t reversed_count         # pairs whose probe file was built
    cdef readonly PagePool pool
    cdef readonly object spec                    # JoinSpec
    cdef object _phase                           # JoinPhase
    cdef JoinRoles _roles                        # as the pair in work has them
    cdef JoinRoles _resting_roles                # the reverse of them, once it was needed
    cdef object _space
    cdef object _recursion                       # Recursion of SpilledPairs
    cdef BatchProber _prober
    cdef PartitionSet _level                     # the partitions in work; None while a pair is joined block-wise,
                                                 # and of a borrowed build side
    cdef BuildBlocks _blocks                     # the block-wise pair in work
    cdef RowStream _stream
    cdef BuildInput _input                       # rows on their way into the level
    cdef bint _null_aware
    cdef bint _right_is_probe                    # at first
    cdef int64_t _row_limit

    # RuntimeError for a call in another phase than its own.
    cdef int _expect(self, object phase, str call) except -1
    cdef int _advance(self, object phase) except -1
    # The build side is complete; what is known of it besides its rows is known as of the owner's.
    cdef int _begin_probing(self, HashJoin owner) except -1
    cdef int _count_build_like(self, HashJoin owner) except -1
    cdef bint _returns_nothing(self) noexcept
    cdef int _begin_level(self, int32_t fan_out, uint32_t level) except -1
    cdef int _drop_level(self) except -1
    cdef int _take_roles(self, object pair) except -1
    cdef bint _is_reversed(self) noexcept
    cdef RecentRows _recent_rows(self)
