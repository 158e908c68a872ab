"""INTERSECT and EXCEPT of two data sets.

Held by: tests/integration/test_row_calls.py
Held by: tests/integration/test_keys_of_two_types.py
"""

from __future__ import annotations

from typing import Self

from engine.api.group_calls import GroupCalls
from engine.api.other_options import with_other_options
from engine.graph.plan import SetOperation
from engine.lowering.said_nodes import lowered


@with_other_options
class SetCalls(GroupCalls):
    """Base of DataSet with the operations of sets that ``union`` is one of."""

    def intersect(self, other: Self, all: bool = False) -> Self:  # noqa: A002
        """Return the rows that are in both, each different row once; ``all``: as often as in the one that has fewer.

        Columns are matched by name, and have the types of these rows; null equals null.

        >>> rows({"x": [1, 1, 2]}).intersect(rows({"x": [1, 1, 3]}), all=True).to_arrow().to_pylist()
        [{'x': 1}, {'x': 1}]
        """
        return self._matched(other, in_other=True, counts=all)

    def except_(self, other: Self, all: bool = False) -> Self:  # noqa: A002
        """Return the rows that are not in the other, each different row once; ``all``: as often as it has them more.

        Columns are matched by name, and have the types of these rows; null equals null.

        >>> rows({"x": [1, 2, 2, None]}).except_(rows({"x": [1, None]})).to_arrow().to_pylist()
        [{'x': 2}]
        """
        return self._matched(other, in_other=False, counts=all)

    def _matched(self, right: Self, *, in_other: bool, counts: bool) -> Self:
        """Return the rows that the right has, or has not; ``counts``: copies are counted."""
        partner = self._partner(right, "intersect" if in_other else "except_")
        return self._with(lowered(SetOperation(in_other, counts), (self._node, partner)))
