"""GroupRuns: how much of row groups that follow one another a look reads, by what the looks before have shown.

    runs.groups_max                 row groups of the next look
    runs.rows_together(limit)       rows of those of which columns are looked at with one mask
    runs.kept_max(row_bytes)        rows of a batch
    runs.note(groups, rows, looked_at_width, kept_rows, row_bytes)     what a look has read, and what is left of it
    runs.refuse()                   there is no memory for several

    kept of each   ▏▎▏▎          few rows: all row groups of a split are one look, the columns of the filter of so many
                                 together as the processor's caches hold
                   ████ ████     many: one by one

What Python does for a row group is the same for eight of them. Of most row groups a filter leaves a tenth, and the
batches behind it are small. The first look of a task reads one row group: the task may want a few rows.

Held by: tests/parquet/test_group_runs.py
"""

from __future__ import annotations

from typing import Final

#: bytes that are decoded for a filter together, and bytes and rows of a batch: what caches of processors hold
_BYTES_MAX: Final = 6 << 20
KEPT_ROWS_MAX: Final = 1 << 18
_GROUPS_MAX: Final = 64
_LEAST_SHARE: Final = 1e-3


class GroupRuns:
    """See the module's text. Thread: one."""

    def __init__(self) -> None:
        self.groups_max = 1
        self._is_refused = False
        #: Row groups that the last look has read.
        self.groups_read = 0
        #: Rows whose columns of the filter are as large as may be, and those of which a batch is left.
        self._rows_together = 1

    def rows_together(self, rows_max: float) -> int:
        """Return the rows that are looked at with one mask, at most so many."""
        return max(1, int(min(self._rows_together, rows_max)))

    @staticmethod
    def kept_max(row_bytes: float) -> int:
        """Return the rows of a batch."""
        return int(min(KEPT_ROWS_MAX, _BYTES_MAX / max(1.0, row_bytes)))

    def note(self, groups: int, rows: int, looked_at_width: float, kept_rows: int, row_bytes: float) -> None:
        """Note a look: row groups, rows, the width of what was decoded for its filter, and the rows that were left."""
        self.groups_read = groups
        self.groups_max = 1 if self._is_refused else _GROUPS_MAX
        share = max(_LEAST_SHARE, kept_rows / max(1, rows))
        self._rows_together = int(min(_BYTES_MAX / max(0.125, looked_at_width), self.kept_max(row_bytes) / share))

    def refuse(self) -> None:
        """Ask for one row group from now on."""
        self.groups_max, self._is_refused = 1, True
