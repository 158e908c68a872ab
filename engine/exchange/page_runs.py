"""PageRuns: the elements of a gate, with pages that are there taken together.

    runs = PageRuns(gate, bytes_max) ─► runs.poll(timeout_ms)*      as gate.poll, but pages come as a list: [page, ...]

Work on one page takes less time than releasing the GIL and taking it again. So a task that takes pages one by one would
keep the GIL for all of them, and tasks that read pages would run one after the other. For several pages it is worth
releasing. The pages that one channel has are taken out of its queue at once.

Invariants: only the first page is waited for, so none is kept while a producer waits for it; the receiver of a list
recycles all of its pages. Order is kept. Thread: that of the gate.

Held by: tests/exchange/test_page_reader.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.exchange.buffer_pool import Buffer
from engine.exchange.input_gate import NOTHING_YET, InputGate, NothingYet

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.elements import OversizedRow

#: pages of a list
PAGES_MAX: Final = 16


class PageRuns:
    """Args: gate; bytes_max: a list that has so many bytes gets no more pages."""

    def __init__(self, gate: InputGate, bytes_max: int) -> None:
        self._gate = gate
        self._bytes_max = bytes_max
        #: element behind pages that is no page
        self._behind: pa.RecordBatch | OversizedRow | NothingYet | None = NOTHING_YET

    def poll(self, timeout_ms: int) -> list[Buffer] | pa.RecordBatch | OversizedRow | NothingYet | None:
        """Return the next pages or another element, None at the end, or NOTHING_YET after that time (-1: never)."""
        if self._behind is not NOTHING_YET:
            behind, self._behind = self._behind, NOTHING_YET
            return behind
        element = self._gate.poll(timeout_ms)
        if not isinstance(element, Buffer):
            return element
        pages = [element]
        try:
            self._add_ready(pages)
        except BaseException:
            for page in pages:
                page.recycle()
            raise
        return pages

    def _add_ready(self, pages: list[Buffer]) -> None:
        size_bytes = pages[0].size
        while True:
            size_bytes += self._gate.poll_pages(pages, PAGES_MAX, self._bytes_max - size_bytes)
            if len(pages) >= PAGES_MAX or size_bytes >= self._bytes_max:
                return
            element = self._gate.poll(0)
            if not isinstance(element, Buffer):
                self._behind = element
                return
            pages.append(element)
            size_bytes += element.size
