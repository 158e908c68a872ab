"""RangeView: the rows of a range of keys of a sorted result, in order, as pages for another process.

    open_pages() ─► poll()*: page │ fragments of a row larger than a page │ END_OF_PARTITION ─► release()

The runs are merged some pages ahead, by a disk reader where there is one (``read_ahead``).

Held by: tests/exchange/test_sorted_partition.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from engine.exchange.buffer_pool import Buffer, BufferKind, unpooled_buffer
from engine.exchange.elements import END_OF_PARTITION, EndOfPartitionEvent
from engine.exchange.read_ahead import ReadAhead
from engine.exchange.subpartition_view import SubpartitionView

if TYPE_CHECKING:
    from engine.exchange.read_ahead import DiskReaders

#: number of ready pages that is reported for a range: the true number is not known beforehand
_BACKLOG: Final = 8
#: pages of a range that are merged at a time
_PAGES_AT_ONCE: Final = 8


class OrderedPages(Protocol):
    """Rows of a range in order: ``engine.sort.sorted_runs.RangePages``."""

    def fill(self, target: bytearray | memoryview) -> int:
        """Copy whole rows: their bytes, 0 at the end, or minus the bytes of a row that needs more."""
        ...

    def close(self) -> None:
        """Close files; idempotent."""
        ...


class RangeView(SubpartitionView):
    """One reader of a range. Used by one thread.

    Args:
        open_pages: begins to merge; called with the first page.
        page_bytes: of the reader's buffers.
        disk: merges in place of the thread that polls.
        notify: told when there is a page that was waited for.
    """

    def __init__(
        self,
        open_pages: Callable[[], OrderedPages],
        page_bytes: int,
        disk: DiskReaders | None,
        notify: Callable[[], None],
    ) -> None:
        self._open_pages = open_pages
        self._pages: OrderedPages | None = None
        self._page = bytearray(page_bytes)
        self._large: memoryview | None = None
        self._is_ended = False
        self._ahead = ReadAhead(self._load, disk, notify, self._close)

    def poll(self) -> tuple[Buffer | EndOfPartitionEvent | None, bool]:
        """Return (page, fragment of a large row, the end, or None while nothing is there; whether more may follow)."""
        element, is_coming = self._ahead.take()
        if element is None and not is_coming:
            self._is_ended = True
            return END_OF_PARTITION, False
        return element, element is not None

    def backlog(self) -> int:
        """Return some pages until the end is reached."""
        return 0 if self._is_ended else _BACKLOG

    def consumed(self) -> None:
        """Do nothing: the runs stay."""

    def release(self) -> None:
        """Close files. Idempotent."""
        self._ahead.release()

    def _load(self) -> list[Buffer]:
        if self._pages is None:
            self._pages = self._open_pages()
        pages: list[Buffer] = []
        while len(pages) < _PAGES_AT_ONCE:
            page = self._next_page(self._pages)
            if page is None:
                break
            pages.append(page)
        return pages

    def _next_page(self, pages: OrderedPages) -> Buffer | None:
        """Return the next page, or fragment of a large row; None at the end."""
        if self._large is None:
            used = pages.fill(self._page)
            if used > 0:
                return unpooled_buffer(memoryview(self._page)[:used])
            if used == 0:
                return None
            row = bytearray(-used)
            pages.fill(row)
            self._large = memoryview(row)
        fragment, rest = self._large[: len(self._page)], self._large[len(self._page) :]
        self._large = rest if rest else None
        return unpooled_buffer(fragment, BufferKind.FRAGMENT if rest else BufferKind.LAST_FRAGMENT)

    def _close(self) -> None:
        if self._pages is not None:
            self._pages.close()
        self._large = None
