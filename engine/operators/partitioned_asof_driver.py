"""PartitionedAsofDriver: an as-of join by keys, whose rows are parted by these and joined partition by partition.

    left input  ─hash of keys─► RowPartitions ─┐ partition by partition, the smallest first
    right input ─hash of keys─► RowPartitions ─┴──┬── in memory, or in files that fit into it: AsofGroups
                                                  ├── larger: both sides parted again, by a fresh hash
                                                  └── one that holds most of what was parted, or was parted twice:
                                                      both sides sorted by (keys, time): AsofJoin

The left input is taken to its end before the right one. The memory is divided before anything is taken: OUTSIDE_PART of
the pages stands for what a partition is joined with, and for output; the rest is for rows of both sides, by what is
expected of them. Where pages are so few that partitions would be nothing but buffers, everything is sorted.

A sort moves every row several times and compares keys that are the same; here a row is moved once. A sort is left for
keys with more rows than memory holds.

Invariants: a partition is in files on both sides or on none; rows of a key keep the order in which they came.

Source: Boncz, Zukowski and Nes, "Database architecture optimized for the new bottleneck" (1999), for the partitions;
DuckDB's as-of join parts by hash and sorts each partition.

Held by: tests/operators/test_partitioned_asof.py
Held by: tests/integration/test_asof_joins.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.closing import close_all
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import AsofJoinOperator
from engine.graph.plan import JoinType
from engine.graph.sort_key import SortKey
from engine.iomanager.spill_file import SpillFile
from engine.join.asof_choice import AsofRule
from engine.join.asof_groups import SCRATCH_BYTES, AsofGroups
from engine.join.asof_join import AsofJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.operators.sort_merge_driver import FORCED_BATCH_ROWS, add_element
from engine.partitions.partition_files import (
    PARTITION_PAGES_MIN,
    PARTITIONS_MAX,
    PARTITIONS_MIN,
    PartitionFiles,
    block_size_of,
)
from engine.partitions.partition_sieve import PartitionSieve
from engine.partitions.row_partitions import KeptRows, RowPartitions
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.plain_types import plain_batch, plain_schema
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.iomanager.spill_space import SpillSpace
    from engine.memory.page_pool import PagePool
    from engine.operators.operator import Output, TaskContext
    from engine.operators.task_inputs import TaskInput

#: one page of so many is for what a partition is joined with
OUTSIDE_PART: Final = 4
#: each side has this part of the other pages at least: estimates may be wrong, and partitions have pages of their own
SIDE_SHARE_MIN: Final = 0.1
#: bytes that a row takes while its partition is joined
ROW_SCRATCH_BYTES: Final = SCRATCH_BYTES
#: what is left for output
OUTPUT_BYTES: Final = 2 << 20
#: of what was parted, so large a part in one partition is a key that no hash divides
SKEWED_SHARE: Final = 0.5
#: deepest level on which rows are parted
LEVEL_MAX: Final = 2
#: with debug.force-spill: rows of a partition that are joined at once
FORCED_PARTITION_ROWS: Final = 40


class _DoesNotFitError(Exception):
    """A partition has more rows than pages hold, or wider ones."""


class _Side:
    """Rows of one input, parted by their keys."""

    def __init__(
        self, schema: pa.Schema, keys: tuple[int, ...], pool: PagePool, space: SpillSpace, partition_count: int
    ) -> None:
        #: of the rows, as they come and as they are kept
        self.schema = plain_schema(schema)
        self.keys = keys
        self.pool, self.space = pool, space
        self.codec = RowCodec(self.schema)
        self.codec.keep_outside(space)
        self.sieve = PartitionSieve(self.codec)
        self.partition_count = partition_count
        self.files = PartitionFiles(space, block_size_of(pool.page_limit * pool.page_size, partition_count))
        self.parts: RowPartitions | None = None

    def begin(self, level: int, *, force_spill: bool) -> RowPartitions:
        """Make empty partitions."""
        count = self.partition_count
        pages = count if force_spill else self.pool.page_limit
        self.parts = RowPartitions(self.codec, self.keys[:-1], self.pool, self.files, count, level, pages)
        return self.parts

    def take(self, rows: TaskInput) -> None:
        """Part all rows of an input."""
        parts = self.parts
        assert parts is not None, "there are partitions"
        self.sieve.begin(parts)
        for batch in rows.batches(self.sieve):
            plain, position = plain_batch(batch), 0
            while (position := parts.add(plain, position)) < plain.num_rows:
                parts.spill_largest()
        self.sieve.end()

    def loaded(self, file: SpillFile) -> KeptRows | None:
        """Return the rows of a file, in pages; None: it has none. Raises: _DoesNotFitError."""
        if file.raw_bytes > self.pool.page_limit * self.pool.page_size:
            raise _DoesNotFitError
        room = RowPartitions(self.codec, self.keys[:-1], self.pool, self.files, 1, LEVEL_MAX, self.pool.page_limit)
        room.on_full(_refuse, _refuse)
        try:
            with file.reader() as reader:
                room.add_file(reader)
            return room.take(0)
        finally:
            room.close()

    def close(self) -> None:
        """Give pages and files back; idempotent."""
        self.sieve.end()
        parts, self.parts = self.parts, None
        close_all([*(() if parts is None else (parts.close,)), self.files.discard])


class _Kept(NamedTuple):
    """A partition in memory."""

    partition: int
    left: KeptRows
    right: KeptRows | None

    @property
    def row_count(self) -> int:
        return self.left.row_count + (0 if self.right is None else self.right.row_count)

    def delete(self) -> None:
        """Give its pages back; idempotent."""
        self.left.delete()
        if self.right is not None:
            self.right.delete()


class PartitionedAsofDriver:
    """The head of an as-of join by keys."""

    def __init__(self, descriptor: OperatorDescriptor, inputs: dict[int, TaskInput]) -> None:
        operator = descriptor.operator
        assert isinstance(operator, AsofJoinOperator)
        assert len(operator.left_keys) > 1, "rows are parted by keys beside the time"
        self._descriptor = descriptor
        self._operator = operator
        self._inputs = (inputs[0], inputs[1])
        self._sides: tuple[_Side, ...] = ()
        self._sorters: list[ExternalSorter] = []
        self._groups: AsofGroups | None = None
        self._kept: list[_Kept] = []
        #: left and right of partitions in files that wait, the next one last
        self._files: list[tuple[SpillFile, SpillFile]] = []

    @property
    def rows_in(self) -> int:
        """Rows taken from both inputs so far."""
        taken = sum(each.rows_in for each in self._inputs) + sum(side.sieve.row_count for side in self._sides)
        return taken + self._sorted_rows

    @property
    def bytes_in(self) -> int:
        """Bytes taken from both inputs so far."""
        return sum(each.bytes_in for each in self._inputs) + sum(side.sieve.size_bytes for side in self._sides)

    #: rows of inputs that are sorted as they come
    _sorted_rows = 0

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the memory of both sides."""
        operator, descriptor = self._operator, self._descriptor
        self._context, self._output = context, output
        share = min(max(operator.left_share, SIDE_SHARE_MIN), 1 - SIDE_SHARE_MIN)
        *pools, self._outside_bytes = context.two_page_pools(descriptor, share, OUTSIDE_PART)
        schemas = [to_arrow_schema(schema) for schema in descriptor.input_schemas]
        keys = [
            tuple(schema.get_field_index(name) for name in names)
            for schema, names in zip(schemas, (operator.left_keys, operator.right_keys), strict=True)
        ]
        count = _partitions_of(min(pool.page_limit for pool in pools))
        self._is_parted = count >= PARTITIONS_MIN
        self._sides = tuple(
            _Side(schema, columns, pool, context.spill_space(descriptor), count)
            for schema, columns, pool in zip(schemas, keys, pools, strict=True)
        )
        self._spec = JoinSpec(
            how=JoinType.LEFT,
            left=JoinInput(schemas[0], keys[0]),
            right=JoinInput(schemas[1], keys[1]),
            output=tuple(operator.output),
            output_schema=to_arrow_schema(descriptor.output_schema),
        )
        self._rule = AsofRule(operator.direction, operator.is_strict, operator.tolerance)
        self._groups = AsofGroups(self._spec, self._rule)

    def run(self) -> None:
        """Part the left, part the right, join partition by partition."""
        for result in self._results():
            self._context.check_cancelled()
            if self._output.is_satisfied:
                break
            self._output.process(result)

    def _results(self) -> Iterator[pa.RecordBatch]:
        if not self._is_parted:
            yield from self._sorted([self._arriving(side) for side in (0, 1)])
            return
        for side, rows in zip(self._sides, self._inputs, strict=True):
            side.begin(0, force_spill=self._context.force_spill)
            side.take(rows)
        yield from self._partitions(1)

    # --------------------------------------------------------------------------------------------------- partitions

    def _partitions(self, next_level: int) -> Iterator[pa.RecordBatch]:
        """Join what was parted, and what is in files when the others have left their pages."""
        groups = self._groups
        assert groups is not None, "it is open"
        self._divide()
        row_limit = self._scratch_bytes() // ROW_SCRATCH_BYTES
        groups.reserve(max([kept.row_count for kept in self._kept if kept.row_count <= row_limit], default=0))
        while self._kept:
            kept = self._kept[-1]
            if kept.row_count <= row_limit:
                yield from self._joined(kept.left, kept.right)
            else:
                self._put_back(kept)
            self._kept.pop().delete()
        groups.close()
        pairs = self._end_parts()
        total = sum(_bytes_of(pair) for pair in pairs)
        self._files += reversed(pairs)
        for pair in pairs:
            yield from self._of_files(pair, next_level, is_skewed=_bytes_of(pair) > SKEWED_SHARE * total)
            self._files.pop()
            close_all(file.delete for file in pair)

    def _divide(self) -> None:
        """Have each partition in memory wait, the largest one longest; in files on one side is in files on both."""
        left, right = (side.parts for side in self._sides)
        assert left is not None, "there are partitions"
        assert right is not None, "there are partitions"
        for partition in range(left.partition_count):
            if self._context.force_spill or any(side.files.has(partition) for side in self._sides):
                left.spill(partition)
                right.spill(partition)
                continue
            lefts, rights = left.take(partition), right.take(partition)
            if lefts is not None:
                self._kept.append(_Kept(partition, lefts, rights))
            elif rights is not None:
                rights.delete()
        self._kept.sort(key=lambda kept: -kept.row_count)

    def _put_back(self, kept: _Kept) -> None:
        """Write a partition whose rows are too many to be joined at once."""
        for side, rows in zip(self._sides, (kept.left, kept.right), strict=True):
            assert side.parts is not None, "they are not ended"
            if rows is not None:
                side.parts.put(kept.partition, rows)
            side.parts.spill(kept.partition)

    def _end_parts(self) -> list[tuple[SpillFile, SpillFile]]:
        """Return the files of both sides, partition by partition; no page is held any more."""
        for side in self._sides:
            parts, side.parts = side.parts, None
            assert parts is not None, "there are partitions"
            parts.finish()
            parts.close()
        left, right = (side.files.finish() for side in self._sides)
        return list(zip(left, right, strict=True))

    def _scratch_bytes(self) -> int:
        """Bytes for what a partition is joined with: pages that stand for it, and those that were never taken."""
        left = self._outside_bytes - min(OUTPUT_BYTES, self._outside_bytes // 2)
        return left + sum((side.pool.page_limit - side.pool.pages_peak) * side.pool.page_size for side in self._sides)

    def _joined(self, left: KeptRows, right: KeptRows | None) -> Iterator[pa.RecordBatch]:
        assert self._groups is not None, "it is open"
        return self._groups.join(left.row_pages(), None if right is None else right.row_pages())

    def _of_files(self, pair: tuple[SpillFile, SpillFile], level: int, *, is_skewed: bool) -> Iterator[pa.RecordBatch]:
        """Join a partition in files: at once, or in parts, or sorted."""
        if pair[0].raw_bytes == 0:
            return
        try:
            kept = self._load(pair)
        except _DoesNotFitError:
            if level <= LEVEL_MAX and not is_skewed:
                for side, file in zip(self._sides, pair, strict=True):
                    parts = side.begin(level, force_spill=self._context.force_spill)
                    with file.reader() as reader:
                        parts.add_file(reader)
                yield from self._partitions(level + 1)
            else:
                yield from self._sorted([self._of_file(side, file) for side, file in zip((0, 1), pair, strict=True)])
            return
        yield from self._joined(kept.left, kept.right)
        if self._groups is not None:
            self._groups.close()
        self._kept.pop().delete()

    def _load(self, pair: tuple[SpillFile, SpillFile]) -> _Kept:
        """Bring a partition into pages. Raises: _DoesNotFitError."""
        left, right = self._sides
        lefts = left.loaded(pair[0])
        assert lefts is not None, "there are left rows"
        try:
            kept = _Kept(0, lefts, right.loaded(pair[1]))
        except BaseException:
            lefts.delete()
            raise
        is_forced = self._context.force_spill and kept.row_count > FORCED_PARTITION_ROWS
        if is_forced or ROW_SCRATCH_BYTES * kept.row_count > self._scratch_bytes():
            kept.delete()
            raise _DoesNotFitError
        self._kept.append(kept)
        return kept

    # ------------------------------------------------------------------------------------------------------ sorting

    def _sorted(self, fills: list[Callable[[ExternalSorter], None]]) -> Iterator[pa.RecordBatch]:
        """Sort both sides, each filled by one of these, and yield what their merge gives."""
        force_spill = self._context.force_spill
        for side, fill in zip(self._sides, fills, strict=True):
            order = tuple(SortKey(side.schema.names[key]) for key in side.keys)
            sorter = ExternalSorter(side.schema, order, side.pool, side.space, force_spill=force_spill)
            self._sorters.append(sorter)
            fill(sorter)
            sorter.finish()
        rows = FORCED_BATCH_ROWS if force_spill else BATCH_ROWS_MAX
        size = min(BATCH_BYTES_MAX, self._outside_bytes)
        join = AsofJoin(self._spec, self._rule, self._outside_bytes)
        try:
            yield from join.join(*(sorter.row_batches(rows, size) for sorter in self._sorters))
        finally:
            join.close()
            sorters, self._sorters = self._sorters, []
            close_all(sorter.close for sorter in sorters)

    def _arriving(self, index: int) -> Callable[[ExternalSorter], None]:
        """Return what fills a sort with the rows of an input."""

        def fill(sorter: ExternalSorter) -> None:
            before = self._sorted_rows
            for element in self._inputs[index].elements():
                add_element(sorter, element)
                self._sorted_rows = before + sorter.rows_in

        return fill

    def _of_file(self, index: int, file: SpillFile) -> Callable[[ExternalSorter], None]:
        """Return what fills a sort with the rows of a file."""

        def fill(sorter: ExternalSorter) -> None:
            with file.reader() as reader:
                for block in reader:
                    self._context.check_cancelled()
                    sorter.add_rows(block)

        return fill

    def close(self) -> None:
        """Give pages and files back."""
        sorters, self._sorters = self._sorters, []
        kept, self._kept = self._kept, []
        files, self._files = self._files, []
        sides = self._sides
        close_all(
            [
                *(sorter.close for sorter in sorters),
                *(each.delete for each in kept),
                *(() if self._groups is None else (self._groups.close,)),
                *(side.close for side in sides),
                *(file.delete for pair in files for file in pair),
            ]
        )


def _partitions_of(page_count: int) -> int:
    """Return the number of partitions that have pages of their own, a power of two."""
    return min(1 << max(1, page_count // PARTITION_PAGES_MIN).bit_length() - 1, PARTITIONS_MAX)


def _bytes_of(pair: tuple[SpillFile, SpillFile]) -> int:
    return sum(file.raw_bytes for file in pair)


def _refuse(*_partition: int) -> None:
    raise _DoesNotFitError
