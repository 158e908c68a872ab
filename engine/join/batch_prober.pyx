"""BatchProber: looks the rows of a probe batch up in what is in memory, and gives their matches out.

    prober = BatchProber(spec, roles)           roles, level, matched: what it probes, set by the join
    for output in prober.join_batch(batch, emit_unmatched): ...

    chunk ─► hashes, null keys ─► choose ─┬─► table.probe ─► matches ─► (condition) ─► output
                                          ├─► its partition is spilled ─► probe file, unless a Bloom filter says no
                                          └─► no key: unmatched, or dropped
    a table of distinct rows, each chunk row finds one ─► their indices ─► output

Hashes are computed only where the table, a spilled partition or replicated keys ask for them.

Thread: one at a time.

Held by: tests/join/test_hash_join.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from engine.join.bloom_filter cimport EXPECTED_ROWS
from engine.join.build_table cimport TABLE_DICTIONARY, BuildTable, is_unique
from engine.join.join_roles cimport JoinRoles
from engine.join.match_output cimport index_array
from engine.join.matched_rows cimport recall_matches
from engine.join.partition_set cimport CHUNK_ROWS, PartitionSet
from engine.join.probe_matches cimport OUTPUT_ROWS, WHOLE_BATCH_BYTES, ProbeMatches
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.hashing cimport partition_of_hash
from engine.records.outside_keys cimport raise_failed_comparison


@cython.final
cdef class BatchProber:
    """The probe side of one hash join, for whatever is in memory."""

    def __cinit__(self, spec, JoinRoles roles not None):
        self.roles = roles
        self._has_copies = spec.replicated is not None
        self._matches = ProbeMatches()
        if spec.condition is not None:
            self._matches.reserve_candidates()

    cdef int end_passes(self) except -1:
        if self.matched is not None:
            self.matched.release()
            self.matched = None
            memset(self._matches.matched_before, 0, CHUNK_ROWS)
        return 0

    cdef int share_marks(self, PartitionSet level, turn) except -1:
        self._matches.is_shared = True
        self.level = level
        self.turn = None if level is None else turn
        return 0

    def join_batch(self, batch, bint emit_unmatched):
        """Yield the output of a probe batch; rows of spilled partitions go there."""
        cdef ArrowBatch arrow = ArrowBatch.open(batch)
        cdef ProbeMatches matches = self._matches
        cdef int64_t start, pairs
        self.roles.probe.codec.accept(arrow)
        for start in range(0, arrow.row_count, CHUNK_ROWS):
            if self._finds_indices(arrow):
                whole = self._of_indices(arrow, start, min(<int64_t>CHUNK_ROWS, arrow.row_count - start))
                if whole is not None:
                    yield whole
                    continue
            if self.turn is None:
                self._look_up(arrow, start, min(<int64_t>CHUNK_ROWS, arrow.row_count - start), emit_unmatched)
                if matches.spilled_count:
                    self._spill_rows(arrow)
            else:
                with self.turn:
                    self._look_up(arrow, start, min(<int64_t>CHUNK_ROWS, arrow.row_count - start), emit_unmatched)
                    if matches.spilled_count:
                        self._spill_rows(arrow)
            if self.roles.condition is not None:
                yield from self._confirmed(arrow)
                continue
            while not matches.is_through():
                with nogil:
                    pairs = matches.next_pairs()
                if pairs:
                    yield from self.roles.output.pieces(arrow, matches)

    # Whether rows that all find one may skip what is for those that do not, or find several.
    cdef bint _finds_indices(self, ArrowBatch batch) noexcept:
        cdef JoinRoles roles = self.roles
        return (roles.tables.table.kind == TABLE_DICTIONARY and roles.emits.pairs and roles.condition is None
                and not self._has_copies and roles.output.is_numbered() and batch.row_count <= 2 * CHUNK_ROWS
                and batch.columns[roles.probe.keys[0]].validity == NULL
                and roles.tables.table.max_row_size * OUTPUT_ROWS <= WHOLE_BATCH_BYTES)

    # The output of a chunk, None when one of its rows finds none.
    cdef object _of_indices(self, ArrowBatch batch, int64_t start, int64_t count):
        cdef int32_t* indices
        cdef int64_t found
        if 2 * count < batch.row_count:
            return None
        indices = self.roles.output.numbers(count)
        with nogil:
            found = self.roles.tables.table.find_indices(batch, start, count, indices)
        if found < count:
            return None
        return self.roles.output.numbered(batch, start, count, indices)

    # The output of a chunk whose pairs must meet a condition.
    def _confirmed(self, ArrowBatch arrow):
        cdef ProbeMatches matches = self._matches
        cdef int64_t count
        while True:
            with nogil:
                count = matches.next_candidates()
            if count == 0:
                break
            self.roles.condition.confirm(arrow, matches)
            if matches.is_full():
                matches.close_pairs()
                yield from self.roles.output.pieces(arrow, matches)
                matches.clear_pairs()
        if self.matched is not None:
            self.matched.write(matches.matched_before, matches.matched, matches.count)
        while matches.next_unmatched() > 0:
            yield from self.roles.output.pieces(arrow, matches)
            matches.clear_pairs()

    cdef int _look_up(self, ArrowBatch batch, int64_t start, int64_t count, bint emit_unmatched) except -1:
        cdef ProbeMatches matches = self._matches
        cdef JoinRoles roles = self.roles
        cdef BuildTable table = roles.tables.table
        cdef bint has_condition = roles.condition is not None
        cdef int64_t null_count
        cdef bint unique
        with nogil:
            matches.start = start
            matches.count = count
            if self._has_copies or table.needs_hashes or self._any_spilled():
                roles.probe.hash_batch(batch, start, count, matches.hashes)
            null_count = roles.probe.null_keys_of_batch(batch, start, count, matches.null_flags)
            self.null_key_count += null_count
            self._choose(matches, null_count)
            table.probe(batch, start, matches.wanted, matches.wanted_count, matches.hashes, matches.heads)
            unique = is_unique(table)
            if has_condition:
                memset(matches.matched, 0, count)
            if has_condition or not unique:
                roles.probe.codec.measure(batch, start, count, matches.row_sizes)
            matches.begin(&roles.emits, emit_unmatched, unique,
                          table.max_row_size * OUTPUT_ROWS > WHOLE_BATCH_BYTES)
        raise_failed_comparison()
        if self.matched is not None or self._has_copies:
            recall_matches(matches, self.matched, roles.probe_copies, has_condition)
        return 0

    cdef bint _any_spilled(self) noexcept nogil:
        return self.level is not None and self.level.spilled_count > 0

    # Sort the chunk's rows: looked up, waiting for a spilled partition, or without key.
    cdef void _choose(self, ProbeMatches matches, int64_t null_count) noexcept nogil:
        cdef bint any_spilled = self._any_spilled()
        cdef int64_t begin = 0
        cdef int64_t end, index, wanted = 0, spilled = 0, asked = 0
        cdef int32_t partition
        while begin < matches.count:
            end = min(begin + <int64_t>EXPECTED_ROWS, matches.count)
            for index in range(begin, end):
                matches.skip[index] = 0
                matches.heads[index] = NULL
                if null_count and matches.null_flags[index]:
                    matches.skip[index] = self.drops_null_keys
                    continue
                if any_spilled:
                    partition = partition_of_hash(matches.hashes[index], self.level.level, self.level.fan_out)
                    if self.level._entries[partition].spilled:
                        matches.spilled[spilled + asked] = index
                        matches.spilled_hashes[spilled + asked] = matches.hashes[index]
                        asked += 1
                        continue
                matches.wanted[wanted] = index
                wanted += 1
            if asked:
                spilled += self._keep_spilled(matches, spilled, asked)
                asked = 0
            begin = end
        matches.wanted_count = wanted
        matches.spilled_count = spilled
        self.rows_spilled += spilled

    # Of rows whose partition is spilled keep those that may match; returns how many.
    cdef int64_t _keep_spilled(self, ProbeMatches matches, int64_t begin, int64_t count) noexcept nogil:
        cdef int64_t kept = begin
        cdef int64_t index
        cdef uint64_t hash
        self.level.filter.expect(matches.spilled_hashes + begin, count)
        for index in range(begin, begin + count):
            hash = matches.spilled_hashes[index]
            if self.level.may_match(partition_of_hash(hash, self.level.level, self.level.fan_out), hash):
                matches.skip[matches.spilled[index]] = 1
                matches.spilled[kept] = matches.start + matches.spilled[index]
                matches.spilled_hashes[kept] = hash
                kept += 1
        self.rows_filtered += begin + count - kept
        return kept - begin

    cdef int _spill_rows(self, ArrowBatch batch) except -1:
        cdef ArrowBatch waiting = batch
        if self._matches.spilled_count < batch.row_count:
            indices = index_array(self._matches.spilled, self._matches.spilled_count)
            waiting = ArrowBatch.open(batch.batch.take(indices))
        return self.level.add_probe_batch(waiting, self._matches.spilled_hashes)
