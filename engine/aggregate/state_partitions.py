"""StatePartitions: states go to the partitions of their keys, past the table, until the level has ended.

    partitions = StatePartitions(layout, pool, space, files, partition_count, level, page_limit)
    partitions.add(states)*  ─►  sources = partitions.finish()        always: partitions.close()

For groups that hardly repeat while they are in reach: the table would miss the caches for every row, and write most
groups out unmerged. Rows of states are kept by partition instead (``row_partitions``), and the groups of each partition
are found afterwards, in a table that fits the caches.

Where there are pages enough, rows are merged as they come (``state_row_table``), many at a time:

    rows ─► wait in their partition ── as many as groups ──► merge: partition by partition into its groups, whose
                                                             │      directories stay; the pages that waited go back
                                                             └─► no room for groups: the largest partitions go to
                                                                 files, and what comes for them follows

Partitions have nothing in common: the threads of the task (``helper_threads``) each merge one at a time, the largest
first, where enough rows wait to be worth a thread's begin. What finds no room is written when all have ended.

So each row is merged once, a partition's groups are fetched from memory a few times in all, and pages are touched for
about twice the groups, not for all rows: the first touch of a page takes about as long as merging its rows. Rows with
keys or states that cannot be merged as rows are folded:

    a page is wanted, none is left ──► fold: every partition in memory is grouped and put back
                                       │ while that makes rows half as many
                                       └─► then the largest partitions go to files, and what comes for them follows

Invariants: rows of a group keep their order. Pages held are below page_limit, so that the table has the rest. No row is
written twice on a level.

Source: DuckDB's radix-partitioned aggregation; Graefe's hybrid hashing for what stays in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from engine.accumulators.aggregate_layout import AggregateLayout
from engine.accumulators.state_combiner import StateCombiner
from engine.aggregate.group_input import StateBinding
from engine.aggregate.group_table import GroupTable
from engine.aggregate.merge_scratch import MergeScratch
from engine.aggregate.state_columns import GroupScan
from engine.aggregate.state_row_table import StateRowTable, state_row_table_of
from engine.aggregate.table_insert import TableInsert
from engine.closing import close_all
from engine.errors import MemoryBudgetError
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.operators.helper_threads import HelperThreads
from engine.partitions.partition_files import PartitionFiles
from engine.partitions.row_partitions import KeptRows, RowPartitions
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.row_codec import RowCodec

#: folding goes on while it leaves no more than this part of the rows
FOLD_RATIO = 0.5
#: pages for each partition, at least, for rows to be merged as they come
MERGE_PAGES_MIN = 8
#: pages of each partition that wait to be merged, at least, where there is room; and for each page of groups ...
WAITING_PAGES = 32
WAITING_SHARE = 1
#: pages of rows that wait, from which on several threads merge them
THREADED_PAGES = 256
#: share of new groups among the last rows above which so many wait
MERGE_RATIO = 0.8
WAITING_SHARE_OF_NEW = 4


class _Merging:
    """Rows that are merged into the groups of their partitions, until one finds no room. Threads: any, in ``run``.

    Args: left: what is to be merged, the last first; new_share: expected groups for each row.
    """

    def __init__(
        self,
        groups: Mapping[int, StateRowTable],
        left: list[tuple[int, KeptRows]],
        tools: list[tuple[MergeScratch, StateCombiner]],
        new_share: float,
    ) -> None:
        self._groups, self._left, self._tools, self._new_share = groups, left, tools, new_share
        #: partitions that found no room
        self.full: list[tuple[int, KeptRows]] = []
        self._made: list[int] = []
        self._has_failed = False

    @property
    def groups_made(self) -> int:
        """New groups of all partitions."""
        return sum(self._made)

    def run(self) -> None:
        """Merge one partition after the other. Raises: DataError."""
        tools = self._tools.pop()  # of this call alone meanwhile; so is what is popped below
        try:
            while not self.full and not self._has_failed:
                try:
                    partition, kept = self._left.pop()
                except IndexError:
                    return
                self._merge(partition, kept, tools)
        except BaseException:
            self._has_failed = True
            raise
        finally:
            self._tools.append(tools)

    def _merge(self, partition: int, kept: KeptRows, tools: tuple[MergeScratch, StateCombiner]) -> None:
        groups = self._groups[partition]
        before = groups.group_count
        groups.work_with(*tools)
        expected = before + int(kept.row_count * self._new_share) if before else kept.row_count
        if groups.add_kept(kept, expected):
            self._made.append(groups.group_count - before)
        else:
            self.full.append((partition, kept))


class StatePartitions:
    """Partitions of one level. Args: page_limit: pages to hold, at least one for each partition."""

    def __init__(
        self,
        layout: AggregateLayout,
        pool: PagePool,
        space: SpillSpace,
        files: PartitionFiles,
        partition_count: int,
        level: int,
        page_limit: int,
    ) -> None:
        self._layout = layout
        self._fold_table: tuple[GroupTable, StateBinding] | None = None
        self._pool, self._page_limit = pool, page_limit
        #: groups of partitions in memory, by partition, if rows are merged
        self._groups: dict[int, StateRowTable] = {}
        #: new groups for each of the rows that were merged last
        self._new_share = 0.0
        #: scratch and combiner of each thread that merges
        self._tools: list[tuple[MergeScratch, StateCombiner]] = []
        self._helpers: HelperThreads | None = None
        self._codec = codec = RowCodec(layout.state_schema)
        codec.keep_outside(space)
        self.rows = RowPartitions(
            codec, range(len(layout.key_columns)), pool, files, partition_count, level, page_limit
        )

    def add(self, states: pa.RecordBatch) -> None:
        """Take states. Raises: SpillError, DiskFullError."""
        position = 0
        while (position := self.rows.add(states, position)) < states.num_rows:
            self.make_room()

    def merge_with(self, combiners: Sequence[StateCombiner], helpers: HelperThreads | None = None) -> bool:
        """Merge rows into the groups of their partitions from now on; False: too few pages, or rows of another kind.

        Args: combiners: one for each thread; helpers: the threads, None: the task's own.
        """
        key_count, self._helpers = len(self._layout.key_columns), helpers
        self._tools = [(MergeScratch(), combiner) for combiner in combiners]
        scratch, combiner = self._tools[0]
        too_few = self._page_limit < MERGE_PAGES_MIN * self.rows.partition_count
        if too_few or self._codec.fixed_size > self._pool.page_size:
            return False
        for partition in range(self.rows.partition_count):
            groups = state_row_table_of(self._codec, key_count, combiner, self._pool, 0, scratch)
            if groups is None:
                return False
            self._groups[partition] = groups
        self._make_wait()
        self.rows.on_full(self.make_room, self._spill_partition)
        return True

    def _make_wait(self) -> None:
        """Set how many pages of rows wait to be merged next; the largest partitions are written where it is too few."""
        held = self._pages_of_groups()
        while self._groups and self._page_limit - held < max(2 * self.rows.partition_count, held // 8):
            self._spill_groups(self._largest())
            held = self._pages_of_groups()
        if not self._groups:
            self.rows.page_limit = self._page_limit
            return
        least = min(WAITING_PAGES * self.rows.partition_count, self._page_limit // 4)
        share = WAITING_SHARE if self._new_share <= MERGE_RATIO else WAITING_SHARE_OF_NEW
        self.rows.page_limit = min(max(least, held * share), self._page_limit - held)

    def _largest(self) -> int:
        return max(self._groups, key=lambda partition: self._groups[partition].page_count)

    def _pages_of_groups(self) -> int:
        return sum(groups.page_count for groups in self._groups.values())

    def _merge_partitions(self) -> int:
        """Merge the rows that wait, partition by partition; one whose groups do not fit is written to its file.

        Returns: how many rows waited.
        """
        taken = [(partition, kept) for partition in self._groups if (kept := self.rows.take(partition)) is not None]
        waited, pages = sum(kept.row_count for _, kept in taken), sum(kept.page_count for _, kept in taken)
        left, made = sorted(taken, key=lambda each: each[1].page_count), 0
        try:
            while left:
                merging = _Merging(self._groups, left, self._tools, self._new_share)
                if self._helpers is not None and pages >= THREADED_PAGES:
                    self._helpers.run(merging.run)
                else:
                    merging.run()
                made += merging.groups_made
                for partition, kept in merging.full:
                    self.rows.put(partition, kept)
                    self._spill_groups(partition)
        finally:
            for _, kept in taken:
                kept.delete()
        self._new_share = made / max(waited, 1)
        return waited

    def _spill_groups(self, partition: int) -> None:
        """Write the groups of a partition to its file, before the rows that wait, which those that come follow."""
        groups, waiting = self._groups.pop(partition), self.rows.take(partition)
        self.rows.put(partition, groups.take())
        groups.close()
        if waiting is not None:
            self.rows.put(partition, waiting)
        self.rows.spill(partition)

    def _spill_partition(self, partition: int) -> None:
        """Write what a partition has in memory to its file."""
        if partition in self._groups:
            self._spill_groups(partition)
        else:
            self.rows.spill(partition)

    def fold_with(self, table: GroupTable, binding: StateBinding) -> None:
        """Fold with a table from now on, which is empty and not shared until the level ends."""
        self._fold_table = table, binding
        self.rows.on_full(self.make_room)

    def make_room(self) -> None:
        """Merge or fold what is in memory, or write the largest partition."""
        if self._groups:
            if self._merge_partitions() == 0 and self._groups:
                self._spill_groups(self._largest())
            self._make_wait()
        elif self._fold_table is not None:
            self._fold_partitions(*self._fold_table)
        elif not self.rows.spill_largest():
            raise MemoryBudgetError("no page is left for the states of an aggregate")

    def _fold_partitions(self, table: GroupTable, binding: StateBinding) -> None:
        """Fold every partition in memory, or the first ones only if that does not pay."""
        self._fold_table = None  # no folding in a fold
        for partition in range(self.rows.partition_count):
            kept = self.rows.take(partition)
            if kept is None:
                continue
            try:
                folded = self._fold(kept, table, binding)
            finally:
                kept.delete()
            for states in folded:
                self.add(states)
            if sum(states.num_rows for states in folded) > FOLD_RATIO * kept.row_count:
                return
        self._fold_table = table, binding

    def _fold(self, kept: KeptRows, table: GroupTable, binding: StateBinding) -> list[pa.RecordBatch]:
        """Group the states of a partition; return them as fewer, in order of their groups."""
        level, folded = self.rows.level + 1, []
        keys = list(range(len(self._layout.key_columns)))
        table.reset(level, expected_groups=kept.row_count)
        for states in kept:
            insert = TableInsert(table, table.open(keys, states, binding))
            while not insert.until_full():
                folded += self._states(table)
                table.reset(level)
        folded += self._states(table)
        table.reset(level, expected_groups=0)
        return folded

    def _states(self, table: GroupTable) -> list[pa.RecordBatch]:
        schema, states = self._layout.state_schema, self._layout.states
        return list(GroupScan(table, -1, -1, schema, states, BATCH_ROWS_MAX, BATCH_BYTES_MAX))

    def finish(self, everything: bool = False) -> list[KeptRows]:
        """End the level: spilled partitions are in their files, the others are returned; everything: none is."""
        while everything and self.rows.spill_largest():
            pass
        self._merge_partitions()
        kept = self.rows.finish()
        kept += [groups.take() for groups in self._groups.values() if groups.group_count > 0]
        self.close()
        return kept

    def close(self) -> None:
        """Give every page back; idempotent."""
        close_all([*(groups.close for groups in self._groups.values()), self.rows.close])
