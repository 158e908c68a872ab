"""SubpartitionView: a reader of one subpartition, wherever its data is.

    view.poll()* ─► view.consumed() ─► view.release()         used by one thread; ``release`` by any

    PipelinedView   a queue, read once                        pipelined_partition
    BlockingView    buffers in memory, then blocks of a file  blocking_data
    RangeView       sorted runs, merged on the way            range_view

Source: Flink's ResultSubpartitionView.
Held by: tests/exchange/test_result_partition.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from engine.exchange.buffer_pool import Buffer


class SubpartitionView(Protocol):
    """The source of a local channel, and of a connection that sends."""

    def poll(self) -> tuple[Any, bool]:
        """Return (element or None, whether more is known to follow)."""

    def poll_pages(self, _pages: list[Buffer], _count_max: int, _bytes_max: int, /) -> int:
        """Add the next pages of rows to a list, up to a number of pages and of bytes; return their bytes.

        Where pages come one by one, none is added.
        """
        return 0

    def backlog(self) -> int:
        """Return the number of ready elements with data."""

    def consumed(self) -> None:
        """Say that END_OF_PARTITION was read."""

    def release(self) -> None:
        """Stop reading. Idempotent."""
