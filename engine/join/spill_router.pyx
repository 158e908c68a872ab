"""SpillRouter: probe rows whose partition is spilled go from an exchange's page to that partition as they are.

    router = SpillRouter(join)            after finish_build(), where partitions are spilled
    gate ─► pages ─► router ─┬─► partition_set: copied to the partition's page, from there to its file
                             └─► decoded ─► join.probe(batch)

Without it such a row is decoded to Arrow, taken by index and encoded again, which costs more than the rest of what is
done with it. Rows whose partition is in memory, and those with a null key, are left to ``HashJoin.probe``.

Invariants: a row is either taken, or left, or dropped because a Bloom filter says that it has no match and no output
needs it for its own sake.
Thread: that of the join, while none of its iterators is in use.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.bloom_filter cimport EXPECTED_ROWS
from engine.join.hash_join cimport HashJoin
from engine.join.partition_set cimport BRIEF_ROWS, CHUNK_ROWS, PartitionSet
from engine.records.hashing cimport partition_of_hash
from engine.records.row_check cimport check_rows
from engine.records.row_codec cimport row_size
from engine.records.row_router cimport RowRouter

from engine.join.join_phase import JoinPhase


@cython.final
cdef class SpillRouter(RowRouter):
    """Takes probe rows of spilled partitions for a join whose build side is complete."""

    def __cinit__(self, HashJoin join not None):
        if join.phase is not JoinPhase.PROBING or join._level is None:
            raise ValueError("only a join with a complete build side of its own has spilled partitions")
        self._join = join

    cdef int64_t route(self, uint8_t** rows, int64_t count) except -1:
        cdef int64_t begin = 0
        cdef int64_t kept = 0
        cdef int64_t chunk
        if self.drops_all:
            return 0
        check_rows(self._join._roles.probe.codec, rows, count)
        while begin < count:
            chunk = min(<int64_t>CHUNK_ROWS, count - begin)
            kept += self._sift_chunk(rows + begin, chunk, rows + kept)
            begin += chunk
        return kept

    cdef int64_t _sift_chunk(self, uint8_t** rows, int64_t count, uint8_t** kept) except -1:
        cdef HashJoin join = self._join
        cdef PartitionSet level = join._level
        cdef int64_t left
        cdef int64_t waiting = 0
        if count <= BRIEF_ROWS:
            left = self._choose(join, level, rows, count, kept, &waiting)
        else:
            with nogil:
                left = self._choose(join, level, rows, count, kept, &waiting)
        join.probe_rows += count - left
        join._prober.rows_spilled += waiting
        self.row_count += count - left
        level.add_probe_rows(join._input.rows, waiting, join._input.hashes)
        return left

    cdef int64_t _choose(self, HashJoin join, PartitionSet level, uint8_t** rows, int64_t count, uint8_t** kept,
                         int64_t* waiting) noexcept nogil:
        cdef bint keeps_unmatched = join._roles.emits.unmatched_probe
        cdef uint64_t asked_hashes[EXPECTED_ROWS]
        cdef int64_t taken = 0
        cdef int64_t left = 0
        cdef int64_t begin = 0
        cdef int64_t end, index, asked, null_count
        cdef int32_t partition
        cdef uint8_t* row
        join._roles.probe.hash_rows(rows, count, join._input.hashes)
        null_count = join._roles.probe.null_keys_of_rows(rows, count, join._input.null_flags)
        while begin < count:
            end = min(begin + <int64_t>EXPECTED_ROWS, count)
            asked = 0
            for index in range(begin, end):
                partition = partition_of_hash(join._input.hashes[index], level.level, level.fan_out)
                asked_hashes[asked] = join._input.hashes[index]
                asked += level._entries[partition].spilled
            level.filter.expect(asked_hashes, asked)
            for index in range(begin, end):
                row = rows[index]
                partition = partition_of_hash(join._input.hashes[index], level.level, level.fan_out)
                if (null_count and join._input.null_flags[index]) or not level._entries[partition].spilled:
                    kept[left] = row
                    left += 1
                    continue
                if not level.may_match(partition, join._input.hashes[index]):
                    if keeps_unmatched:
                        kept[left] = row
                        left += 1
                    else:
                        join._prober.rows_filtered += 1
                        self.size_bytes += row_size(row)
                    continue
                join._input.rows[taken] = row
                join._input.hashes[taken] = join._input.hashes[index]
                self.size_bytes += row_size(row)
                taken += 1
            begin = end
        waiting[0] = taken
        return left
