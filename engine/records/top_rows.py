"""TopRows: which rows of batches can still be among the first n of an order, by all of its keys.

    first = TopRows(keys, count)
    first.mask(columns) -> mask, or None        columns of the keys; false: n rows come before it; None: of none

    first key    better than the n-th ─► stays         worse ─► goes
                 like the n-th: of these rows the same, by the next key, among themselves

Where most rows have the same first key, as groups have that are counted and come once, that key leaves nothing out. The
rows that tie with the n-th are begun anew with another n-th key: the ones before were of another tie.

Limits: keys before the first one whose order is not that of Arrow's comparisons (``top_keys.has_top_keys``). Ties of
nulls and NaN, and of texts that come as codes, are left to the sort.

Held by: tests/records/test_top_rows.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.row_mask import Mask
from engine.records.top_keys import TopTest

if TYPE_CHECKING:
    from engine.graph.sort_key import SortKey


class TopRows:
    """Args: keys: at least one; is_whole: whether nothing else orders the rows. Thread: one."""

    def __init__(self, keys: Sequence[SortKey], count: int, *, is_whole: bool) -> None:
        self._keys, self._count, self._is_whole = keys, count, is_whole
        self._test = TopTest(keys[0], count, is_only_key=is_whole and len(keys) == 1)
        #: n-th key, and the rows that tie with it by the other keys
        self._tied_with: pa.Scalar | None = None
        self._ties: TopRows | None = None

    def mask(self, columns: Sequence[pa.Array]) -> Mask | None:
        """Return the mask of rows that may be among the first; each row is asked for once."""
        found, worst = self._test.mask(columns[0]), self._test.keys.worst
        if found is None or worst is None or len(columns) == 1 or columns[0].type != worst.type:
            return found
        are_tied = pc.fill_null(pc.equal(columns[0], worst), scalar_of(False))
        if are_tied.true_count <= self._count:
            return found
        if self._ties is None or not worst.equals(self._tied_with):
            self._tied_with, self._ties = worst, TopRows(self._keys[1:], self._count, is_whole=self._is_whole)
        among = self._ties.mask([pc.filter(column, are_tied) for column in columns[1:]])
        return found if among is None else Mask(pc.replace_with_mask(found.array(), are_tied, among.array()))
