"""PartitionedGroups: aggregates that look at all rows of a group, which come in any order; a row for each group.

    groups = PartitionedGroups(schema, keys, calls, order_by, pool, budget_bytes, space)
    for batch in groups.add(batch): ...             gives out nothing yet; ``sieve`` takes rows of pages past it
    for batch in groups.finish(): ...
    groups.close()                                  always; idempotent

    rows ─hash of keys─► partitions, in pages and files (``row_partitions``)
                          │ one after the other
                          ├── small enough: its rows group by group (``group_order``), then each call at once:
                          │                 quantile    selected from the group's values (``quantiles``)
                          │                 list, only  as they came, or in order (``group_sort``)
                          ├── larger, in a file: parted again, by a fresh hash
                          └── one that holds most of what was parted, or was parted twice: sorted by key, and grouped
                              as it lies then (``SortedGroups``)

A sort moves every row several times and misses the caches for most of that; here a row is moved once, and what is done
with it happens in a partition that the caches hold. So a sort of all rows is left for groups that are larger than
memory, and for operators with few pages, whose partitions would be nothing but buffers.

Few rows (FEW_ROWS) are not parted. Partitions in memory are done first, those in files afterwards, so that a sort finds
all of its pages.

Invariants: rows of a group that are equal in the order keep that in which they came. What waits lies in pages of the
pool and in files; what is being grouped lies in Arrow's memory, within the budget.

Source: DuckDB's and Spark's hash aggregates keep the values of a group in its state; Boncz, Zukowski and Nes, "Database
architecture optimized for the new bottleneck" (1999), for the partitions.

Held by: tests/window/test_partitioned_groups.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from engine.closing import close_all
from engine.graph.sort_key import SortKey
from engine.iomanager.spill_file import SpillFile
from engine.partitions.partition_files import PARTITION_PAGES_MIN, PartitionFiles, partitions_of_memory
from engine.partitions.partition_sieve import PartitionSieve
from engine.partitions.row_partitions import KeptRows, RowPartitions
from engine.partitions.spilled_rows import SpilledRows
from engine.records.arrow_functions import pc
from engine.records.batch_limits import ARROW_ROWS_MAX
from engine.records.plain_types import plain_batch, plain_schema
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter
from engine.window.group_kernels import first_kept
from engine.window.group_order import group_order
from engine.window.group_sort import sorted_in_groups
from engine.window.quantiles import quantiles
from engine.window.sorted_groups import SortedGroups, lists_between, sorted_schema

if TYPE_CHECKING:
    from engine.graph.window import SortedCall
    from engine.iomanager.spill_space import SpillSpace
    from engine.memory.page_pool import PagePool

#: rows that are grouped as they are
FEW_ROWS: Final = ARROW_ROWS_MAX
#: a partition is grouped at once up to this part of the budget: beside its rows lie copies of their values, in order
WHOLE_SHARE: Final = 3
#: ... and never more, of which texts have offsets of 32 bits
WHOLE_BYTES_MAX: Final = 1 << 30
#: of what was parted, so large a part in one partition is a group that no hash divides
SKEWED_SHARE: Final = 0.5
#: deepest level on which rows are parted
LEVEL_MAX: Final = 2


class _Source(NamedTuple):
    """Rows of a partition; the level on which they can be parted again; whether that is of no use."""

    rows: SpillFile | KeptRows
    level: int
    is_skewed: bool = False


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
        self._force_spill = force_spill
        self._whole_bytes = min(budget_bytes // WHOLE_SHARE, WHOLE_BYTES_MAX)
        self._codec = RowCodec(self._schema)
        self._codec.keep_outside(space)
        self._partition_count, block_bytes = partitions_of_memory(pool.page_limit, pool.page_size)
        self._files = PartitionFiles(space, block_bytes)
        #: rows that came before partitions were made
        self._few: list[pa.RecordBatch] = []
        self._few_rows = self._few_bytes = 0
        self._parts: RowPartitions | None = None
        self._sorting: _Sorting | None = None
        self._waiting: list[_Source] = []
        #: takes rows of pages as they are once there are partitions; None: their keys do not come first
        self.sieve = PartitionSieve(self._codec) if self._is_in_order else None
        #: of the batches that come out
        self.schema = sorted_schema(self._schema, keys, calls)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch; nothing is given out. Raises: SpillError, DiskFullError."""
        rows = plain_batch(batch if self._is_in_order else batch.select(self._names))
        if self._parts is not None:
            self._part(self._parts, rows)
        elif self._sorting is not None:
            self._sorting.add(rows)
        else:
            self._few.append(rows)
            self._few_rows += rows.num_rows
            self._few_bytes += rows.nbytes
            if self._force_spill or self._few_rows > FEW_ROWS or self._few_bytes > self._whole_bytes:
                self._begin()
        return iter(())

    def _begin(self) -> None:
        """Part the rows from now on, or sort them where there are few pages."""
        few, self._few = self._few, []
        if self._pool.page_limit < PARTITION_PAGES_MIN * self._partition_count:
            self._sorting = _Sorting(self)
            for rows in few:
                self._sorting.add(rows)
            return
        self._parts = self._new_parts(0)
        for rows in few:
            self._part(self._parts, rows)
        if self.sieve is not None:
            self.sieve.begin(self._parts)

    def _new_parts(self, level: int) -> RowPartitions:
        # a page is left for what is written again
        pages = self._partition_count if self._force_spill else self._pool.page_limit - 1
        return RowPartitions(
            self._codec, range(len(self._keys)), self._pool, self._files, self._partition_count, level, pages
        )

    @staticmethod
    def _part(parts: RowPartitions, rows: pa.RecordBatch) -> None:
        position = 0
        while (position := parts.add(rows, position)) < rows.num_rows:
            parts.spill_largest()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield a row for each group. Raises: MemoryBudgetError: a list that is larger than the budget."""
        if self.sieve is not None:
            self.sieve.end()
        if self._parts is not None:
            self._end_parts()
        elif self._sorting is not None:
            yield from self._sorting.results()
        elif self._few_rows > 0:
            yield from self._whole_groups(self._few)
        while self._waiting:
            source = self._waiting.pop()
            try:
                yield from self._groups_of(source)
            finally:
                source.rows.delete()

    def _end_parts(self) -> None:
        """Let partitions wait: those in files below those in memory, none of which is too large to be grouped."""
        parts = self._parts
        assert parts is not None, "there are partitions"
        level, behind, total = parts.level + 1, len(self._waiting), 0
        for partition in range(parts.partition_count):
            rows = parts.take(partition)
            if rows is None:
                continue
            size = rows.page_count * self._pool.page_size
            if self._force_spill or size > self._whole_bytes:
                parts.put(partition, rows)
                parts.spill(partition)
            else:
                self._waiting.append(_Source(rows, level))
                total += size
        parts.finish()
        parts.close()
        self._parts = None
        files = self._files.finish()
        total += sum(file.raw_bytes for file in files)
        self._waiting[behind:behind] = [_Source(file, level, file.raw_bytes > SKEWED_SHARE * total) for file in files]

    def _groups_of(self, source: _Source) -> Iterator[pa.RecordBatch]:
        """Group the rows of a partition: at once, or in parts."""
        batches = iter(source.rows if isinstance(source.rows, KeptRows) else self._read(source.rows))
        taken, size = list[pa.RecordBatch](), 0
        while size <= self._whole_bytes and (batch := next(batches, None)) is not None:
            taken.append(batch)
            size += batch.nbytes
        if size <= self._whole_bytes:
            yield from self._whole_groups(taken)
        elif isinstance(source.rows, KeptRows):
            self._write(_drained(taken, batches))
        else:
            yield from self._divided(source, _drained(taken, batches))

    def _read(self, file: SpillFile) -> Iterator[pa.RecordBatch]:
        # it takes no page: a sort has all of them
        return SpilledRows(self._schema, len(self._keys), None).read(file.reader())

    def _write(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write rows whose values lay outside of their pages; they are sorted when the others have left theirs."""
        writer, states = self._files.writer(0), SpilledRows(self._schema, len(self._keys), self._pool)
        try:
            states.keep_outside(self._space)
            for batch in batches:
                states.write(batch, writer)
        finally:
            states.close()
        self._waiting[0:0] = [_Source(file, LEVEL_MAX, is_skewed=True) for file in self._files.finish()]

    def _divided(self, source: _Source, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Part rows again, or sort them and yield their groups."""
        if source.level <= LEVEL_MAX and not source.is_skewed:
            self._parts = self._new_parts(source.level)
            for batch in batches:
                self._part(self._parts, batch)
            self._end_parts()
            return
        self._sorting = _Sorting(self)
        for batch in batches:
            self._sorting.add(batch)
        yield from self._sorting.results()
        self._sorting.close()
        self._sorting = None

    def _whole_groups(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the groups of rows that lie in memory."""
        rows = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
        batches.clear()
        order, bounds = group_order(rows, len(self._keys))
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
        found = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        for start in range(0, found.num_rows, ARROW_ROWS_MAX):
            yield found.slice(start, ARROW_ROWS_MAX)

    def close(self) -> None:
        """Give every page back and delete every file; idempotent."""
        waiting, self._waiting = self._waiting, []
        self._few = []
        if self.sieve is not None:
            self.sieve.end()
        steps = [each.close for each in (self._parts, self._sorting) if each is not None]
        close_all([*steps, self._files.discard, *(source.rows.delete for source in waiting)])


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

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield a row for each group."""
        self._sorter.finish()
        for batch in self._sorter.batches():
            yield from self._groups.add(batch)
        yield from self._groups.finish()

    def close(self) -> None:
        """Give pages and files back; idempotent."""
        close_all([self._groups.close, self._sorter.close])


def _of_eight_bytes(values: pa.Array) -> pa.Array:
    """Return values of a type that has the order of words as such numbers of 8 bytes."""
    if pa.types.is_floating(values.type):
        return pc.cast(values, pa.float64())
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.view(pa.int32())
    return values if values.type.bit_width == 64 else pc.cast(values, pa.int64())


def _drained(taken: list[pa.RecordBatch], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches that were taken, each of which is forgotten then, and the rest."""
    taken.reverse()
    while taken:
        yield taken.pop()
    yield from batches
