"""PartitionedAsofDriver: an as-of join by keys, whose rows are partitioned by these and joined partition by partition.

    left input  ─hash of keys─► RowPartitions ─┐ partition by partition, the smallest first
    right input ─hash of keys─► RowPartitions ─┴──┬── in memory, or in files that fit into it: AsofGroups
                                                  ├── larger: both sides partitioned again (``recursion``)
                                                  └── not made smaller by that: both sides sorted by (keys, time),
                                                      and merged: AsofJoin

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
from engine.graph.said_operators import JoinType
from engine.graph.sort_key import SortKey
from engine.iomanager.spill_file import SpillFile
from engine.join.asof_choice import AsofRule
from engine.join.asof_groups import SCRATCH_BYTES, AsofGroups
from engine.join.asof_join import AsofJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.operators.sort_merge_driver import FORCED_BATCH_ROWS, add_element
from engine.partitions.parted_input import PartedInput, TooLargeError
from engine.partitions.partition_files import PARTITIONS_MIN, block_size_of, partitions_of_pages
from engine.partitions.recursion import Recursion, WaitingPart, parts_of_files
from engine.partitions.row_partitions import KeptRows
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.plain_types import plain_batch, plain_schema
from engine.sort.external_sorter import ExternalSorter

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.operators.operator import Output, TaskContext
    from engine.operators.task_inputs import TaskInput

#: one page of so many is for what a partition is joined with
OUTSIDE_PART: Final = 4
#: each side has this part of the other pages at least: estimates may be wrong, and partitions have pages of their own
SIDE_SHARE_MIN: Final = 0.1
#: bytes that a row takes while its partition is joined
ROW_SCRATCH_BYTES: Final = SCRATCH_BYTES
#: bytes left for output
OUTPUT_BYTES: Final = 2 << 20
#: rows of a partition that are joined at once, with debug.force-spill
FORCED_PARTITION_ROWS: Final = 40


class _Kept(NamedTuple):
    """A partition in memory."""

    partition: int
    left: KeptRows
    right: KeptRows | None

    @property
    def row_count(self) -> int:
        return self.left.row_count + (0 if self.right is None else self.right.row_count)

    @property
    def page_count(self) -> int:
        return self.left.page_count + (0 if self.right is None else self.right.page_count)

    def delete(self) -> None:
        """Release its pages; idempotent."""
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
        self._sides: tuple[PartedInput, ...] = ()
        self._sorters: list[ExternalSorter] = []
        self._groups: AsofGroups | None = None
        self._kept: list[_Kept] = []
        #: left and right rows of partitions in files
        self._recursion = Recursion[WaitingPart]()

    @property
    def rows_in(self) -> int:
        """Rows taken from both inputs so far."""
        taken = sum(each.rows_in for each in self._inputs) + sum(side.router.row_count for side in self._sides)
        return taken + self._sorted_rows

    @property
    def bytes_in(self) -> int:
        """Bytes taken from both inputs so far."""
        return sum(each.bytes_in for each in self._inputs) + sum(side.router.size_bytes for side in self._sides)

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
        self._keys = keys
        count = partitions_of_pages(min(pool.page_limit for pool in pools))
        self._is_parted = count >= PARTITIONS_MIN
        self._sides = tuple(
            PartedInput(
                plain_schema(schema),
                columns[:-1],
                pool,
                context.spill_space(descriptor),
                count,
                block_size_of(pool.page_limit * pool.page_size, count),
            )
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
            self._begin(side, 0)
            side.begin_router()
            for batch in rows.batches(side.router):
                side.add(plain_batch(batch))
            side.router.end()
        yield from self._partitions()
        yield from self._recursion.results(self)

    def _begin(self, side: PartedInput, level: int) -> None:
        side.begin(level, 0 if self._context.force_spill else side.pool.page_limit)

    # --------------------------------------------------------------------------------------------------- partitions

    def _partitions(self) -> Iterator[pa.RecordBatch]:
        """Join the partitions in memory; those in files wait until the others have left their pages."""
        groups = self._groups
        assert groups is not None, "it is open"
        level, kept_bytes = self._sides[0].parts.level + 1, 0
        self._divide()
        row_limit = self._scratch_bytes() // ROW_SCRATCH_BYTES
        groups.reserve(max([kept.row_count for kept in self._kept if kept.row_count <= row_limit], default=0))
        while self._kept:
            kept = self._kept[-1]
            if kept.row_count <= row_limit:
                kept_bytes += kept.page_count * self._sides[0].pool.page_size
                yield from self._joined(kept.left, kept.right)
            else:
                self._put_back(kept)
            self._kept.pop().delete()
        groups.close()
        files = [side.end() for side in self._sides]
        self._recursion.add(reversed(parts_of_files(files, level, kept_bytes)))

    def _divide(self) -> None:
        """Have each partition in memory wait, the largest one longest; in files on one side is in files on both."""
        left, right = (side.parts for side in self._sides)
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
            if rows is not None:
                side.parts.put(kept.partition, rows)
            side.parts.spill(kept.partition)

    def _scratch_bytes(self) -> int:
        """Bytes for what a partition is joined with: pages that stand for it, and those that were never taken."""
        left = self._outside_bytes - min(OUTPUT_BYTES, self._outside_bytes // 2)
        return left + sum((side.pool.page_limit - side.pool.pages_peak) * side.pool.page_size for side in self._sides)

    def _joined(self, left: KeptRows, right: KeptRows | None) -> Iterator[pa.RecordBatch]:
        assert self._groups is not None, "it is open"
        return self._groups.join(left.row_pages(), None if right is None else right.row_pages())

    # ------------------------------------------------------------------------------------------- parts (``recursion``)

    def in_memory(self, part: WaitingPart) -> Iterator[pa.RecordBatch] | None:
        """Join a partition in files at once; None: its rows are too many."""
        left, right = part.files
        if left.raw_bytes == 0:
            return iter(())
        try:
            return self._loaded(self._load(left, right))
        except TooLargeError:
            return None

    def _loaded(self, kept: _Kept) -> Iterator[pa.RecordBatch]:
        yield from self._joined(kept.left, kept.right)
        if self._groups is not None:
            self._groups.close()
        self._kept.pop().delete()

    def divided(self, part: WaitingPart) -> Iterator[pa.RecordBatch]:
        """Partition both sides again, and join what stays in memory."""
        for side, file in zip(self._sides, part.files, strict=True):
            self._begin(side, part.level)
            side.add_file(file)
        return self._partitions()

    def undivided(self, part: WaitingPart) -> Iterator[pa.RecordBatch]:
        """Sort both sides and merge them."""
        return self._sorted([self._of_file(file) for file in part.files])

    def _load(self, left: SpillFile, right: SpillFile) -> _Kept:
        """Bring a partition into pages. Raises: TooLargeError."""
        lefts = self._sides[0].loaded(left)
        assert lefts is not None, "there are left rows"
        try:
            kept = _Kept(0, lefts, self._sides[1].loaded(right))
        except BaseException:
            lefts.delete()
            raise
        is_forced = self._context.force_spill and kept.row_count > FORCED_PARTITION_ROWS
        if is_forced or ROW_SCRATCH_BYTES * kept.row_count > self._scratch_bytes():
            kept.delete()
            raise TooLargeError
        self._kept.append(kept)
        return kept

    # ------------------------------------------------------------------------------------------------------ sorting

    def _sorted(self, fills: list[Callable[[ExternalSorter], None]]) -> Iterator[pa.RecordBatch]:
        """Sort both sides, each filled by one of these, and yield what their merge gives."""
        force_spill = self._context.force_spill
        for side, keys, fill in zip(self._sides, self._keys, fills, strict=True):
            order = tuple(SortKey(side.schema.names[key]) for key in keys)
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
        """Return a function that fills a sort with the rows of an input."""

        def fill(sorter: ExternalSorter) -> None:
            before = self._sorted_rows
            for element in self._inputs[index].elements():
                add_element(sorter, element)
                self._sorted_rows = before + sorter.rows_in

        return fill

    def _of_file(self, file: SpillFile) -> Callable[[ExternalSorter], None]:
        """Return a function that fills a sort with the rows of a file."""

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
        close_all(
            [
                *(sorter.close for sorter in sorters),
                *(each.delete for each in kept),
                *(() if self._groups is None else (self._groups.close,)),
                *(side.close for side in self._sides),
                self._recursion.close,
            ]
        )
