"""WindowEvaluator: window functions over rows that come sorted by partition and order keys, in one pass.

    evaluator = WindowEvaluator(schema, keys, calls, types, budget_bytes, space)
    evaluator.begin_behind(rows); evaluator.enter(batch)    of a range alone: what lies before it in its partition
    for batch in evaluator.add(sorted_batch): ...       any number; rows whose results are known, in order
    for batch in evaluator.finish(): ...
    evaluator.close()                                   always; idempotent

    sorted batch ──► KeyLevels ──► BlockQueue ──► block: bounds ──► calls ──► the batch and its results
                                       ▲                              │
                                       └──── rows a frame still has ──┘

A block leaves when all calls know their results for its rows. Most do at once; a ``lead`` waits for some rows, a total
or a share for the end of the partition. Rows that wait, or that a frame still reaches back to, lie in the queue, which
spills them: so a partition may be as large as it likes.

Work: constant for each row and call, whatever the frame; a quantile's grows with its logarithm, a list has all its
values. State: what a call carries from block to block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.graph.window import FRAME_VALUE_FUNCTIONS, RANKING_FUNCTIONS, RUNNING_FUNCTIONS, SHIFT_FUNCTIONS
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import plain_batch, plain_schema
from engine.window.block_bounds import BlockBounds, OrderColumn, keys_of
from engine.window.block_queue import BlockQueue
from engine.window.calls import FrameGroup, FrameRows, FrameValue, Ranking, RunningValue, Shift
from engine.window.frame_aggregates import FrameAggregate
from engine.window.frame_lists import FrameLists
from engine.window.frame_quantiles import FrameQuantile
from engine.window.functions import kernel_type, result_type, to_kernel
from engine.window.key_levels import KeyLevels
from engine.window.row_block import RowBlock

if TYPE_CHECKING:
    from engine.graph.sort_key import SortKey
    from engine.graph.window import WindowCall, WindowFrame
    from engine.iomanager.spill_space import SpillSpace


class WindowEvaluator:
    """Args: schema: of the sorted batches; budget_bytes: of rows that wait."""

    def __init__(
        self,
        schema: pa.Schema,
        partition_by: Sequence[str],
        order_by: Sequence[SortKey],
        calls: Sequence[WindowCall],
        budget_bytes: int,
        space: SpillSpace,
        *,
        force_spill: bool = False,
    ) -> None:
        self._schema = plain_schema(schema)
        self._budget_bytes = budget_bytes
        #: (column of the batch, kernel form) of each column that kernels read
        self._read: list[tuple[int, pa.DataType | None]] = []
        self._queue = BlockQueue(self._prepare, budget_bytes, space, force_spill=force_spill)
        self._levels = KeyLevels(keys_of(partition_by, order_by))
        self._bounds = BlockBounds(len(partition_by), self._order_column(order_by, calls), self._queue)
        self._calls: list[tuple[int, Ranking | Shift | FrameValue | FrameRows | RunningValue]] = []
        self._groups: dict[tuple[WindowFrame, int], FrameGroup] = {}
        self._lists: list[tuple[int, FrameLists]] = []
        fields = list(self._schema)
        for index, call in enumerate(calls):
            argument = None if call.argument is None else self._schema.field(call.argument).type
            fields.append(pa.field(call.name, result_type(call.function, argument)))
            self._add_call(index, call)
        #: schema of the output
        self.schema = pa.schema(fields)
        self._call_count = len(calls)
        self._next_row = 0
        self._entered = -1

    # ---- what is computed

    def _order_column(self, order_by: Sequence[SortKey], calls: Sequence[WindowCall]) -> OrderColumn | None:
        frames = [call.frame for call in calls if call.frame is not None and call.frame.kind == "range"]
        if not any(bound for frame in frames for bound in (frame.start, frame.end)):
            return None
        name = order_by[0].column
        form = kernel_type(self._schema.field(name).type)
        assert form is not None, "the key has distances"
        return OrderColumn(order_by[0], self._column(name, form), form)

    def _column(self, name: str, form: pa.DataType | None) -> int:
        """Return the index of a column in a kernel form in blocks (None: as it is)."""
        wanted = (self._schema.get_field_index(name), form)
        if wanted not in self._read:
            self._read.append(wanted)
        return self._read.index(wanted)

    def _prepare(self, batch: pa.RecordBatch) -> list[pa.Array]:
        columns = ((batch.column(index), form) for index, form in self._read)
        return [column if form is None else to_kernel(column, form) for column, form in columns]

    def _add_call(self, index: int, call: WindowCall) -> None:
        if call.function in RANKING_FUNCTIONS:
            self._calls.append((index, Ranking(call)))
        elif call.function == "count_all":
            self._calls.append((index, FrameRows(call)))
        elif call.function in RUNNING_FUNCTIONS:
            assert call.argument is not None, "it has an argument"
            self._calls.append((index, RunningValue(call, self._column(call.argument, pa.float64()))))
        elif call.function == "list":
            assert call.argument is not None, "it has an argument"
            column = self._schema.get_field_index(call.argument)
            where = None if call.default is None else self._schema.get_field_index(call.default)
            self._lists.append((index, FrameLists(call, self._queue, column, where, self._budget_bytes)))
        elif call.function in SHIFT_FUNCTIONS or call.function in FRAME_VALUE_FUNCTIONS:
            assert call.argument is not None, "it has an argument"
            column = self._schema.get_field_index(call.argument)
            if call.function in FRAME_VALUE_FUNCTIONS:
                self._calls.append((index, FrameValue(call, self._queue, column)))
            else:
                default = None if call.default is None else self._schema.get_field_index(call.default)
                self._calls.append((index, Shift(call, self._queue, column, default)))
        else:
            self._add_aggregate(index, call)

    def _add_aggregate(self, index: int, call: WindowCall) -> None:
        assert call.frame is not None, "an aggregate has a frame"
        assert call.argument is not None, "it has an argument"
        group = self._groups.setdefault(
            (call.frame, call.order_count), FrameGroup(call.frame, call.order_count, self._queue)
        )
        argument = self._schema.field(call.argument).type
        form = None if call.function == "count" else kernel_type(argument)
        if pa.types.is_decimal128(argument) and form is not None:
            form = argument
        column = self._column(call.argument, form)
        most_bytes = max(self._budget_bytes, 1 << 16)
        aggregate: FrameAggregate | FrameQuantile
        if call.function == "quantile":
            aggregate = FrameQuantile(call.factor, column, argument, group.slides, most_bytes, call.name)
        else:
            aggregate = FrameAggregate(call.function, column, form, group.slides, most_bytes, call.name)
        group.add(index, aggregate, result_type(call.function, argument))

    # ---- a range of a partition

    @property
    def reads_before(self) -> bool:
        """Whether the values of rows before a range are needed, beside their number."""
        return bool(self._groups)

    def begin_behind(self, rows: int) -> None:
        """Begin behind so many rows of the one partition: of a window that ``optimizer.window_ranges`` divides."""
        for _, call in self._calls:
            if isinstance(call, Ranking | FrameRows):
                call.rows_before = rows

    def enter(self, batch: pa.RecordBatch) -> None:
        """Take some of the rows before the range, in whatever order, for running aggregates."""
        plain = plain_batch(batch)
        no_levels = pa.repeat(scalar_of(0, pa.uint8()), plain.num_rows)
        block = RowBlock(0, plain, [*self._prepare(plain), no_levels])
        for group in self._groups.values():
            group.enter(block)

    # ---- the pass

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch (not empty) and yield what is complete."""
        plain = plain_batch(batch)
        self._queue.add(plain, self._levels.of(plain))
        yield from self._complete()
        self._queue.shrink()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield all that is left."""
        self._queue.has_ended = True
        yield from self._complete()

    def _complete(self) -> Iterator[pa.RecordBatch]:
        while (block := self._queue.next_block(self._next_row)) is not None:
            if self._entered != block.start:
                self._bounds.enter(block)
                self._entered = block.start
            works = [*(call for _, call in (*self._calls, *self._lists)), *self._groups.values()]
            # all of them are asked, so that each looks at the rows while they are in memory
            ready = [work.is_ready(self._bounds) for work in works]
            if not all(ready):
                return
            yield from self._results(block)
            self._next_row = block.stop
            self._queue.drop(min([block.stop, *(work.keep_from(block.stop) for work in works)]))

    def _results(self, block: RowBlock) -> Iterator[pa.RecordBatch]:
        columns: list[pa.Array | None] = [None] * self._call_count
        for index, call in self._calls:
            columns[index] = call.results(block, self._bounds)
        for group in self._groups.values():
            for index, column in zip(group.indices, group.all_results(block, self._bounds), strict=True):
                columns[index] = column
        row = block.start
        while row < block.stop:
            stop = min((each.stop_of(row, block, self._bounds) for _, each in self._lists), default=block.stop)
            for index, each in self._lists:
                columns[index] = each.results(self._bounds, row, stop)
            first, count = row - block.start, stop - row
            kept = (one if len(one) == count else one.slice(first, count) for one in (*block.batch.columns, *columns))
            yield pa.RecordBatch.from_arrays(list(kept), schema=self.schema)
            row = stop

    def close(self) -> None:
        """Give back what waits."""
        self._queue.close()
