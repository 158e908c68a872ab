"""HashAggregate: groups rows by key columns, in more groups than fit in its pages.

    aggregate = HashAggregate(phase, input_schema, keys, calls, output_schema, pool, space, force_spill=False)
    for batch in aggregate.add_batch(batch): ...       partial: states, when the table is full; others: nothing
                 or add_page(segment, used_bytes), add_rows(buffer): binary rows
    for batch in aggregate.finish(): ...               the rest
    aggregate.close()                                  always; idempotent

    phase     input    output     table full
    partial   rows     states     give out all groups, begin anew (a group may come out twice)
    final     states   results    write partitions as states
    single    rows     results    write partitions as states

    ADDING ── full ──► evict: written partitions first, then the largest, until half of the records is out;
       │               their groups go to the partition's file as states, later groups of them start again
       │ finish()
       ├── partitions never written: results from the table
       └── written ones: the rest is written too; then the groups of each file are found among its rows
           (``partition_merger``), or it is read into the empty table, one level deeper (a fresh hash parts what fell
           together), or several times over without writing (``file_passes``);
       │   states of one group merge whenever they meet, and they meet in the order in which their rows came:
           files are written and read in order
           Deeper than LEVEL_MAX the table is frozen instead: groups in it take what is theirs, all other states go
           to one more file, which the next pass reads. A pass completes at least one group, so this ends.

Where more than PART_RATIO of the rows were new groups when the table is full, ``state_partitions`` takes over: all
groups, and the states that follow on this level, go to their partitions past the table. So they do, in memory, where
states come as rows and the table outgrows the caches.

A partial aggregate that does not reduce (more than pass_ratio of its rows were new groups) switches itself off and
passes rows through as states: later where states are sorted next, which costs more for each than grouping does.
With few pages all partitions share them and are evicted together.

Very wide keys and values lie beside the table, in a file: those of a partial aggregate with the job where rows that
it sends may refer to them, so that they are written once for both phases; else with the operator, until it passes.

Invariants: no state is in a file that is still to be read and in a result. Nothing is written more than twice, for
inputs up to some thousand times the memory. Table and one page are in the pool; each open partition file has one block
in memory of its writer.

Source: Graefe, "Query evaluation techniques for large databases" (1993), hybrid hashing; Flink's HashAgg with
BytesHashMap falls back to sorting where we recurse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.aggregate.aggregate_layout import aggregate_layout, check_output, result_of_nothing
from engine.aggregate.file_passes import FilePasses
from engine.aggregate.group_table import GroupTable, StateBinding
from engine.aggregate.partition_files import (
    BLOCK_SIZE_MIN,
    PARTITION_PAGES_MIN,
    PartitionFiles,
    partitions_of_memory,
)
from engine.aggregate.partition_merger import PartitionMerger
from engine.aggregate.partition_sieve import PartitionSieve
from engine.aggregate.row_partitions import KeptRows
from engine.aggregate.state_columns import GroupScan
from engine.aggregate.state_partitions import StatePartitions
from engine.aggregate.state_rows import StateRows
from engine.aggregate.table_insert import TableInsert
from engine.aggregate.ungrouped_states import ungrouped_states
from engine.errors import MemoryBudgetError, SchemaError
from engine.graph.expression import AggregateCall
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.memory.segment import MemorySegment
from engine.memory.value_stores import ValueOwner
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.plain_types import plain_batch, plain_schema
from engine.records.row_codec import RowCodec

if TYPE_CHECKING:
    from typing_extensions import Buffer

PHASES = ("partial", "final", "single")

#: with force_spill a table is full at so many groups
FORCED_GROUPS = 16
#: more new groups than this share of the rows, when the table is full: states go past it. So many are new where there
#: are about three times the groups that fit; of fewer, those that stay in the table take in more than is saved
PART_RATIO = 0.8
#: levels of recursion before the table is frozen
LEVEL_MAX = 6
#: partial: more new groups than this share of the rows, over PASS_ROWS rows, means that grouping does not pay
PASS_RATIO = 0.8
PASS_ROWS = 131072
#: or over PASS_ROWS_WIDE of them, whose values have put so many bytes aside that only this table reads
PASS_BYTES = 64 << 20
PASS_ROWS_WIDE = 8
#: the same where states are sorted next
PASS_RATIO_BEFORE_SORT = 0.95
#: final: also at so many groups, which are more than the caches hold, although there is room; and at twice as many ...
PART_GROUPS = 1 << 18
_ALL = -1


class HashAggregate:
    """Groups rows by key columns. Thread: its task's."""

    def __init__(
        self,
        phase: str,
        input_schema: pa.Schema,
        keys: tuple[str, ...],
        calls: tuple[AggregateCall, ...],
        output_schema: pa.Schema,
        pool: PagePool,
        space: SpillSpace,
        force_spill: bool = False,
        level_max: int = LEVEL_MAX,
        pass_ratio: float = PASS_RATIO,
        value_owner: ValueOwner | None = None,
    ) -> None:
        """Take two pages of the pool.

        Args: input_schema, output_schema: as ``functions`` says for the phase; level_max: for tests; pass_ratio: above;
            value_owner: of wide values of the table, None: the space.
        Raises: SchemaError, NotYetSupportedError, MemoryBudgetError.
        """
        if phase not in PHASES:
            raise ValueError(f"no phase {phase!r} of an aggregate; there are: {', '.join(PHASES)}")
        self._phase = phase
        self._input_schema = plain_schema(input_schema)
        self._input_codec = RowCodec(input_schema)
        self._output_schema = plain_schema(output_schema)
        self._layout = aggregate_layout(self._input_schema, keys, calls, merging=phase == "final")
        self._level_max, self._part_groups = level_max, PART_GROUPS
        self._memory_bytes = pool.page_limit * pool.page_size
        self._partition_count, block_size = partitions_of_memory(pool.page_limit, pool.page_size)
        #: rows that came in
        self.rows_in = 0
        #: groups given out so far (partial: states)
        self.group_count = 0
        self._passing, self._pass_ratio, self._checked = False, pass_ratio, (0, 0, 0)
        self._pending: list[tuple[SpillFile | KeptRows, int]] = []
        self._pool, self._space, self._force_spill, self._finished_bytes = pool, space, force_spill, 0
        #: level of the rows that come in; how many the table has taken; groups made before; both at the last look
        self._level, self._level_rows, self._groups_before, self._seen = 0, 0, 0, (0, 0)
        self._keys = list(range(len(keys)))
        self._partitions: StatePartitions | None = None
        #: takes states as rows, where they come as such: final only
        self.sieve = PartitionSieve(self._input_codec) if self._comes_as_states() else None
        self._files = PartitionFiles(space, block_size)
        check_output(self._layout, self._output_schema, phase)
        self._table = self._take_table()
        try:
            self._rows = None if phase == "partial" else StateRows(self._layout.state_schema, len(keys), pool)
        except MemoryBudgetError:
            self._table.close()
            raise
        self._table.keep_outside(value_owner or space)
        self._input_binding = self._table.bind(self._layout.operations, self._layout.columns)
        self._merge_binding = self._table.bind(self._layout.merge_operations, self._layout.merge_columns)
        if self._rows is not None:
            self._rows.keep_outside(space)
            self._merging = PartitionMerger(self._layout, output_schema, pool, FORCED_GROUPS if force_spill else 0)
            table_bytes = FORCED_GROUPS * self._merging.row_size if force_spill else self._memory_bytes
            self._passes = FilePasses(self._table, self._rows, self._merge_binding, len(keys), table_bytes)

    def _take_table(self) -> GroupTable:
        is_partial = self._phase == "partial"
        return GroupTable(
            self._pool,
            self._layout.key_schema,
            self._layout.empty_states,
            self._layout.operations,
            self._layout.overflow_texts,
            1 if is_partial else self._partition_count,
            not is_partial and self._pool.page_limit >= PARTITION_PAGES_MIN * self._partition_count,
            FORCED_GROUPS if self._force_spill else 0,
        )

    def _comes_as_states(self) -> bool:
        """Whether rows of the input are what rows of states are."""
        return (
            self._phase == "final"
            and self._input_codec.schema.types == self._layout.state_schema.types
            and ([*self._layout.key_columns, *self._layout.columns] == list(range(len(self._input_schema))))
        )

    @property
    def spilled_bytes(self) -> int:
        """Bytes of states written to files so far, before compression."""
        return self._finished_bytes + self._files.raw_bytes

    # --------------------------------------------------------------------------------------------------------- adding

    def add_batch(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take the rows of a batch; the iterator must be read to its end (partial does its work there).

        Raises:
            SchemaError: the batch has other columns than the input schema.
            DataError: a sum overflows.
            SpillError: states cannot be written.
        """
        if not batch.schema.equals(self._input_schema):
            batch = plain_batch(batch)
            if batch.schema.names != self._input_schema.names or batch.schema.types != self._input_schema.types:
                raise SchemaError(f"an aggregate of {self._input_schema} got a batch of {batch.schema}")
        self.rows_in += batch.num_rows
        for column in self._layout.columns_as_double:
            doubles = batch.column(column).cast(pa.float64(), safe=False)
            batch = batch.set_column(column, self._input_schema.names[column], doubles)
        if self._phase == "partial":
            return self._add_partial(batch)
        self._add(batch, self._layout.key_columns, self._input_binding)
        return iter(())

    def add_page(self, segment: MemorySegment, used_bytes: int) -> Iterator[pa.RecordBatch]:
        """Take the binary rows in the first used_bytes of a segment; otherwise as add_batch, also CorruptBlockError."""
        return self.add_rows(memoryview(segment)[:used_bytes])

    def add_rows(self, buffer: Buffer) -> Iterator[pa.RecordBatch]:
        """Take contiguous binary rows of the input schema; otherwise as add_batch, also CorruptBlockError."""
        return self.add_batch(self._input_codec.from_rows(buffer))

    def _open(self, batch: pa.RecordBatch, key_columns: list[int], binding: StateBinding) -> TableInsert:
        return TableInsert(self._table, self._table.open(batch.select(key_columns), batch, binding))

    def _add(self, batch: pa.RecordBatch, key_columns: list[int], binding: StateBinding) -> None:
        """Put rows or states into the table, evicting partitions when it is full, or into partitions past it."""
        rows = 0 if self._partitions is not None else self._add_to_table(batch, key_columns, binding)
        if self._partitions is not None:
            if rows < batch.num_rows:
                self._partitions.add(self._states_of(batch.slice(rows), binding))
        elif self.sieve is not None and self._table.group_count >= self._part_groups:
            self._part_groups *= 2
            if self._level == 0 and self._groups_are_new():
                self._begin_partitions()

    def _add_to_table(self, batch: pa.RecordBatch, key_columns: list[int], binding: StateBinding) -> int:
        """Put rows into the table; return how many: fewer than all where it is of no use, and partitions take over."""
        feed = self._open(batch, key_columns, binding)
        while self._partitions is None:
            before = feed.position
            is_whole = feed.go_on()
            self._level_rows += feed.position - before
            if is_whole:
                break
            if self._groups_are_new():
                self._begin_partitions()
            else:
                self._evict(everything=feed.is_stuck)
        return feed.position

    def _add_partial(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        layout = self._layout
        if not self._passing:
            feed, is_whole = self._open(batch, layout.key_columns, self._input_binding), False
            while not is_whole and not self._passing:
                is_whole = feed.go_on()
                if not is_whole:
                    yield from self._give_out_states()
                self._check_reduction(self.rows_in - batch.num_rows + feed.position)
            batch = batch.slice(feed.position)
        if self._passing:
            if self._table.group_count > 0:  # once: to empty a large table takes as long as to pass a batch
                yield from self._give_out_states()
            if batch.num_rows > 0:
                self.group_count += batch.num_rows
                yield ungrouped_states(
                    batch, self._output_schema, layout.key_columns, layout.specs, layout.columns, layout.overflow_texts
                )

    def _check_reduction(self, rows: int) -> None:
        """Switch off when, since the last look, grouping has not made rows fewer. Without keys it always does."""
        rows_before, groups_before, bytes_before = self._checked
        looked_at, aside = rows - rows_before, self._space.spilled_bytes
        if looked_at >= PASS_ROWS or (looked_at >= PASS_ROWS_WIDE and aside - bytes_before >= PASS_BYTES):
            groups = self._table.groups_made - groups_before
            self._passing = bool(self._layout.key_columns) and groups > self._pass_ratio * looked_at
            self._checked = (rows, self._table.groups_made, aside)

    # ----------------------------------------------------------------------------------------------------- partitions

    def _groups_are_new(self) -> bool:
        """Whether most rows since the table was last full are groups that it had not seen: it is of no use."""
        rows_before, groups_before = self._seen
        self._seen = self._level_rows, self._table.groups_made
        is_new = self._seen[1] - groups_before > PART_RATIO * (self._seen[0] - rows_before)
        return is_new and self._part_pages() >= self._partition_count

    def _part_pages(self) -> int:
        """Return how many pages partitions may hold: half of what is not held by those that wait; 0: too few."""
        kept = sum(source.page_count for source, _ in self._pending if isinstance(source, KeptRows))
        if self._table.store_count == 1:
            return 0
        return self._partition_count if self._force_spill else (self._pool.page_limit - kept) // 2

    def _begin_partitions(self) -> None:
        """Move all groups to partitions of rows, where what comes next on this level follows."""
        self._partitions = StatePartitions(
            self._layout, self._pool, self._space, self._files, self._partition_count, self._level, self._part_pages()
        )
        if self.sieve is not None and self._level == 0:
            self.sieve.begin(self._partitions.rows)
        for store in range(self._table.store_count):
            groups = list(self._scan(store, store, results=False))
            self._table.drop([store], go_on=False)
            for states in groups:
                self._partitions.add(states)
        self._table.reset(self._level + 1, expected_groups=0)
        if not self._force_spill and not self._merging.merge_parts(self._partitions):
            self._partitions.fold_with(self._table, self._merge_binding)

    def _states_of(self, batch: pa.RecordBatch, binding: StateBinding) -> pa.RecordBatch:
        """Return rows as they come in, or states, as states."""
        layout = self._layout
        if binding is self._merge_binding:
            return batch
        if self._phase == "final":
            columns = [batch.column(column) for column in [*layout.key_columns, *layout.columns]]
            return pa.RecordBatch.from_arrays(columns, schema=layout.state_schema)
        return ungrouped_states(
            batch, layout.state_schema, layout.key_columns, layout.specs, layout.columns, layout.overflow_texts
        )

    # ------------------------------------------------------------------------------------------------------- spilling

    def _evict(self, everything: bool) -> None:
        """Write groups to the files of their partitions until half of the records, or everything, is out."""
        sizes = self._table.store_sizes()
        target = sum(size for size, _ in sizes) // 2
        order = sorted(range(len(sizes)), key=lambda store: (not self._files.has(store), -sizes[store][0]))
        chosen: list[int] = []
        for store in order:
            if not everything and chosen and target <= 0:
                break
            chosen.append(store)
            target -= sizes[store][0]
        for store in chosen:
            self._write_store(store)
        self._table.drop(chosen)

    def _write_store(self, store: int) -> None:
        assert self._rows is not None
        for states in self._scan(store, _ALL, results=False):
            if self._table.store_count > 1:
                self._rows.write(states, self._files.writer(store))
            else:
                self._rows.scatter(states, self._files, self._level, self._partition_count)

    def _partitions_of(self, store: int) -> range:
        """Return the spill partitions whose groups lie in a store."""
        if self._table.store_count > 1:
            return range(store, store + 1)
        return range(self._table.partition_count)

    def _write_partition(self, store: int, partition: int) -> None:
        assert self._rows is not None
        for states in self._scan(store, partition, results=False):
            self._rows.write(states, self._files.writer(partition))

    def _scan(self, store: int, partition: int, results: bool) -> GroupScan:
        """Return the groups of a store as batches: results, or states as they are."""
        return GroupScan(
            self._table,
            store,
            partition if self._table.store_count == 1 else _ALL,
            self._output_schema if results else self._layout.state_schema,
            self._layout.results if results else self._layout.states,
            BATCH_ROWS_MAX,
            min(max(self._memory_bytes // 4, BLOCK_SIZE_MIN), BATCH_BYTES_MAX),
        )

    # --------------------------------------------------------------------------------------------------------- output

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield what has not been given out: the results (partial: states). Without keys at least one row.

        Raises: as add_batch.
        """
        if self._phase == "partial":
            yield from self._give_out_states()
            return
        yield from self._finish_level()
        while self._pending:
            source, level = self._pending.pop()
            try:
                yield from self._finish_source(source, level)
            finally:
                source.delete()
        if self.group_count == 0 and not self._layout.key_columns:
            self.group_count = 1
            yield result_of_nothing(self._layout, self._output_schema)

    def _give_out_states(self) -> Iterator[pa.RecordBatch]:
        for states in GroupScan(
            self._table, 0, _ALL, self._output_schema, self._layout.states, BATCH_ROWS_MAX, BATCH_BYTES_MAX
        ):
            self.group_count += states.num_rows
            yield states
        self._table.drop([0])

    def _finish_level(self) -> Iterator[pa.RecordBatch]:
        """Give out partitions that are all in memory, leave the others to the next level."""
        if self._partitions is not None:
            kept = self._partitions.finish(everything=self._force_spill)
            self._partitions = None
            if self.sieve is not None:
                self.sieve.end()
            self._queue_files()
            self._pending += [(rows, self._level + 1) for rows in kept]
            return
        if not self._files.any:
            yield from self._results(_ALL, _ALL)
            self._table.drop(list(range(self._table.store_count)), go_on=False)
            return
        for store in range(self._table.store_count):
            for partition in self._partitions_of(store):
                if self._files.has(partition):
                    self._write_partition(store, partition)
                else:
                    yield from self._results(store, partition)
            self._table.drop([store], go_on=False)
        self._queue_files()

    def _queue_files(self) -> None:
        for file in self._files.finish():
            self._finished_bytes += file.raw_bytes
            self._pending.append((file, self._level + 1))

    def _results(self, store: int, partition: int) -> Iterator[pa.RecordBatch]:
        for batch in self._scan(store, partition, results=True):
            self.group_count += batch.num_rows
            yield batch

    def _finish_source(self, source: SpillFile | KeptRows, level: int) -> Iterator[pa.RecordBatch]:
        """Aggregate the states of a file, or of a partition in memory: among themselves, or into the empty table."""
        assert self._rows is not None
        groups = self._merging.groups_of(source)
        if groups is not None:
            self.group_count += groups.row_count
            yield from self._merging.results_of(groups)
            return
        if isinstance(source, SpillFile) and level <= self._level_max and self._passes.pay(source, level):
            for part in self._passes.of(source, level):
                yield from self._results(_ALL, _ALL) if part is None else self._finish_frozen(part.read(self._rows))
            self._table.reset(level)
            return
        states_of_source = self._rows.read(source.reader()) if isinstance(source, SpillFile) else source
        if level > self._level_max:
            yield from self._finish_frozen(states_of_source)
            return
        self._begin_level(level, source)
        for states in states_of_source:
            self._add(states, self._keys, self._merge_binding)
        self._merging.groups_per_row = (self._table.groups_made - self._groups_before) / max(self._level_rows, 1)
        yield from self._finish_level()

    def _finish_frozen(self, source: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Complete the groups that find room; all other states go to a file, with which the same is done."""
        self._level = self._level_max
        self._table.reset(self._level + 1, frozen=True)
        for states in source:
            self._add_frozen(states)
        yield from self._results(_ALL, _ALL)
        self._table.reset(self._level + 1)
        self._queue_files()

    def _begin_level(self, level: int, source: SpillFile | KeptRows) -> None:
        """Empty the table for a source, its directory for as many groups as the last one had for its rows."""
        self._table.reset(level, expected_groups=self._merging.groups_expected(source))
        self._level, self._level_rows, self._groups_before = level, 0, self._table.groups_made
        self._seen = 0, self._groups_before

    def _add_frozen(self, states: pa.RecordBatch) -> None:
        """Merge states into groups that are in the table or find room; write all others to the next pass's file."""
        assert self._rows is not None
        opened = self._table.open(states.select(self._keys), states, self._merge_binding)
        position = 0
        while position < states.num_rows:
            position = self._table.add(opened, position, False)
            if position < states.num_rows:
                self._table.seal()
                self._rows.write(states.slice(position, 1), self._files.writer(0))
                position += 1

    def close(self) -> None:
        """Give every page back and delete every file; idempotent, in every state."""
        self._table.close()
        if self._rows is not None:
            self._rows.close()
            self._merging.close()
        if self._partitions is not None:
            self._partitions.close()
        pending, self._pending = self._pending, []
        try:
            self._files.discard()
        finally:
            for source, _ in pending:
                source.delete()
