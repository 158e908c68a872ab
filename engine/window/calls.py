"""Calls of window functions at work: what each needs to know of a block, its results, and the rows it still needs.

    call.is_ready(bounds)         whether all that it needs is known for the block's rows
    call.results(block, bounds)   its column for the block
    call.keep_from(next_row)      the first row that it may ask for again when the next one is at its turn

Of a range of a partition, ``rows_before`` is what lies in front of it: rankings and sizes count those rows too.

    Ranking        from bounds alone                          row_number rank dense_rank percent_rank cume_dist ntile
    Shift          the value at row - n, row + n              lag lead
    RunningValue   from the value of the row before           running_product ewm_mean
    FrameValue     the value at a row of the frame            first_value last_value nth_value
    FrameRows      the size of the frame                      count_all
    FrameGroup     aggregates of one frame, side by side: they share the blocks that rows enter and leave from

Held by: tests/window/test_evaluator.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.choices import if_else
from engine.records.plain_scalars import scalar_of
from engine.window import rank_kernels
from engine.window.functions import from_kernel
from engine.window.row_values import RowValues
from engine.window.running_kernels import Running

if TYPE_CHECKING:
    from engine.graph.window import WindowCall, WindowFrame
    from engine.window.block_bounds import BlockBounds
    from engine.window.block_queue import BlockQueue
    from engine.window.frame_aggregates import FrameAggregate
    from engine.window.frame_quantiles import FrameQuantile
    from engine.window.row_block import Positions, RowBlock


class Ranking:
    """A row's place in its partition."""

    def __init__(self, call: WindowCall) -> None:
        self._call = call
        self.rows_before = 0

    def is_ready(self, bounds: BlockBounds) -> bool:
        """Whether ends are known that it needs."""
        peers_ready = self._call.function != "cume_dist" or bounds.ends(self._call.order_count) is not None
        needs_end = self._call.function in ("percent_rank", "cume_dist", "ntile")
        return not (needs_end and bounds.ends() is None) and peers_ready

    def results(self, _block: RowBlock, bounds: BlockBounds) -> pa.Array:
        """Return the column of results."""
        found = self._ranks(bounds)
        return pc.add(found, scalar_of(self.rows_before, pa.int64())) if self.rows_before else found

    def _ranks(self, bounds: BlockBounds) -> pa.Array:
        starts, order_count = bounds.starts(), self._call.order_count
        if self._call.function == "row_number":
            return rank_kernels.offset_from(starts)
        if self._call.function == "dense_rank":
            return bounds.numbers(order_count).array()
        if self._call.function == "rank":
            return rank_kernels.ranks(starts, bounds.starts(order_count))
        ends = bounds.ends()
        assert ends is not None, "not ready"
        if self._call.function == "ntile":
            return rank_kernels.tiles(starts, ends, self._call.count)
        if self._call.function == "percent_rank":
            return rank_kernels.percent_ranks(starts, bounds.starts(order_count), ends)
        peer_ends = bounds.ends(order_count)
        assert peer_ends is not None, "not ready"
        return rank_kernels.cumulative(starts, peer_ends, ends)

    def keep_from(self, next_row: int) -> int:
        """No row is asked for again."""
        return next_row


class Shift:
    """The value so many rows before or behind."""

    def __init__(self, call: WindowCall, queue: BlockQueue, column: int, default: int | None) -> None:
        self._offset = call.count if call.function == "lead" else -call.count
        self._queue = queue
        self._values = RowValues(column)
        self._default = default
        self._partition = 0

    def is_ready(self, bounds: BlockBounds) -> bool:
        """Whether the rows behind are there."""
        return self._offset <= 0 or bounds.open_ends(self._offset) is not None

    def results(self, block: RowBlock, bounds: BlockBounds) -> pa.Array:
        """Return the column of results."""
        starts = bounds.starts()
        ends = starts
        if self._offset > 0:
            open_ends = bounds.open_ends(self._offset)
            assert open_ends is not None, "not ready"
            ends = open_ends
        rows = rank_kernels.shifted(starts, ends, self._offset, True)
        self._partition = starts.last
        found = self._values.at(rows, self._queue)
        if self._default is None:
            return found
        return if_else(pc.less(rows.array(), 0), block.batch.column(self._default), found)

    def keep_from(self, next_row: int) -> int:
        """Return the row that a lag of the next one asks for."""
        return min(next_row, max(self._partition, next_row + self._offset))


class RunningValue:
    """A value that follows from that of the row before."""

    def __init__(self, call: WindowCall, column: int) -> None:
        self._column = column
        self._running = Running(call.factor, call.count)

    def is_ready(self, _bounds: BlockBounds) -> bool:
        """All that it needs has come."""
        return True

    def results(self, block: RowBlock, bounds: BlockBounds) -> pa.Array:
        """Return the column of results."""
        return self._running.of(block, self._column, bounds.starts())

    def keep_from(self, next_row: int) -> int:
        """No row is asked for again."""
        return next_row


class FrameValue:
    """The value at a row of the frame."""

    def __init__(self, call: WindowCall, queue: BlockQueue, column: int) -> None:
        assert call.frame is not None, "it has a frame"
        self._frame: WindowFrame = call.frame
        self._order_count = call.order_count
        self._place = {"first_value": 1, "last_value": -1}.get(call.function, call.count)
        self._queue = queue
        self._values = RowValues(column)
        self._from = 0

    def is_ready(self, bounds: BlockBounds) -> bool:
        """Whether the frames are known."""
        return bounds.frame(self._frame, self._order_count) is not None

    def results(self, _block: RowBlock, bounds: BlockBounds) -> pa.Array:
        """Return the column of results."""
        found = bounds.frame(self._frame, self._order_count)
        assert found is not None, "not ready"
        starts, ends = found
        # what enters a frame that has no first row of its own is new, and the value from before is kept
        self._from = min(starts.last, ends.last) if self._frame.slides else ends.last
        return self._values.at(rank_kernels.nth_rows(starts, ends, self._place), self._queue)

    def keep_from(self, next_row: int) -> int:
        """Return the first row that a frame may still begin with."""
        return min(next_row, self._from)


class FrameRows:
    """Number of rows of the frame."""

    def __init__(self, call: WindowCall) -> None:
        assert call.frame is not None, "it has a frame"
        self._frame: WindowFrame = call.frame
        self._order_count = call.order_count
        self.rows_before = 0

    def is_ready(self, bounds: BlockBounds) -> bool:
        """Whether the frames are known."""
        return bounds.frame(self._frame, self._order_count) is not None

    def results(self, _block: RowBlock, bounds: BlockBounds) -> pa.Array:
        """Return the column of results."""
        found = bounds.frame(self._frame, self._order_count)
        assert found is not None, "not ready"
        sizes = rank_kernels.frame_rows(*found)
        return pc.add(sizes, scalar_of(self.rows_before, pa.int64())) if self.rows_before else sizes

    def keep_from(self, next_row: int) -> int:
        """No row is asked for again."""
        return next_row


class FrameGroup:
    """Aggregates of one frame; ``indices`` are those of their calls."""

    def __init__(self, frame: WindowFrame, order_count: int, queue: BlockQueue) -> None:
        self._frame = frame
        self._order_count = order_count
        self._queue = queue
        self._entering: RowBlock | None = None
        self._leaving: RowBlock | None = None
        self.indices: list[int] = []
        self._aggregates: list[FrameAggregate | FrameQuantile] = []
        self._types: list[pa.DataType] = []

    @property
    def slides(self) -> bool:
        """Whether rows leave the frame."""
        return self._frame.slides

    def add(self, index: int, aggregate: FrameAggregate | FrameQuantile, data_type: pa.DataType) -> None:
        """Take one more aggregate; data_type: of its result."""
        self.indices.append(index)
        self._aggregates.append(aggregate)
        self._types.append(data_type)

    def enter(self, block: RowBlock) -> None:
        """Have rows that lie before all others enter the frames of the first partition."""
        for aggregate in self._aggregates:
            aggregate.enter(block)

    def is_ready(self, bounds: BlockBounds) -> bool:
        """Whether the frames are known."""
        return bounds.frame(self._frame, self._order_count) is not None

    def all_results(self, block: RowBlock, bounds: BlockBounds) -> Sequence[pa.Array]:
        """Return the columns of results."""
        found = bounds.frame(self._frame, self._order_count)
        assert found is not None, "not ready"
        for aggregate in self._aggregates:
            aggregate.begin(block)
        self._run(block, bounds.starts(), *found)
        return [from_kernel(each.finish(), kind) for each, kind in zip(self._aggregates, self._types, strict=True)]

    def _run(self, block: RowBlock, partitions: Positions, starts: Positions, ends: Positions) -> None:
        """Walk over the rows; all aggregates stop where one needs another block."""
        row = block.start
        while row < block.stop:
            entering, leaving = self._entering or block, self._leaving or block
            reached = {each.run(row, block, partitions, starts, ends, entering, leaving) for each in self._aggregates}
            (row,) = reached
            if row < block.stop:
                self._entering = self._block_of(self._aggregates[0].end_row, entering)
                self._leaving = self._block_of(self._aggregates[0].start_row, leaving) if self.slides else block

    def _block_of(self, row: int, block: RowBlock) -> RowBlock:
        if block.start <= row < block.stop or row >= self._queue.stop:
            return block
        return self._queue.block_at(row)

    def keep_from(self, next_row: int) -> int:
        """Return the first row that has not left the frames, or not entered them."""
        first = self._aggregates[0]
        return min(next_row, first.start_row if self.slides else first.end_row)
