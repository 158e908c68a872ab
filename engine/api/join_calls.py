"""The calls of DataSet that pair its rows with those of another one.

    join                   joins.py

Held by: tests/api/test_joins.py
"""

from __future__ import annotations

from typing import Any, Self

from engine.api.calls import Calls
from engine.api.expression import Expr
from engine.api.joins import JoinKeys, join_node
from engine.graph.plan import JoinHint


class JoinCalls(Calls):
    """Base of DataSet with its joins."""

    def join(
        self,
        other: Self,
        on: Any = None,
        left_on: Any = None,
        right_on: Any = None,
        how: str = "inner",
        hint: JoinHint | str | None = None,
        condition: Expr | None = None,
        null_aware: bool = False,
    ) -> Self:
        """Return the pairs of rows with equal keys; nulls match nothing.

        ``on`` (names on both sides) gives one key column, ``left_on`` and ``right_on`` keep both. ``how`` in inner left
        right full semi anti cross; semi and anti return the left columns, cross has no keys. A pair must also meet
        ``condition``, an expression over the columns of both sides. ``null_aware`` makes ``how="anti"`` SQL's NOT IN.
        """
        right = self._partner(other, "join")
        keys = JoinKeys(on, left_on, right_on)
        return self._with(join_node(self._node, right, how, keys, hint, condition, null_aware))
