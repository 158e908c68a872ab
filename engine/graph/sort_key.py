"""One key of a sort order.

Held by: tests/records/test_comparator.py
"""

from __future__ import annotations

from engine.graph.exact import Exact


class SortKey(Exact, frozen=True):
    """Order by a column. ``nulls_last`` is absolute: it does not turn with ``descending``."""

    column: str
    descending: bool = False
    nulls_last: bool = False
