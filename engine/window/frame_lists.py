"""FrameLists: the values of each row's frame as a list, in the order of the rows; null where none counts.

    lists.stop_of(row, block, bounds)               the rows from one on whose lists are made at once
    lists.results(block, bounds, start, stop)       their lists

Lists of one frame share their values with the next one, and each has a copy: so those of a block are made in parts of
about PART_BYTES, which leave one by one. A list that is larger than the operator's memory is an error.

Held by: tests/window/test_frame_lists.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.errors import MemoryBudgetError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.window.rank_kernels import frame_places, frames_until
from engine.window.sorted_groups import LIST_BYTES_MIN, lists_between

if TYPE_CHECKING:
    from engine.graph.window import WindowCall
    from engine.window.block_bounds import BlockBounds
    from engine.window.block_queue import BlockQueue
    from engine.window.row_block import Positions, RowBlock

#: bytes of lists that are made at once
PART_BYTES: Final = 1 << 20


class FrameLists:
    """Args: column, where: of blocks; budget_bytes: of one list."""

    def __init__(self, call: WindowCall, queue: BlockQueue, column: int, where: int | None, budget_bytes: int) -> None:
        assert call.frame is not None, "it has a frame"
        self._frame = call.frame
        self._order_count = call.order_count
        self._name = call.name
        self._queue = queue
        self._column, self._where = column, where
        self._most_bytes = max(budget_bytes, LIST_BYTES_MIN)
        self._from = 0

    def is_ready(self, bounds: BlockBounds) -> bool:
        """Whether the frames are known."""
        return bounds.frame(self._frame, self._order_count) is not None

    def stop_of(self, row: int, block: RowBlock, bounds: BlockBounds) -> int:
        """Return the row behind those whose lists are made at once, beginning with one."""
        width = block.batch.column(self._column).nbytes // block.batch.num_rows + 1
        return frames_until(*self._frames(bounds), row, PART_BYTES // width)

    def results(self, bounds: BlockBounds, start: int, stop: int) -> pa.Array:
        """Return the lists of rows of the block that is at its turn."""
        starts, ends = self._frames(bounds)
        self._from = starts.last
        places, offsets, first, behind = frame_places(starts, ends, start, stop)
        values = pc.take(self._rows(self._column, first, behind), places)
        if stop - start == 1 and values.nbytes > self._most_bytes:
            raise MemoryBudgetError(
                f"{self._name}: the list of one frame has more than {self._most_bytes} bytes, which is the memory of "
                "its operator: give the TaskManager more (taskmanager.memory.process.size), or take a smaller frame"
            )
        if self._where is None:
            is_kept = pa.repeat(scalar_of(True, pa.bool_()), len(values))
        else:
            is_kept = pc.take(self._rows(self._where, first, behind), places)
        return lists_between(values, is_kept, offsets)

    def _frames(self, bounds: BlockBounds) -> tuple[Positions, Positions]:
        found = bounds.frame(self._frame, self._order_count)
        assert found is not None, "not ready"
        return found

    def _rows(self, column: int, first: int, behind: int) -> pa.Array:
        """Return the values of a column in rows."""
        pieces, row = [], first
        while row < behind:
            block = self._queue.block_at(row)
            pieces.append(block.batch.column(column).slice(row - block.start, behind - row))
            row = block.stop
        # no row is in any of the frames
        pieces = pieces or [self._queue.block_at(self._from).batch.column(column).slice(0, 0)]
        return pa.concat_arrays(pieces) if len(pieces) > 1 else pieces[0]

    def keep_from(self, next_row: int) -> int:
        """Return the first row that a frame may still begin with."""
        return min(next_row, self._from)
