"""GroupingPhase: rows of one level find their groups in the table, which writes partitions when it is full.

    phase = GroupingPhase(workspace, level, watches_caches)
    rows = phase.add(batch, form)               fewer than all, or phase.is_of_no_use: partitions are to take over
    for results in phase.finish(): ...          of partitions that are all in memory; the others wait for the next level

    full ──► evict: written partitions first, then the largest, until half of the records is out; their groups go to
             the partition's file as states, and later groups of them start again. With few pages all partitions share
             them and are evicted together

Where more than NEW_GROUPS_RATIO of the rows were new groups when the table is full, it is of no use any more: later
rows do not meet their groups in it. That is looked at earlier, when groups outgrow the caches: with watches_caches,
since rows are states, states are texts, or several threads merge partitions while one alone fills a table; and where
the rows that have met a group say that all of them would not fit. What is put into a table that cannot hold it is moved
twice: 10 million keys, each its own, took 1.4 s of processor time in 266 MB and in 1000, and take 1.2 and 1.1.

Source: Graefe, "Query evaluation techniques for large databases" (1993), hybrid hashing.

Held by: tests/aggregate/test_hash_aggregate.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from engine.aggregate.aggregate_state import AggregateState
from engine.aggregate.aggregate_workspace import AggregateWorkspace, InputForm
from engine.aggregate.table_insert import TableInsert
from engine.records.batch_limits import BATCH_ROWS_MAX

#: share of new groups among the rows above which states pass a full table. So many are new with about three times the
#: groups that fit; with fewer, the groups in the table absorb more than is saved
NEW_GROUPS_RATIO = 0.8
#: groups, more than the caches hold, at which new groups are counted early; and at twice as many ...
CACHED_GROUPS = 1 << 18
#: groups that are given out before the end: fewer would make small batches
RUN_GROUPS_MIN = BATCH_ROWS_MAX


class GroupingPhase:
    """Args: workspace: its table is empty; watches_caches: see above."""

    def __init__(self, workspace: AggregateWorkspace, level: int, watches_caches: bool) -> None:
        self.level = level
        self._work, self._table, self._files = workspace, workspace.table, workspace.files
        self._watches_caches, self._groups_to_look_at = watches_caches, CACHED_GROUPS
        #: True if partitions are to take over
        self.is_of_no_use = False
        #: rows that the table has taken; groups made before; both at the last look
        self._rows, self._groups_before = 0, self._table.groups_made
        self._last_look = (0, self._groups_before)

    @property
    def groups_per_row(self) -> float:
        """Groups made for each row that the table has taken."""
        return (self._table.groups_made - self._groups_before) / max(self._rows, 1)

    def add(self, batch: pa.RecordBatch, form: InputForm) -> int:
        """Put rows into the table; return how many are in."""
        insert = TableInsert(self._table, self._table.open(form.key_columns, batch, form.binding))
        while not self.is_of_no_use:
            before = insert.position
            is_whole = insert.until_full()
            self._rows += insert.position - before
            if is_whole:
                if self._table.group_count >= self._groups_to_look_at:
                    self._watch_caches()
                break
            self._look_at_groups()
            if not self.is_of_no_use:
                self._evict(everything=insert.is_stuck)
        return insert.position

    def _watch_caches(self) -> None:
        self._groups_to_look_at *= 2
        pool = self._work.pool
        if self._watches_caches or self._bytes_expected() > pool.page_limit * pool.page_size:
            self._look_at_groups()

    def _bytes_expected(self) -> float:
        """Return the expected bytes of groups of keys in no order: of n rows, about n^2 / 2 / groups have met one."""
        met = self._rows - (self._table.groups_made - self._groups_before)
        used = sum(size for size, _ in self._table.store_sizes())
        return self._rows * self._rows / 2 / max(met, 1) * used / max(self._table.group_count, 1)

    def _look_at_groups(self) -> None:
        """Decide whether most rows since the last look are groups that the table had not seen."""
        rows_before, groups_before = self._last_look
        self._last_look = self._rows, self._table.groups_made
        is_new = self._table.groups_made - groups_before > NEW_GROUPS_RATIO * (self._rows - rows_before)
        self.is_of_no_use = is_new and self.pages_for_partitions() >= self._work.partition_count

    def pages_for_partitions(self) -> int:
        """Return the number of pages for partitions: half of those that waiting ones do not hold; 0: too few."""
        kept = sum(part.page_count for part in self._work.recursion.waiting)
        if self._table.store_count == 1:
            return 0
        return self._work.partition_count if self._work.spec.force_spill else (self._work.pool.page_limit - kept) // 2

    def take_groups(self) -> Iterator[pa.RecordBatch]:
        """Yield all groups as states, store by store; they leave the table, which is empty then."""
        for store in range(self._table.store_count):
            groups = list(self._work.scan(store))
            self._table.drop([store], go_on=False)
            yield from groups

    # ------------------------------------------------------------------------------------------------------- spilling

    def _evict(self, everything: bool) -> None:
        """Write groups to the files of their partitions until half of the records, or everything, is out."""
        self._work.progress.enter(AggregateState.EVICTING)
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
        for states in self._work.scan(store):
            if self._table.store_count > 1:
                self._work.state_rows.write(states, self._files.writer(store))
            else:
                self._work.state_rows.scatter(states, self._files, self.level, self._work.partition_count)

    def end_run(self) -> Iterator[pa.RecordBatch]:
        """Give out all groups where they make a batch and none is in a file."""
        if self._table.group_count >= RUN_GROUPS_MIN and not self._files.any:
            yield from self._work.results()
            self._table.reset(self.level)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give out partitions that are all in memory; the rest of the others is written too."""
        if not self._files.any:
            yield from self._work.results()
            self._work.empty_table()
            return
        for store in range(self._table.store_count):
            for partition in self._partitions_of(store):
                if self._files.has(partition):
                    for states in self._work.scan(store, partition):
                        self._work.state_rows.write(states, self._files.writer(partition))
                else:
                    yield from self._work.results(store, partition)
            self._table.drop([store], go_on=False)
        self._work.queue([], self.level + 1)

    def _partitions_of(self, store: int) -> range:
        """Return the spill partitions whose groups lie in a store."""
        if self._table.store_count > 1:
            return range(store, store + 1)
        return range(self._table.partition_count)

    def close(self) -> None:
        """Do nothing: the table belongs to the workspace."""
