"""Estimates of the number of rows that a join returns.

    pairs = left * right / distinct keys * selectivity of the condition
    cross: no keys to divide by

    inner  cross   pairs
    left           pairs, at least the left rows            right   likewise
    full           pairs, at least the rows of either side
    semi           left * share with a match                anti    the rest of the left

Distinct keys: the larger count that is known; where that of the smaller input is not, its rows (its keys are taken as
unique, the common case of a lookup). Values that the other side cannot have do not count (``key_ranges``). The share of
left rows with a match: where the distinct keys of both sides are known, those of the right against those of the left
(the smaller set lies in the larger one), else DEFAULT_MATCH_SHARE.

Source: System R's join selectivity with the containment of value sets (Selinger et al., 1979).
Held by: tests/optimizer/test_estimates.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from engine.graph.plan import Join
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.key_ranges import values_met
from engine.optimizer.selectivity import selectivity

#: share of left rows that find a match, for semi and anti joins without statistics
DEFAULT_MATCH_SHARE = 0.5


class JoinInput(Protocol):
    """The estimates of one side that a join needs."""

    @property
    def rows(self) -> float:
        """Expected rows."""
        ...

    @property
    def columns(self) -> Mapping[str, ColumnStatistics]:
        """Statistics of columns."""
        ...

    def distinct(self, name: str) -> float | None:
        """Return the distinct count of a column if it is known."""
        ...

    def domain(self, name: str) -> float | None:
        """Return the distinct count that a column had before rows were filtered, if it is known."""
        ...


def join_rows(
    join: Join, left: JoinInput, right: JoinInput, columns: Mapping[str, ColumnStatistics]
) -> tuple[float, str]:
    """Return (expected rows of a join, where the number comes from).

    columns: statistics of the columns that the condition sees.
    """
    passing, passing_origin = 1.0, ""
    if join.condition is not None:
        passing, condition_origin = selectivity(join.condition, columns)
        passing_origin = f", {passing:.3g} of the pairs: {condition_origin}"
    if join.how in (JoinType.SEMI, JoinType.ANTI):
        share, origin = _match_share(join, left, right)
        share *= passing
        return left.rows * (share if join.how is JoinType.SEMI else 1 - share), origin + passing_origin
    if join.how is JoinType.CROSS:
        return left.rows * right.rows * passing, f"left * right{passing_origin}"
    distinct, origin = _key_domain(join, left, right)
    pairs = left.rows * right.rows / distinct * passing
    least = {
        JoinType.LEFT: left.rows,
        JoinType.RIGHT: right.rows,
        JoinType.FULL: max(left.rows, right.rows),
    }.get(join.how, 0.0)
    return max(pairs, least), origin + passing_origin


def candidate_pairs(join: Join, left: JoinInput, right: JoinInput) -> float:
    """Return the expected pairs with equal keys, before a condition is asked."""
    if not join.left_keys:
        return left.rows * right.rows
    return left.rows * right.rows / max(1.0, _key_domain(join, left, right)[0])


def _match_share(join: Join, left: JoinInput, right: JoinInput) -> tuple[float, str]:
    share, known = 1.0, False
    for left_key, right_key in zip(join.left_keys, join.right_keys, strict=True):
        # a filter of the left leaves fewer values, each as likely to have a partner as before
        counts = left.domain(left_key), right.distinct(right_key)
        if counts[0] is not None and counts[1] is not None:
            share, known = min(share, counts[1] / counts[0]), True
    what = "with" if join.how is JoinType.SEMI else "without"
    if known:
        return (
            share,
            f"{share if join.how is JoinType.SEMI else 1 - share:.3g} of the left {what} a match: distinct keys",
        )
    return DEFAULT_MATCH_SHARE, f"half of the left: default for {join.how.value}"


def _key_domain(join: Join, left: JoinInput, right: JoinInput) -> tuple[float, str]:
    """Return the number of different keys there are on the side that has more of them, before rows were filtered."""
    smaller = max(1.0, min(left.rows, right.rows))
    domain, is_known, is_part = 1.0, False, False
    for left_key, right_key in zip(join.left_keys, join.right_keys, strict=True):
        keys = [side.columns.get(key, ColumnStatistics()) for side, key in ((left, left_key), (right, right_key))]
        counts = [values_met(keys[0], left.rows, keys[1:]), values_met(keys[1], right.rows, keys[:1])]
        is_part = is_part or counts != [left.domain(left_key), right.domain(right_key)]
        smaller_count = counts[0] if left.rows < right.rows else counts[1]
        if smaller_count is None:
            counts.append(smaller)
        domain *= max(count for count in counts if count is not None)
        is_known = is_known or smaller_count is not None
    if len(join.left_keys) > 1:
        # values of several columns are not independent: there are no more combinations than rows
        domain = min(domain, max(left.rows, right.rows))
    if is_known:
        where = " in the range of both" if is_part else ""
        return domain, f"left * right / {domain:.0f} distinct keys{where}"
    return domain, f"left * right / {domain:.0f} keys: those of the smaller side taken as unique"
