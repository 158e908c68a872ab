"""Parting: states go to the partitions of their keys, past the table, until the level has ended.

    parting = Parting(layout, pool, space, files, partition_count, level, page_limit)
    parting.add(states)*  ─►  sources = parting.finish()        always: parting.close()

For groups that hardly repeat while they are in reach: the table would miss the caches for every row, and write most
groups out unmerged. Rows of states are kept by partition instead (``row_partitions``), and the groups of each partition
are found afterwards, in a table that fits the caches. Where a page is wanted and none is left, the largest partition
goes to its file, and what comes for it follows.

Invariants: rows of a group keep their order. Pages held are below page_limit, so that the table has the rest. No row is
written twice on a level.

Source: DuckDB's radix-partitioned aggregation; Graefe's hybrid hashing for what stays in memory.
"""

from __future__ import annotations

import pyarrow as pa

from engine.aggregate.aggregate_layout import AggregateLayout
from engine.aggregate.partition_files import PartitionFiles
from engine.aggregate.row_partitions import KeptRows, RowPartitions
from engine.errors import MemoryBudgetError
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.records.row_codec import RowCodec


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
        codec = RowCodec(layout.state_schema)
        codec.keep_outside(space, range(len(layout.key_columns)))
        self.rows = RowPartitions(codec, len(layout.key_columns), pool, files, partition_count, level, page_limit)

    def add(self, states: pa.RecordBatch) -> None:
        """Take states. Raises: SpillError, DiskFullError."""
        position = 0
        while (position := self.rows.add(states, position)) < states.num_rows:
            if not self.rows.spill_largest():
                raise MemoryBudgetError("no page is left for the states of an aggregate")

    def finish(self, everything: bool = False) -> list[KeptRows]:
        """End the level: spilled partitions are in their files, the others are returned; everything: none is."""
        while everything and self.rows.spill_largest():
            pass
        return self.rows.finish()

    def close(self) -> None:
        """Give every page back; idempotent."""
        self.rows.close()
