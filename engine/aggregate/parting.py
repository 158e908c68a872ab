"""Parting: states go to the partitions of their keys, past the table, until the level has ended.

    parting = Parting(layout, pool, space, files, partition_count, level, page_limit)
    parting.add(states)*  ─►  sources = parting.finish()        always: parting.close()

For groups that hardly repeat while they are in reach: the table would miss the caches for every row, and write most
groups out unmerged. Rows of states are kept by partition instead (``row_partitions``), and the groups of each partition
are found afterwards, in a table that fits the caches.

    a page is wanted, none is left ──► fold: every partition in memory is grouped and put back
                                       │ while that makes rows half as many
                                       └─► then the largest partitions go to files, and what comes for them follows

Invariants: rows of a group keep their order. Pages held are below page_limit, so that the table has the rest. No row is
written twice on a level.

Source: DuckDB's radix-partitioned aggregation; Graefe's hybrid hashing for what stays in memory.
"""

from __future__ import annotations

import pyarrow as pa

from engine.aggregate.aggregate_layout import AggregateLayout
from engine.aggregate.group_table import GroupTable, StateBinding
from engine.aggregate.partition_files import PartitionFiles
from engine.aggregate.row_partitions import KeptRows, RowPartitions
from engine.aggregate.state_columns import GroupScan
from engine.aggregate.table_feed import TableFeed
from engine.errors import MemoryBudgetError
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.row_codec import RowCodec

#: folding goes on while it leaves no more than this part of the rows
FOLD_RATIO = 0.5


class Parting:
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
        codec = RowCodec(layout.state_schema)
        codec.keep_outside(space)
        self.rows = RowPartitions(codec, len(layout.key_columns), pool, files, partition_count, level, page_limit)

    def add(self, states: pa.RecordBatch) -> None:
        """Take states. Raises: SpillError, DiskFullError."""
        position = 0
        while (position := self.rows.add(states, position)) < states.num_rows:
            self.make_room()

    def fold_with(self, table: GroupTable, binding: StateBinding) -> None:
        """From now on fold with a table, which is empty and nobody else's until the level ends."""
        self._fold_table = table, binding
        self.rows.on_full(self.make_room)

    def make_room(self) -> None:
        """Fold what is in memory, or write the largest partition."""
        if self._fold_table is not None:
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
            feed = TableFeed(table, table.open(states.select(keys), states, binding))
            while not feed.go_on():
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
        kept = self.rows.finish()
        self.close()
        return kept

    def close(self) -> None:
        """Give every page back; idempotent."""
        self.rows.close()
