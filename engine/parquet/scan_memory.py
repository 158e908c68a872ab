"""ScanMemory: what a task that reads Parquet files may hold, and how wide the rows were that it has seen.

    memory = ScanMemory(new_space)
    memory.check(path, group, pages)               MemoryBudgetError for a column that no reader can hold
    memory.hold(pages) -> bool                     what columns of a row group take; False: there is not as much
    memory.hold_ahead(size) -> bool                what is fetched of a row group that is read later, from any thread
    memory.take_ahead(size)                        it is read now: it counts as what is held
    memory.passes(read, sizes, rows)               the batches, through a file; None: there is no space for files
    memory.expect(row_bytes)
    memory.row_bytes  memory.batch_bytes_max(row_bytes)  memory.rows_at_once(row_bytes, rows_max)
    memory.end_split()  memory.let_go()  memory.close()

One row group is held at a time. Widths outlive the file that they were seen in: the files of a source are alike.

Held by: tests/parquet/test_column_passes.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.memory.budget import LEAST_BYTES, Kind, Role, process_budget
from engine.parquet.column_passes import PartReader, read_in_passes
from engine.parquet.footers import GroupPages, GroupPlan
from engine.parquet.pages import check_fits
from engine.records.batch_limits import BATCH_BYTES_MAX
from engine.records.wide_rows import average_width

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace

#: bytes of a batch of narrow rows: of less, what every operator pays for a batch is seen beside decoding
NARROW_BATCH_BYTES_MAX: Final = 8 << 20
_NARROW_ROW_BYTES: Final = 128
#: batches that row groups read together may be at most
_RUN_BATCHES: Final = 4
#: bytes of a batch when there is very little memory for each reader
BATCH_BYTES_MIN: Final = 128 << 10
#: parts of a reader, of which there are Role.READER, that may be fetched ahead
_AHEAD_PARTS: Final = 4
#: a row group that holds so many bytes while it is read leaves blocks that are given back
_RELEASED_BYTES: Final = 8 << 20
#: part of what Arrow may have that is given back at the end, where that is less
_RELEASED_SHARE: Final = 128


class ScanMemory:
    """The memory of one task's scan. Thread: the task's."""

    def __init__(self, new_space: Callable[[], SpillSpace] | None) -> None:
        self._new_space = new_space
        self._lock = threading.Lock()
        #: bytes of the row group that is read, and of those that are read later; guarded by: self._lock
        self._now_bytes = self._ahead_bytes = 0
        #: function that ends holding row groups that are read later
        self.drop_ahead: Callable[[], None] = lambda: None
        #: The reservation for the row group that is read.
        self._reserved = process_budget.reserve(Kind.ARROW, role=Role.READER)
        #: The bytes that the last row group held while it was read.
        self._held_bytes = 0
        #: The width of the rows that came out last.
        self._row_bytes = 0.0
        #: The width of rows, decoded or as they came out; 0.0 before the first one.
        self.row_bytes = 0.0
        #: The width of rows, and the part of memory, with which ``batches`` was asked last.
        self._fitted = 0.0, 0
        #: Widths of rows as a filter decoded them, by the first column of the stream.
        self._decoded_widths: dict[str, float] = {}

    @property
    def part_bytes(self) -> int:
        """The bytes that a batch of one reader may have now."""
        return self._reserved.part_bytes

    def check(self, path: str, group: int, pages: GroupPages) -> None:
        """Raise MemoryBudgetError for a row group with a column that does not fit alone."""
        self._held_bytes = pages.held_bytes
        limit = process_budget.record_limit
        if pages.held_bytes > limit:
            check_fits(path, group, pages.held, limit, is_at_once=pages.row_count == 1)

    def sizes(self, pages: GroupPages) -> dict[str, int]:
        """Return the bytes to reserve for each column: no more than a row group has that is smaller than a batch."""
        return dict.fromkeys(pages.held, self._column_bytes(pages)) if self._is_small(pages) else pages.held

    def _is_small(self, pages: GroupPages) -> bool:
        return pages.group_bytes <= LEAST_BYTES // 2 and pages.group_bytes <= self._reserved.part_bytes

    @staticmethod
    def _column_bytes(pages: GroupPages) -> int:
        return pages.group_bytes // max(1, len(pages.held))

    def hold(self, pages: GroupPages) -> bool:
        """Reserve what columns take while they are read; False: there is not as much, and nothing is held."""
        # A page that is opened is there twice for a moment.
        wanted = pages.held_bytes_max
        if self._is_small(pages):
            wanted = self._column_bytes(pages) * (len(pages.held) + 1) if pages.held else 0
        if wanted <= self._now_bytes <= 2 * wanted:  # of a row group before, which was about as large
            return True
        is_reserved = self._resize(wanted)
        if not is_reserved and self._ahead_bytes:
            self.drop_ahead()
            is_reserved = self._resize(wanted)
        if not is_reserved:
            self._resize(0)  # what the last row group had
        return is_reserved

    def batches(self, plans: Sequence[GroupPlan | None], rows_max: int) -> list[GroupPlan]:
        """Return the first plans as far as each row group may be read as one batch; None ends them.

        The first row group of a task may not, unless its width was expected: how wide texts are is not known.
        """
        found: list[GroupPlan] = []
        seen, part = self._fitted = self.row_bytes, max(BATCH_BYTES_MIN, self._reserved.part_bytes)
        narrow, wide = min(part, NARROW_BATCH_BYTES_MAX), min(part, BATCH_BYTES_MAX)
        for plan in plans if seen else ():
            if plan is None or not 1 < plan.pages.row_count <= rows_max:
                break
            row_bytes = max(seen, plan.pages.row_bytes)
            if plan.pages.row_count * row_bytes > (narrow if row_bytes <= _NARROW_ROW_BYTES else wide):
                break
            found.append(plan)
        return found

    @property
    def fits_still(self) -> bool:
        """Whether each of the row groups that ``batches`` returned may still be one batch."""
        width, part = self._fitted
        return self.row_bytes <= width and part <= max(BATCH_BYTES_MIN, self._reserved.part_bytes)

    def expect(self, row_bytes: float) -> None:
        """Take rows for so wide until some have come."""
        self.row_bytes = self.row_bytes or row_bytes

    def rows_together(self, pages: GroupPages) -> float:
        """Return the rows of row groups of which columns may be decoded together.

        Should a filter leave all rows, which it did not do before, they are several batches, cut where they are.
        """
        row_bytes = max(self.row_bytes, pages.row_bytes)
        part = self._reserved.part_bytes
        return min(_RUN_BATCHES * _batch_bytes_max(row_bytes, part), part) / row_bytes

    def hold_whole(self, pages: GroupPages) -> bool:
        """Reserve what row groups take of which each is read at once; False: there is not as much."""
        if pages.held_bytes > process_budget.record_limit:
            return False
        self._held_bytes = pages.held_bytes
        return self.hold(pages)

    def _resize(self, size_bytes: int) -> bool:
        with self._lock:
            is_reserved = self._reserved.resize(size_bytes + self._ahead_bytes)
            if is_reserved:
                self._now_bytes = size_bytes
            return is_reserved

    def hold_ahead(self, size_bytes: int) -> bool:
        """Reserve what is fetched of a row group that is read later; False: there is not as much."""
        with self._lock:
            ahead = self._ahead_bytes + size_bytes
            part = self._reserved.part_bytes
            # A row group that is larger than that is fetched alone, if there is room beside the one that is read.
            if ahead > _AHEAD_PARTS * part and (
                self._ahead_bytes or self._now_bytes + ahead > Role.READER.value * part
            ):
                return False
            is_reserved = self._reserved.resize(self._now_bytes + ahead)
            if is_reserved:
                self._ahead_bytes = ahead
            return is_reserved

    def take_ahead(self, size_bytes: int) -> None:
        """Count what was fetched ahead as held for the row group that is read."""
        with self._lock:
            self._ahead_bytes -= size_bytes
            self._now_bytes += size_bytes

    def hold_fetched(self, size_bytes: int) -> bool:
        """Reserve what is fetched of a row group before its pages are known; False: there is nothing, or too much."""
        return size_bytes > 0 and self._resize(size_bytes)

    def hold_twice(self, sizes: Mapping[str, int]) -> bool:
        """Reserve twice what columns take, for a look at them; False: there is not as much, and all stays as it was."""
        return self._resize(2 * sum(sizes.values()))

    def passes(self, read: PartReader, sizes: Mapping[str, int], rows: int) -> Iterator[pa.RecordBatch] | None:
        """Return batches of all columns, read some columns after the others; None: there is no space for files."""
        if self._new_space is None or not sizes:
            return None
        return read_in_passes(read, sizes, rows, self._new_space, process_budget)

    def note_rows(self, batch: pa.RecordBatch) -> float:
        """Note how wide rows are that come out, and return it; a batch of no rows says nothing."""
        if batch.num_rows and (width := average_width(batch)) != self._row_bytes:
            self._row_bytes = width
            self._settle_width()
        return self._row_bytes

    def _settle_width(self) -> None:
        self.row_bytes = max(self._row_bytes, sum(self._decoded_widths.values()))

    def decoded_width(self, columns: Sequence[str]) -> float:
        """Return the width of rows in a stream of columns; 0.0 where it is not known."""
        return self._decoded_widths.get(columns[0], 0.0) if columns else 0.0

    def note_decoded(self, columns: Sequence[str], batch: pa.RecordBatch) -> None:
        """Note how wide the first rows of a stream of columns are."""
        if batch.num_rows and columns and columns[0] not in self._decoded_widths:
            self._decoded_widths[columns[0]] = average_width(batch)
            self._settle_width()

    def note_width(self, columns: Sequence[str], width: float) -> None:
        """Note how wide the rows of columns were that a look has decoded."""
        if width and self._decoded_widths.get(columns[0]) != width:
            self._decoded_widths[columns[0]] = width
            self._settle_width()

    def forget_decoded(self, columns: Sequence[str]) -> None:
        """Have the next rows of a stream of columns count, and no longer those before."""
        if columns:
            self._decoded_widths.pop(columns[0], None)
            self._settle_width()

    def rows_at_once(self, row_bytes: float, rows_max: int) -> int:
        """Return the number of rows of a row group that are about one batch."""
        return max(1, min(rows_max, int(self.batch_bytes_max(row_bytes) / row_bytes) if row_bytes else rows_max))

    def batch_bytes_max(self, row_bytes: float) -> int:
        """Return the bytes of a batch. It is smaller where many tasks read: several batches of each are in memory."""
        return _batch_bytes_max(row_bytes, self._reserved.part_bytes)

    def end_split(self) -> None:
        """Give back large blocks, of pages and dictionaries, which may be smaller in the next split.

        Small ones are kept for its row groups: to give them back and touch them again takes half as long as decoding
        does. What is reserved is so until the next row group, or ``let_go``.
        """
        if self._held_bytes >= _RELEASED_BYTES:
            pa.default_memory_pool().release_unused()

    def let_go(self) -> None:
        """Reserve nothing for the row group that is read."""
        self._resize(0)

    def close(self) -> None:
        """End the reservation, and give back large blocks; idempotent."""
        self._reserved.close()
        if self._held_bytes >= min(_RELEASED_BYTES, process_budget.limit(Kind.ARROW) // _RELEASED_SHARE):
            pa.default_memory_pool().release_unused()
        self._held_bytes = 0


def _batch_bytes_max(row_bytes: float, part_bytes: int) -> int:
    wanted = NARROW_BATCH_BYTES_MAX if row_bytes <= _NARROW_ROW_BYTES else BATCH_BYTES_MAX
    return max(BATCH_BYTES_MIN, min(wanted, part_bytes))
