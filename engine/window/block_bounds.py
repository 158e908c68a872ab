"""BlockBounds: of one block's rows, where their partition, their peers and their frames begin and end.

    bounds = BlockBounds(keys, key_columns, queue)
    bounds.enter(block)                                 each block once, in order
    bounds.starts(n)   bounds.ends(n)                   of groups equal in the partition and n order keys
    bounds.open_ends()                                  of partitions, as far as they are known
    bounds.frame(frame, order_count) -> (starts, ends)

What needs rows that have not come is None, and asked for again when there are more; what is known stays.

    bound of a frame   rows                            range
    None               start, end of the partition     the same
    0                  the row                         start, end of its peers
    offset             the row + offset                first row at that distance of its key (RangeBound)

A part of a frame with EXCLUDE ends before the rows that are left out, or begins behind them.

Held by: tests/window/test_evaluator.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from engine.graph.window import GROUP
from engine.window.group_bounds import OPEN_END, GroupEnd, GroupNumber, GroupStart
from engine.window.range_bound import RangeBound
from engine.window.rank_kernels import cut, shifted

if TYPE_CHECKING:
    from engine.graph.sort_key import SortKey
    from engine.graph.window import WindowFrame
    from engine.window.block_queue import BlockQueue
    from engine.window.row_block import Positions, RowBlock


class OrderColumn(NamedTuple):
    """The order key that ``range`` counts in: its column of a block, in kernel form."""

    key: SortKey
    column: int
    type: pa.DataType


class BlockBounds:
    """Args: partition_count: keys of the partition; order: the first order key where ``range`` counts in it."""

    def __init__(self, partition_count: int, order: OrderColumn | None, queue: BlockQueue) -> None:
        self._partition_count = partition_count
        self._order = order
        self._queue = queue
        self._block: RowBlock
        self._makers: dict[Any, Any] = {}
        self._known: dict[Any, Positions] = {}

    def enter(self, block: RowBlock) -> None:
        """Go on to the next block."""
        self._block = block
        self._known = {}

    def starts(self, order_count: int = 0) -> Positions:
        """Return the begins of groups that are equal in the partition and so many order keys."""
        threshold = self._partition_count + order_count
        found = self._kept(("start", threshold), lambda: GroupStart(threshold), lambda maker: maker.of(self._block))
        assert found is not None, "what came before is known"
        return found

    def numbers(self, order_count: int) -> Positions:
        """Return the number of each row's group of peers in its partition, from 1."""
        outer, threshold = self._partition_count, self._partition_count + order_count
        found = self._kept(
            ("number", threshold), lambda: GroupNumber(outer, threshold), lambda maker: maker.of(self._block)
        )
        assert found is not None, "what came before is known"
        return found

    def ends(self, order_count: int = 0) -> Positions | None:
        """Return the ends of groups that are equal in the partition and so many order keys."""
        threshold = self._partition_count + order_count
        return self._kept(
            ("end", threshold), lambda: GroupEnd(threshold), lambda maker: maker.of(self._block, self._queue)
        )

    def open_ends(self, offset: int) -> Positions | None:
        """Return the ends of partitions, OPEN_END beyond the rows so far; None: beyond row + offset."""
        maker = self._makers.setdefault("open", GroupEnd(self._partition_count))
        ends: Positions = maker.of(self._block, self._queue, False)
        if ends.last == OPEN_END and self._queue.stop < self._block.stop + offset:
            return None
        return ends

    def frame(self, frame: WindowFrame, order_count: int) -> tuple[Positions, Positions] | None:
        """Return the begin and the end of each row's frame."""
        starts = self._bound(frame.kind, frame.start, order_count, is_end=False)
        ends = self._bound(frame.kind, frame.end, order_count, is_end=True)
        if starts is None or ends is None or not frame.part:
            return None if starts is None or ends is None else (starts, ends)
        is_behind, cuts = frame.part == "behind", None
        if frame.exclude == GROUP:
            cuts = self.ends(order_count) if is_behind else self.starts(order_count)
            if cuts is None:
                return None
        key = ("cut", frame, order_count)
        if key not in self._known:
            self._known[key] = cut(starts, ends, cuts, is_behind)
        return (self._known[key], ends) if is_behind else (starts, self._known[key])

    def _bound(self, kind: str, offset: float | str | None, order_count: int, *, is_end: bool) -> Positions | None:
        if isinstance(offset, str):
            offset = int(offset)
        if offset is None:
            return self.ends() if is_end else self.starts()
        if kind == "rows":
            return self._row_bound(int(offset) + is_end)
        if offset == 0:
            return self.ends(order_count) if is_end else self.starts(order_count)
        return self._kept(
            ("range", offset, is_end),
            lambda: self._range_bound(offset, is_end=is_end),
            lambda maker: maker.of(self._block, self.starts(), self._queue),
        )

    def _row_bound(self, offset: int) -> Positions | None:
        known = self._known.get(("row", offset))
        if known is None:
            ends = self.open_ends(max(0, offset - 1))
            if ends is None:
                return None
            known = self._known["row", offset] = shifted(self.starts(), ends, offset)
        return known

    def _range_bound(self, offset: float, *, is_end: bool) -> RangeBound:
        assert self._order is not None, "a range with an offset has one order key"
        key, column, data_type = self._order
        return RangeBound(column, data_type, offset, is_end, self._partition_count, key.descending, key.nulls_last)

    def _kept(self, key: Any, make: Callable[[], Any], find: Callable[[Any], Positions | None]) -> Positions | None:
        found = self._known.get(key)
        if found is None:
            if key not in self._makers:
                self._makers[key] = make()
            found = find(self._makers[key])
            if found is not None:
                self._known[key] = found
        return found


def keys_of(partition_by: Sequence[str], order_by: Sequence[SortKey]) -> list[str]:
    """Return the columns by which rows are sorted."""
    return [*partition_by, *(key.column for key in order_by)]
