"""AggregateWorkspace: what the levels of one final or single aggregate work with, one after the other.

    work = AggregateWorkspace(spec, layout, pool, space)        takes two pages of the pool
    work.scan(store, partition)                 groups of the table as states
    work.results(store, partition)              and as results, which are counted
    work.queue(kept, level)                     partitions that are over: they wait for the next level
    work.close()

    table ── groups of the level ──► files (one writer for each partition) ──┐
                                                                             ├──► recursion: parts that wait
    partitions of rows that stayed in memory ────────────────────────────────┘

An input form says how a batch is read: rows of the input, or states that the aggregate itself wrote.

Invariants: table and one page are in the pool; each open partition file has one block in memory of its writer.

Held by: tests/aggregate/test_hash_aggregate.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from engine.accumulators.aggregate_layout import AggregateLayout
from engine.aggregate.aggregate_spec import FORCED_GROUPS, AggregateSpec
from engine.aggregate.aggregate_state import AggregateProgress
from engine.aggregate.file_passes import FilePasses
from engine.aggregate.group_input import StateBinding
from engine.aggregate.partition_merger import PartitionMerger
from engine.aggregate.state_columns import GroupScan
from engine.aggregate.table_insert import table_of
from engine.closing import close_all
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.memory.value_stores import ValueOwner
from engine.operators.helper_threads import HelperThreads
from engine.partitions.partition_files import (
    BLOCK_SIZE_MIN,
    PARTITION_PAGES_MIN,
    PartitionFiles,
    partitions_of_memory,
)
from engine.partitions.recursion import Recursion, WaitingPart
from engine.partitions.row_partitions import KeptRows
from engine.partitions.spilled_rows import SpilledRows
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX

#: every store, every partition
ALL = -1
#: batches of results are larger than others by this: each one is passed on under the GIL, which another task may want
RESULT_FACTOR: Final = 4


class InputForm(NamedTuple):
    """The form of batches: the places of their keys, and the column that each state reads."""

    key_columns: list[int]
    binding: StateBinding


class AggregateWorkspace:
    """Args: spec: its schemas are plain; layout: of the spec; value_owner: of wide values of the table; helpers."""

    def __init__(
        self,
        spec: AggregateSpec,
        layout: AggregateLayout,
        pool: PagePool,
        space: SpillSpace,
        value_owner: ValueOwner,
        helpers: HelperThreads | None = None,
    ) -> None:
        """Take the pages. Raises: MemoryBudgetError."""
        self.spec, self.layout, self.pool, self.space = spec, layout, pool, space
        #: True if several threads merge partitions
        self.has_helpers = helpers is not None
        self.progress = AggregateProgress()
        self.memory_bytes = pool.page_limit * pool.page_size
        self.partition_count, block_size = partitions_of_memory(pool.page_limit, pool.page_size)
        self.files = PartitionFiles(space, block_size)
        #: states of partitions that are over
        self.recursion = Recursion[WaitingPart](spec.level_max)
        #: groups that have come out
        self.group_count = 0
        #: bytes of files that are finished
        self._finished_bytes = 0
        key_count = len(spec.keys)
        separate_stores = pool.page_limit >= PARTITION_PAGES_MIN * self.partition_count
        self.table = table_of(layout, pool, self.partition_count, separate_stores, spec.force_spill)
        try:
            self.state_rows = SpilledRows(layout.state_schema, key_count, pool)
        except BaseException:
            self.table.close()
            raise
        self.table.keep_outside(value_owner)
        self.state_rows.keep_outside(space)
        self.rows = InputForm(layout.key_columns, self.table.bind(layout.operations, layout.columns))
        merging = self.table.bind(layout.merge_operations, layout.merge_columns)
        self.states = InputForm(list(range(key_count)), merging)
        group_limit = FORCED_GROUPS if spec.force_spill else 0
        self.merger = PartitionMerger(layout, spec.output_schema, pool, group_limit, helpers)
        table_bytes = FORCED_GROUPS * self.merger.row_size if spec.force_spill else self.memory_bytes
        self.passes = FilePasses(self.table, self.state_rows, merging, key_count, table_bytes)

    @property
    def spilled_bytes(self) -> int:
        """Bytes of states written to files so far, before compression."""
        return self._finished_bytes + self.files.raw_bytes

    def scan(self, store: int = ALL, partition: int = ALL) -> GroupScan:
        """Return the groups of a store as states."""
        return self._scan(store, partition, self.layout.state_schema, self.layout.states)

    def results(self, store: int = ALL, partition: int = ALL) -> Iterator[pa.RecordBatch]:
        """Yield the groups of a store as results."""
        for batch in self._scan(store, partition, self.spec.output_schema, self.layout.results, RESULT_FACTOR):
            self.group_count += batch.num_rows
            yield batch

    def _scan(
        self, store: int, partition: int, schema: pa.Schema, columns: list[tuple[int, int]], factor: int = 1
    ) -> GroupScan:
        batch_bytes = min(max(self.memory_bytes // 4, BLOCK_SIZE_MIN), factor * BATCH_BYTES_MAX)
        partition = partition if self.table.store_count == 1 else ALL
        return GroupScan(self.table, store, partition, schema, columns, factor * BATCH_ROWS_MAX, batch_bytes)

    def empty_table(self) -> None:
        """Drop all groups; the table is reset before it takes others."""
        self.table.drop(list(range(self.table.store_count)), go_on=False)

    def queue(self, kept: list[KeptRows], level: int) -> None:
        """Let partitions wait for a level: those that were kept in memory, which come first, and those in files."""
        files = self.files.finish()
        self._finished_bytes += sum(file.raw_bytes for file in files)
        self.recursion.add(WaitingPart((file,), level) for file in files)
        self.recursion.add(WaitingPart((rows,), level) for rows in kept)

    def close(self) -> None:
        """Give every page back and delete every file; idempotent."""
        close_all(
            [
                self.table.close,
                self.state_rows.close,
                self.merger.close,
                self.files.discard,
                self.recursion.close,
            ]
        )
