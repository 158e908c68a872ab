"""GroupRuns: how many row groups one look reads, by what the looks before have shown.

    runs.wanted                     row groups of the next look, if so many follow one another
    runs.note(groups, rows, looked_at_bytes, kept_rows, kept_bytes)    what a look has read, and what is left of it
    runs.refuse(groups)             there is no memory for so many
    run_plan(plans)                 the plan of row groups that are read as one

    kept of each   ▏▎▏▎          few rows: 1, 2, 4, 8 row groups together, until what is looked at, or what is left,
                   ████ ████     is as large as a batch should be for the processor's caches; many: one by one

What Python does for a row group is the same for eight of them. Of most row groups a filter leaves a tenth, and the
batches behind it are small.

Held by: tests/parquet/test_group_runs.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.parquet.footers import GroupPages, GroupPlan
from engine.parquet.group_reader import GroupChunks

_GROUPS_MAX: Final = 8
#: bytes that a look decodes for its filter, and bytes and rows that are left of them: what caches of processors hold
_BYTES_MAX: Final = 6 << 20
KEPT_ROWS_MAX: Final = 1 << 18


class GroupRuns:
    """See the module's text. Thread: one."""

    def __init__(self) -> None:
        self.wanted = 1
        self._groups_max = _GROUPS_MAX

    def note(self, groups: int, looked_at_bytes: float, kept_rows: int, kept_bytes: float) -> None:
        """Note a look: the bytes that were decoded for its filter, and the rows that were left."""
        share = max(looked_at_bytes / _BYTES_MAX, kept_bytes / _BYTES_MAX, kept_rows / KEPT_ROWS_MAX)
        fitting = int(groups / share) if share * self._groups_max > groups else self._groups_max
        self.wanted = max(1, min(2 * groups, fitting, self._groups_max))

    def refuse(self, groups: int) -> None:
        """Ask for fewer row groups from now on."""
        self.wanted = self._groups_max = max(1, groups // 2)


def run_plan(plans: Sequence[GroupPlan]) -> GroupPlan:
    """Return the plan of row groups that are read as one; they have the same columns."""
    counts = [plan.pages.row_count for plan in plans]
    others = [(plan.others, count) for plan, count in zip(plans, counts, strict=True) if plan.others is not None]
    looked_at = [(plan.looked_at, count) for plan, count in zip(plans, counts, strict=True)]
    pages = _pages_of([plan.pages for plan in plans])
    return GroupPlan(pages, GroupChunks.of_run(looked_at), GroupChunks.of_run(others) if others else None)


def _pages_of(all_pages: Sequence[GroupPages]) -> GroupPages:
    """Return the pages of row groups that are read one after the other: of each column those that hold most."""
    held = {name: max(pages.held[name] for pages in all_pages) for name in all_pages[0].held}
    rows = sum(pages.row_count for pages in all_pages)
    row_bytes = sum(pages.row_bytes * pages.row_count for pages in all_pages) / max(1, rows)
    held_bytes = sum(held.values())
    group_bytes = max(pages.group_bytes for pages in all_pages)
    return GroupPages(held, row_bytes, rows, group_bytes, held_bytes, held_bytes + max(held.values(), default=0))
