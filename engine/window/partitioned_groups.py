"""PartitionedGroups: aggregates that look at all rows of a group, which come in any order; a row for each group.

    groups = PartitionedGroups(schema, keys, calls, order_by, pool, budget_bytes, space)
    made = groups.ahead(batch)                      what ``add`` does first, in any thread
    for batch in groups.add(batch, made): ...       gives out nothing yet; ``router`` takes rows of pages past it
    for batch in groups.finish(): ...
    groups.close()                                  always; idempotent

    rows ─► few groups, and no more rows than are grouped at once: as they came, each batch group by group
     │                     (``grouped_rows``), then each call at once, its groups by several threads
     └─hash of keys─► partitions, in pages and files (``row_partitions``)
                          │ one after the other
                          ├── small enough: its rows group by group (``group_order``), then each call at once, by
                          │                 several threads where partitions are smaller than that together:
                          │                 quantile    selected from the group's values (``quantiles``)
                          │                 list, only  as they came, or in order (``group_sort``)
                          ├── larger, in a file: partitioned again (``recursion``)
                          └── not made smaller by that: sorted by key, and grouped as it lies then (``SortedGroups``)

A sort moves every row several times and misses the caches for most of that; here a row is moved once, and what is done
with it happens in a partition that the caches hold. So a sort of all rows is left for groups that are larger than
memory, and for operators with few pages, whose partitions would be nothing but buffers.

Rows that come in pages are partitioned as they are there, which is cheaper than to make batches of them. Few rows
(FEW_ROWS) are not partitioned in any case. Partitions in memory are done first, those in files afterwards, so that
a sort finds all of its pages.

Invariants: rows of a group that are equal in the order keep that in which they came. What waits lies in pages of the
pool and in files; what is being grouped lies in Arrow's memory, within the budget.

Source: DuckDB's and Spark's hash aggregates keep the values of a group in its state; Boncz, Zukowski and Nes, "Database
architecture optimized for the new bottleneck" (1999), for the partitions.

Held by: tests/window/test_partitioned_groups.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.closing import close_all
from engine.graph.sort_key import SortKey
from engine.iomanager.spill_file import SpillFile
from engine.partitions.parted_input import PartedInput
from engine.partitions.partition_files import PARTITION_PAGES_MIN, partitions_of_memory
from engine.partitions.recursion import (
    PARTS_A_THREAD,
    Recursion,
    Threads,
    WaitingPart,
    made_in_threads,
    parts_of_files,
)
from engine.partitions.row_partitions import KeptRows
from engine.partitions.spilled_rows import SpilledRows
from engine.records.arrow_functions import pc
from engine.records.batch_limits import ARROW_ROWS_MAX
from engine.records.bounded_batches import SmallBatches
from engine.records.plain_types import plain_batch, plain_schema
from engine.sort.external_sorter import ExternalSorter
from engine.window.group_kernels import first_kept
from engine.window.group_order import group_order
from engine.window.group_sort import sorted_in_groups
from engine.window.grouped_rows import GroupedBatch, GroupedRows, Runs
from engine.window.quantiles import quantiles
from engine.window.sorted_groups import SortedGroups, lists_between, sorted_schema

if TYPE_CHECKING:
    from engine.graph.window import SortedCall
    from engine.iomanager.spill_space import SpillSpace
    from engine.memory.page_pool import PagePool
    from engine.partitions.partition_router import PartitionRouter

#: rows that are not partitioned, however many groups they have
FEW_ROWS: Final = ARROW_ROWS_MAX
#: part of the budget up to which a partition is grouped at once: copies of its values, in order, lie beside its rows
WHOLE_SHARE: Final = 3
#: limit of such a partition, since texts have offsets of 32 bits
WHOLE_BYTES_MAX: Final = 1 << 30


class PartitionedGroups:
    """Args: pool: for rows that wait; budget_bytes: of Arrow's memory, and of a list."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        calls: Sequence[SortedCall],
        order_by: Sequence[SortKey],
        pool: PagePool,
        budget_bytes: int,
        space: SpillSpace,
        *,
        force_spill: bool = False,
    ) -> None:
        """Take no page yet. Keys: one at least."""
        plain = plain_schema(schema)
        #: columns of the rows that are parted, keys first
        self._names = [*keys, *(name for name in plain.names if name not in keys)]
        self._schema = pa.schema([plain.field(name) for name in self._names])
        self._is_in_order = plain.names == self._names
        self._keys, self._calls, self._order_by = list(keys), list(calls), list(order_by)
        self._pool, self._space, self._budget_bytes = pool, space, budget_bytes
        self._force_spill, self._expects_pages = force_spill, False
        self._whole_bytes = min(budget_bytes // WHOLE_SHARE, WHOLE_BYTES_MAX)
        self._input = PartedInput(
            self._schema, range(len(keys)), pool, space, *partitions_of_memory(pool.page_limit, pool.page_size)
        )
        self._recursion = Recursion[WaitingPart]()
        #: rows that came before partitions were made, those that are put together first, and all of their bytes
        self._grouped, self._small = GroupedRows(), SmallBatches()
        self._held_bytes = 0
        self._threads: Threads | None = None
        self._sorting: _Sorting | None = None
        #: schema of the output
        self.schema = sorted_schema(self._schema, keys, calls)

    def do_together(self, threads: Threads) -> None:
        """Have threads of the task work on groups, or small partitions, together; before the first row comes."""
        self._threads = threads
        self._recursion.do_together(threads, self._size_of, self._whole_bytes)

    def expect_pages(self) -> None:
        """Have rows partitioned unless they are few, since the router can take them; before the first row comes."""
        self._expects_pages = True

    @property
    def router(self) -> PartitionRouter | None:
        """The ``PartitionRouter`` of pages once there are partitions; None: their keys do not come first."""
        return self._input.router if self._is_in_order else None

    @property
    def _is_parting(self) -> bool:
        return self._input.has_begun or self._sorting is not None

    def _rows_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return plain_batch(batch if self._is_in_order else batch.select(self._names))

    def ahead(self, batch: pa.RecordBatch) -> GroupedBatch | None:
        """Return a batch group by group; None: it is of no use. Thread: any."""
        return None if self._is_parting else GroupedBatch.of(self._rows_of(batch), len(self._keys))

    def add(self, batch: pa.RecordBatch, made: GroupedBatch | None = None) -> Iterator[pa.RecordBatch]:
        """Take a batch, and what was made of it; nothing is given out. Raises: SpillError, DiskFullError."""
        if self._is_parting:
            self._part(self._rows_of(batch) if made is None else made.rows())
        elif made is not None:
            self._group(self._small.rest())
            self._hold(made)
        else:
            rows = self._rows_of(batch)
            self._held_bytes += rows.nbytes
            self._group(self._small.add(rows))
        if not self._is_parting and self._wants_parts():
            self._begin()
        return iter(())

    def _group(self, batches: Sequence[pa.RecordBatch]) -> None:
        for rows in batches:
            self._held_bytes -= rows.nbytes
            self._hold(GroupedBatch.of(rows, len(self._keys)))

    def _hold(self, batch: GroupedBatch) -> None:
        self._held_bytes += batch.size_bytes
        self._grouped.add(batch)

    def _wants_parts(self) -> bool:
        """Whether rows are more than are grouped at once, or have many groups, or the router can take the next ones."""
        is_few = self._grouped.row_count <= FEW_ROWS or (self._grouped.are_long and not self._expects_pages)
        return self._force_spill or not is_few or self._held_bytes > self._whole_bytes

    def _part(self, rows: pa.RecordBatch) -> None:
        if self._sorting is not None:
            self._sorting.add(rows)
        else:
            self._input.add(rows)

    def _begin(self) -> None:
        """Partition the rows from now on, or sort them where there are few pages."""
        if self._pool.page_limit < PARTITION_PAGES_MIN * self._input.partition_count:
            self._sorting = _Sorting(self)
        else:
            self._begin_level(0)
        for rows in self._grouped.taken():
            self._part(rows)
        for rows in self._small.rest():
            self._part(rows)
        if self._is_in_order and self._sorting is None:
            self._input.begin_router()

    def _begin_level(self, level: int) -> None:
        self._input.begin(level, 0 if self._force_spill else self._pool.page_limit)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield a row for each group. Raises: MemoryBudgetError: a list that is larger than the budget."""
        if self._input.has_begun:
            self._end_level()
        elif self._sorting is not None:
            yield from self._sorting.results()
        else:
            self._group(self._small.rest())
            if self._grouped.row_count > 0:
                yield from self._held_groups()
        yield from self._recursion.results(self)

    def _end_level(self) -> None:
        """Let partitions wait: those in files below those in memory, none of which is too large to be grouped."""
        parts, kept_bytes = self._input.parts, 0
        kept: list[WaitingPart] = []
        for partition in range(parts.partition_count):
            rows = parts.take(partition)
            if rows is None:
                continue
            size = rows.page_count * self._pool.page_size
            if self._force_spill or size + rows.bytes_outside() > self._whole_bytes:
                self._input.write(partition, rows)
            else:
                kept.append(WaitingPart((rows,), parts.level + 1))
                kept_bytes += size
        self._recursion.add(parts_of_files([self._input.end()], parts.level + 1, kept_bytes))
        self._recursion.add(kept)

    def _size_of(self, part: WaitingPart) -> int | None:
        """Return the bytes of rows that are in memory; None: they are in a file."""
        rows = part.rows[0]
        return rows.page_count * self._pool.page_size + rows.bytes_outside() if isinstance(rows, KeptRows) else None

    # ------------------------------------------------------------------------------------------- parts (``recursion``)

    def in_memory(self, part: WaitingPart) -> Iterator[pa.RecordBatch] | None:
        """Group the rows of a partition at once; None: they are too many."""
        rows = part.rows[0]
        if isinstance(rows, KeptRows):
            return self._whole_groups(list(rows))
        taken, size = list[pa.RecordBatch](), 0
        # it takes no page: a sort has all of them
        with closing(SpilledRows(self._schema, len(self._keys), None).read(rows.reader())) as batches:
            for batch in batches:
                taken.append(batch)
                size += batch.nbytes
                if size > self._whole_bytes:
                    return None
        return self._whole_groups(taken)

    def divided(self, part: WaitingPart) -> Iterator[pa.RecordBatch]:
        """Partition the rows of a file again; its partitions wait."""
        self._begin_level(part.level)
        self._input.add_file(part.files[0])
        self._end_level()
        return iter(())

    def undivided(self, part: WaitingPart) -> Iterator[pa.RecordBatch]:
        """Sort the rows of a file and yield their groups."""
        self._sorting = _Sorting(self)
        self._sorting.add_file(part.files[0])
        yield from self._sorting.results()
        self._sorting.close()
        self._sorting = None

    def _whole_groups(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the groups of rows that lie in memory."""
        rows = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
        batches.clear()
        yield from self._groups_of(rows, *group_order(rows, len(self._keys)))

    def _held_groups(self) -> Iterator[pa.RecordBatch]:
        """Yield the groups of rows that were not partitioned."""
        runs = self._grouped.runs()
        if any(call.function != "quantile" or call.argument in self._keys for call in self._calls):
            yield from self._groups_of(*self._grouped.in_order(runs))
            return
        columns = list(runs.keys)
        for call in self._calls:
            values = self._grouped.column(self._names.index(call.argument) - len(self._keys))
            columns.append(_quantiles_of_runs(values, runs, call.share, self._threads))
        yield from self._results(columns)

    def _groups_of(self, rows: pa.RecordBatch, order: pa.Array, bounds: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield the groups of rows that are in this order."""
        firsts = pc.take(order, bounds.slice(0, len(bounds) - 1))
        for key in reversed(self._order_by):
            values = _of_eight_bytes(rows.column(key.column))
            order = sorted_in_groups(values, order, bounds, key.descending, key.nulls_last)
        columns = [pc.take(rows.column(key), firsts) for key in range(len(self._keys))]
        for call in self._calls:
            values = rows.column(call.argument)
            if call.function == "quantile":
                columns.append(quantiles(values, order, bounds, call.share))
                continue
            values = pc.take(values, order)
            if call.function == "list":
                where = None if call.where is None else pc.take(rows.column(call.where), order)
                columns.append(lists_between(values, where, bounds))
            else:
                columns.append(pc.take(values, first_kept(pc.is_valid(values), bounds)))
        yield from self._results(columns)

    def _results(self, columns: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        found = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        for start in range(0, found.num_rows, ARROW_ROWS_MAX):
            yield found.slice(start, ARROW_ROWS_MAX)

    def close(self) -> None:
        """Give every page back and delete every file; idempotent."""
        self._grouped, self._small = GroupedRows(), SmallBatches()
        sorting = () if self._sorting is None else (self._sorting.close,)
        close_all([self._input.close, *sorting, self._recursion.close])


class _Sorting:
    """Rows that are sorted by their keys and in their order, and the groups that follow one another then."""

    def __init__(self, groups: PartitionedGroups) -> None:
        order = (*(SortKey(key) for key in groups._keys), *groups._order_by)
        forced, space = groups._force_spill, groups._space
        self._sorter = ExternalSorter(groups._schema, order, groups._pool, space, force_spill=forced)
        self._groups = SortedGroups(
            groups._schema, groups._keys, groups._calls, groups._budget_bytes, space, force_spill=forced
        )

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        self._sorter.add_batch(batch)

    def add_file(self, file: SpillFile) -> None:
        """Take the rows of a file."""
        with file.reader() as reader:
            for block in reader:
                self._sorter.add_rows(block)

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield a row for each group."""
        self._sorter.finish()
        for batch in self._sorter.batches():
            yield from self._groups.add(batch)
        yield from self._groups.finish()

    def close(self) -> None:
        """Give pages and files back; idempotent."""
        close_all([self._groups.close, self._sorter.close])


def _quantiles_of_runs(values: pa.ChunkedArray, runs: Runs, share: float, threads: Threads | None) -> pa.Array:
    """Return the quantile of each group; threads take some of the groups each."""
    count = len(runs.bounds) - 1
    step = count if threads is None else -(-count // (PARTS_A_THREAD * threads.count))
    starts = range(0, count, step)

    def found(number: int) -> pa.Array:
        bounds = runs.bounds.slice(starts[number], min(step, count - starts[number]) + 1)
        return quantiles(values, runs.order, bounds, share, runs.starts)

    if threads is None or len(starts) == 1:
        return pa.concat_arrays([found(number) for number in range(len(starts))])
    return pa.concat_arrays(list(made_in_threads(threads, found, len(starts))))


def _of_eight_bytes(values: pa.Array) -> pa.Array:
    """Return values of a type that has the order of words as such numbers of 8 bytes."""
    if pa.types.is_floating(values.type):
        return pc.cast(values, pa.float64())
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.view(pa.int32())
    return values if values.type.bit_width == 64 else pc.cast(values, pa.int64())
