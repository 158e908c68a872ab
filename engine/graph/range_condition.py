"""RangeCondition: the part of a join's condition that says between which values of one side a value of the other lies.

    t >= begin and t < end          point t of one side; bounds begin (inclusive) and end of the other
    t > begin                       a lower bound alone

The rest of the condition stays beside it. Equal keys come before it: it holds among rows that have them equal.

Held by: tests/optimizer/test_range_planning.py
"""

from __future__ import annotations

from engine.graph.exact import Exact


class RangeBound(Exact, frozen=True):
    """A bound: a column of the side that does not have the point."""

    column: str
    is_inclusive: bool


class RangeCondition(Exact, frozen=True):
    """The condition of a range join: the points in a row's interval; at least one bound is set."""

    is_point_left: bool
    point: str
    lower: RangeBound | None = None
    upper: RangeBound | None = None

    @property
    def begin(self) -> str:
        """The column by which intervals are sorted."""
        bound = self.lower or self.upper
        assert bound is not None, "a range without bounds"
        return bound.column

    @property
    def text(self) -> str:
        """The condition, for people."""
        parts = []
        for bound, sign in ((self.lower, ">"), (self.upper, "<")):
            if bound is not None:
                parts.append(f"{self.point} {sign}{'=' if bound.is_inclusive else ''} {bound.column}")
        return " and ".join(parts)
