"""Distinct values of a join's key, where the other side's values cover a part of its range only.

    sales     2.9 M rows, days 2 450 816 .. 2 452 642                   sales * days / 1 826, not / 73 049:
    calendar  73 049 days 2 415 022 .. 2 488 070, filtered to 365       the year asked for is one of the sales'

A filter of a lookup table selects rows that others have: filtered rows that fit into the range which both sides have
are taken to lie there, so its values outside do not count. More rows than fit cannot all lie there; they are taken as
spread over their whole range, as rows that were not filtered are.

Held by: tests/optimizer/test_estimates.py
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.graph.source_spec import ColumnStatistics


def values_met(known: ColumnStatistics, rows: float, others: Iterable[ColumnStatistics]) -> float | None:
    """Return the values of a key that may meet those of others, before rows were filtered; None: unknown.

    rows: those that were left of the key's side.
    """
    if known.distinct_count is None:
        return None
    values = max(1.0, known.distinct_count)
    ranges = [_range(each) for each in (known, *others)]
    (low, high), *_ = ranges
    in_common = min(high for _, high in ranges) - max(low for low, _ in ranges)
    if not 0 < in_common < high - low < float("inf"):
        return values
    inside = max(1.0, values * in_common / (high - low))
    return inside if min(rows, values) <= inside else values


def _range(known: ColumnStatistics) -> tuple[float, float]:
    bounds = known.minimum, known.maximum
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in bounds):
        return float("-inf"), float("inf")
    low, high = bounds
    return float(low), float(high)  # type: ignore[arg-type]
