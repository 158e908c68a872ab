"""HashJoin: the hybrid hash join, within a pool of pages, beyond it on disk.

    join = HashJoin(spec, pool, space)
    join.add_build_batch(batch) / add_build_pages(pages) / add_build_rows(buffer) ...
    join.finish_build()                        or end_build(), then fill_table(): between them its keys are there
    for batch in join.probe(batch): ...        exhaust each before the next call
    for batch in join.finish_probe(): ...      what was spilled
    join.close()

    BUILDING ─finish_build─► PROBING ─finish_probe─► NEXT_PAIR ◄─┬─► REPARTITIONING        (``join_phase``)
                                                        │        └─► BLOCK_WISE
                                                        └─► DONE ─close─► CLOSED

    build rows ─► partitions (pages) ──full: the largest──► build file ┐
                     │ finish_build                                    ├─► pair ─► scattered again with a fresh hash
                     ▼                                                 │           (levels 1..3), or block-wise: a part
    probe rows ─► table ─► matches ─► output                           │           of the keys, build rows as they fit,
         └─ partition is spilled ────────────────────────► probe file ┘           the probe file streamed over them

While everything fits, probe rows never become rows: keys are hashed from the Arrow columns, matches gathered. Output
batches have at most OUTPUT_ROWS and about 1 MiB; pairs of a probe batch come in its order while nothing is spilled.

Memory: rows, directory and write buffers are pages of the pool, of which six are enough; scratch is 100 bytes a row of
the batches, at most 4 MiB; a small build side is kept as Arrow columns as well, where the pool has as much to spare.

Invariants: a null key matches nothing; each build row is in the table at most once, so an outer build row comes out
unmatched at most once; every page is back after close().

Types: all of ``join_type``, with either side built. Without keys every pair is a candidate: the build side lies in one
chain, and what does not fit is joined block-wise. A condition decides about candidate pairs (``pair_filter``).
``null_aware`` makes an anti join NOT IN: nothing when the right side has a null key, no left row with a null key unless
the right side is empty; the join must be given all of the right side, then. Copied rows (``replicated_keys``) count as
matched from the start. A spilled pair is built from its smaller file (``spilled_pair``, ``join_roles``).

Thread: one at a time; others may borrow a build side (``borrowed_build``). Source: Flink's HybridHashTable; Graefe et
al., "Hash joins and hash teams in SQL Server"; the block-wise end is ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from engine.join.batch_prober cimport BatchProber
from engine.join.build_blocks cimport BuildBlocks
from engine.join.build_input cimport BuildInput
from engine.join.build_table cimport is_unique
from engine.join.hash_partition cimport HashPartition
from engine.join.join_roles cimport JoinRoles
from engine.join.join_side cimport JoinSide
from engine.join.key_part cimport KeyPart
from engine.join.matched_rows cimport MatchedRows
from engine.join.partition_set cimport CHUNK_ROWS, PartitionSet
from engine.join.probe_matches cimport OUTPUT_BYTES
from engine.join.recent_rows cimport RecentRows
from engine.join.row_stream cimport RowStream
from engine.join.unmatched_rows cimport UnmatchedRows, unmatched_rows
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch

from engine.errors import MemoryBudgetError
from engine.join.join_phase import JoinPhase, advanced, refusal
from engine.join.spilled_pair import LEVEL_MAX, PAGES_MIN, first_fan_out, next_fan_out
from engine.partitions.recursion import Recursion
from engine.records.whole_rows import rows_outside

cdef object BUILDING = JoinPhase.BUILDING
cdef object COMPLETE = JoinPhase.COMPLETE
cdef object PROBING = JoinPhase.PROBING
cdef object BORROWED = JoinPhase.BORROWED
cdef object NEXT_PAIR = JoinPhase.NEXT_PAIR
cdef object REPARTITIONING = JoinPhase.REPARTITIONING
cdef object BLOCK_WISE = JoinPhase.BLOCK_WISE
cdef object DONE = JoinPhase.DONE
cdef object CLOSED = JoinPhase.CLOSED

#: names of tables by TableKind
cdef tuple TABLE_NAMES = ("tagged", "dense", "dictionary")


@cython.final
cdef class HashJoin:
    """One subtask's hash join.

    Args:
        spec: JoinSpec.
        pool, space: pages (at least 6) and SpillSpace of this operator, borrowed.
        value_owner: where out-of-line values lie; else in space.

    Raises:
        SchemaError: keys that cannot be compared; a condition without columns.
        MemoryBudgetError: fewer than six pages.
    """

    def __cinit__(self, spec not None, PagePool pool not None, space, value_owner=None):
        if pool.page_limit < PAGES_MIN:
            raise MemoryBudgetError(f"{pool.owner}: a hash join needs {PAGES_MIN} pages, the pool has "
                                    f"{pool.page_limit}")
        left = JoinSide(spec.left, value_owner or space)
        right = JoinSide(spec.right, value_owner or space)
        self.spec = spec
        self._phase = BUILDING
        self._roles = JoinRoles(spec, left, right, spec.build_is_left, pool)
        self._prober = BatchProber(spec, self._roles)
        self._null_aware = spec.null_aware
        self._right_is_probe = spec.build_is_left
        self.pool = pool
        self._space = space
        self._recursion = Recursion(LEVEL_MAX)
        self._row_limit = -1 if spec.row_limit is None else spec.row_limit
        self._begin_level(first_fan_out(pool.page_limit), 0)
        self._level.fill_early(self._roles.tables)
        self._input = BuildInput(self._roles.build, self._roles.emits.unmatched_build, self._level, self._recent_rows())
        if self._row_limit < 0 and spec.replicated is None and self._roles.may_be_dictionary():
            self._input.fill_dictionary(self._roles.tables)

    @property
    def phase(self):
        """The JoinPhase that it is in."""
        return self._phase

    @property
    def build_rows(self):
        """Rows of the build side so far, null keys included."""
        return self._input.row_count

    @property
    def table_kind(self):
        """The kind of table over the build rows in memory (``table_choice``): tagged, dense or dictionary."""
        return TABLE_NAMES[self._roles.tables.table.kind]

    @property
    def distinct_rows(self):
        """Rows that a dictionary table keeps for all build rows; else 0."""
        cdef uint8_t** rows
        return self._roles.tables.table.distinct_rows(&rows)

    @property
    def has_unique_keys(self):
        """Whether no two rows of the whole build side share a key; known while it is probed, False where it spills."""
        return self.partitions_spilled == 0 and is_unique(self._roles.tables.table)

    @property
    def probe_rows_spilled(self):
        """Probe rows written to files, on all levels."""
        return self._prober.rows_spilled

    @property
    def probe_rows_filtered(self):
        """Probe rows of spilled partitions that a Bloom filter has answered instead."""
        return self._prober.rows_filtered

    @property
    def spilled_bytes(self):
        """Bytes written to the join's spill space so far."""
        return self._space.spilled_bytes

    # ------------------------------------------------------------------ build

    def add_build_batch(self, batch):
        """Add an Arrow batch of the build side, of any number of rows."""
        self._expect(BUILDING, "add_build_batch()")
        self._input.add_batch(ArrowBatch.open(batch))

    def add_build_pages(self, pages):
        """Add the rows of some pages: of each (fields segment and size) the first bytes of its segment."""
        cdef int64_t count = 0
        self._expect(BUILDING, "add_build_pages()")
        for page in pages:
            count = self._input.collect(memoryview(page.segment)[:page.size], count)
        self._input.add_collected(count)

    def add_build_rows(self, buffer):
        """Add contiguous rows of any size, such as one larger than a page; their wide values go outside."""
        self._expect(BUILDING, "add_build_rows()")
        moved = rows_outside(self._roles.build.codec, buffer)
        self._input.add_collected(self._input.collect(buffer if moved is None else moved, 0))

    def finish_build(self):
        """Build the table over what stayed in memory; probing may begin."""
        self._expect(BUILDING, "finish_build()")
        self.end_build()
        self.fill_table()

    def end_build(self):
        """Take no more build rows: what is known of all of them can be told before there is a table."""
        self._expect(BUILDING, "end_build()")
        if self._input.finish():
            self._roles.tables.choose_dictionary()
        self._level.end_build(self._roles.tables)
        self.partitions_spilled += self._level.spilled_count
        self._advance(COMPLETE)

    def fill_table(self):
        """Build the table over what stayed in memory; probing may begin."""
        self._expect(COMPLETE, "fill_table()")
        self._level.fill(self._roles.tables)
        self._begin_probing(self)
        if not self._level.spilled_count:
            self._roles.keep_columns(self._level)

    cdef int _begin_probing(self, HashJoin owner) except -1:
        self._count_build_like(owner)
        self._prober.drops_null_keys = self._null_aware and self._input.row_count > 0
        return self._advance(PROBING)

    cdef int _count_build_like(self, HashJoin owner) except -1:
        self._input.row_count = owner._input.row_count
        self._input.null_key_count = owner._input.null_key_count
        return 0

    # NOT IN of something that holds a null is never true. Known when all right rows have passed.
    cdef bint _returns_nothing(self) noexcept:
        return self._null_aware and (
            self._prober.null_key_count if self._right_is_probe else self._input.null_key_count) > 0

    # ------------------------------------------------------------------ phases

    cdef int _expect(self, object phase, str call) except -1:
        if self._phase is not phase:
            raise refusal(call, self._phase, phase)
        return 0

    cdef int _advance(self, object phase) except -1:
        self._phase = advanced(self._phase, phase)
        return 0

    cdef int _begin_level(self, int32_t fan_out, uint32_t level) except -1:
        self.level_max = max(self.level_max, <int32_t>level)
        self._level = PartitionSet(self._roles.build, self._roles.probe, self.pool, self._space, fan_out, level,
                                   self._row_limit)
        self._prober.level = self._level
        return 0

    cdef int _drop_level(self) except -1:
        self._level.release()
        self._level = self._prober.level = None
        return 0

    # ------------------------------------------------------------------ probe

    def probe(self, batch):
        """Yield the output of a probe batch; rows of spilled partitions wait for finish_probe()."""
        self._expect(PROBING, "probe()")
        self.probe_rows += batch.num_rows
        return iter(()) if self._returns_nothing() else self._prober.join_batch(batch, True)

    # ------------------------------------------------------------------ the spilled rest

    def finish_probe(self):
        """Yield the output of the spilled partitions and the unmatched build rows."""
        self._expect(PROBING, "finish_probe()")
        self._advance(NEXT_PAIR)
        return self._join_rest()

    def finish_shared(self):
        """Yield unmatched build rows and the output of spilled partitions, when all borrowers have probed."""
        self._expect(BORROWED, "finish_shared()")
        self._advance(NEXT_PAIR)
        return self._join_rest()

    def _join_rest(self):
        if self._level is not None:
            yield from self._finish_level()
        yield from self._recursion.results(self)
        self._advance(DONE)

    # ------------------------------------------------------------------ pairs (``recursion``)

    def in_memory(self, pair):
        """Join a pair block-wise; None: that would take too many passes."""
        self._take_roles(pair)
        if self._returns_nothing() or not (pair.probe_rows or self._roles.emits.unmatched_build):
            return iter(())
        return self.undivided(pair) if pair.passes_pay(self._roles.block_count(pair, self._row_limit)) else None

    def divided(self, pair):
        """Scatter both files with the hash of the next level."""
        self._advance(REPARTITIONING)
        yield from self._partition_again(pair)
        self._advance(NEXT_PAIR)

    def undivided(self, pair):
        """Join a pair block-wise, in as many passes as it takes."""
        self._advance(BLOCK_WISE)
        yield from self._join_block_wise(pair)
        self._advance(NEXT_PAIR)

    cdef int _take_roles(self, object pair) except -1:
        cdef JoinRoles roles = self._roles
        if pair.is_reversed == self._is_reversed():
            return 0
        if self._resting_roles is None:
            left, right = (roles.build, roles.probe) if roles.build_is_left else (roles.probe, roles.build)
            self._resting_roles = JoinRoles(self.spec, left, right, not roles.build_is_left, self.pool)
        self._roles, self._resting_roles = self._resting_roles, roles
        self._prober.roles = self._roles
        return 0

    # Whether the side is built that was the probe side at first.
    cdef bint _is_reversed(self) noexcept:
        return self._roles.build_is_left != self._right_is_probe

    # Unmatched build rows come out, spilled partitions wait as pairs.
    def _finish_level(self):
        cdef HashPartition partition
        cdef UnmatchedRows rows = unmatched_rows(self._roles.output)
        cdef bint emitted = self._roles.emits.unmatched_build and not self._returns_nothing()
        self._level.finish_probe()
        for partition in self._level.partitions[:self._level.fan_out]:
            if emitted and not partition.entries.spilled:
                rows.add(&partition.entries)
        yield from rows
        partition = <HashPartition>self._level.partitions[self._level.fan_out]
        emitted = emitted and not (self._null_aware and self.probe_rows)
        if partition.entries.spilled:
            if emitted:
                yield from self._null_keys_of_file(partition.build_file)
            partition.build_file.delete()
            partition.probe_file.delete()
        elif emitted:
            rows = unmatched_rows(self._roles.output)
            rows.add(&partition.entries)
            yield from rows
        pairs = self._level.pairs(self._is_reversed())
        self._roles.tables.release()
        self._drop_level()
        self._recursion.add([self._smaller_built(pair) for pair in pairs])

    def _smaller_built(self, pair):
        if not pair.should_reverse(self._roles.block_count(pair, self._row_limit)):
            return pair
        self.reversed_count += 1
        return pair.reversed()

    def _null_keys_of_file(self, file):
        cdef int64_t count
        self._stream = RowStream(file)
        while True:
            count = self._stream.next_rows(self._input.rows, CHUNK_ROWS, OUTPUT_BYTES)
            if count == 0:
                break
            yield self._roles.output.unmatched_build(self._input.rows, count)
        self._stream.close()

    # What leaves repeated build rows out, None where every row counts.
    cdef RecentRows _recent_rows(self):
        return RecentRows() if self._roles.asks_for_presence() else None

    def _partition_again(self, pair):
        cdef int64_t count
        self.repartition_count += 1
        fan_out = next_fan_out(self.pool.page_limit, self.pool.page_size, pair.build_bytes,
                               pair.build_rows // self._row_limit if self._row_limit > 0 else 0)
        self._begin_level(fan_out, pair.level)
        self._input.begin(self._roles.build, self._roles.emits.unmatched_build, self._level, self._recent_rows())
        self._stream = RowStream(pair.build_file)
        while True:
            count = self._stream.next_rows(self._input.rows, CHUNK_ROWS, OUTPUT_BYTES)
            if count == 0:
                break
            self._input.add_rows(count, False)
        self._stream.close()
        self._level.end_build(self._roles.tables)
        self._level.fill(self._roles.tables)
        self.partitions_spilled += self._level.spilled_count
        yield from self._join_file(pair.probe_file, True, None)
        yield from self._finish_level()

    def _join_file(self, file, bint emit_unmatched, KeyPart part):
        cdef int64_t count
        cdef RowStream stream = RowStream(file, self._roles.probe.codec, part)
        self._stream = stream
        while True:
            count = stream.next_rows(self._input.rows, CHUNK_ROWS, OUTPUT_BYTES)
            if count == 0:
                break
            batch = self._roles.probe.codec.decode(self._input.rows, count, NULL, 0)
            yield from self._prober.join_batch(batch, emit_unmatched)
        stream.close()

    def _join_block_wise(self, pair):
        cdef int32_t part, parts = pair.part_count(self._roles.block_count(pair, self._row_limit))
        for part in range(parts):
            yield from self._join_part(pair, part, parts)

    def _join_part(self, pair, int32_t part, int32_t parts):
        cdef JoinRoles roles = self._roles
        cdef KeyPart probe_part = KeyPart(roles.probe, pair.level, part, parts) if parts > 1 else None
        cdef UnmatchedRows rows
        cdef bint last
        self._blocks = BuildBlocks(roles.build, self.pool, pair.build_file, self._row_limit,
                                   KeyPart(roles.build, pair.level, part, parts), self._recent_rows())
        while self._blocks.load(roles.tables):
            last = self._blocks.at_end
            if self._blocks.pass_count == 1 and not last:
                self.block_wise_count += 1
                if roles.emits.unmatched_probe or roles.emits.matched_probe:
                    self._prober.matched = MatchedRows(self._space)
            if self._prober.matched is not None:
                self._prober.matched.begin_pass(last)
            self.block_pass_count += 1
            if self._blocks.entries.row_count or roles.emits.unmatched_probe:
                yield from self._join_file(pair.probe_file, last, probe_part)
            if roles.emits.unmatched_build:
                rows = unmatched_rows(roles.output)
                rows.add(&self._blocks.entries)
                yield from rows
        roles.tables.release()
        self._blocks.release()
        self._blocks = None
        self._prober.end_passes()

    def close(self):
        """Give all pages back. What an unfinished level has on disk goes with the spill space."""
        if self._phase is CLOSED:
            return
        self._advance(CLOSED)
        self._roles.tables.release()
        self._input.release()
        if self._level is not None:
            self._level.release()
        if self._blocks is not None:
            self._blocks.release()
        if self._prober.matched is not None:
            self._prober.matched.release()
        if self._stream is not None:
            self._stream.close()
        self._recursion.close()
