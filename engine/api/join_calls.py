"""The calls of DataSet that pair its rows with those of another one.

    join                   joins.py

Held by: tests/api/test_joins.py
"""

from __future__ import annotations

from typing import Any, Self

from engine.api.calls import Calls
from engine.api.expression import Expr
from engine.api.join_keys import JoinKeys
from engine.api.joins import join_node
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
        suffix: str | None = None,
        null_safe: bool | list[bool] = False,
    ) -> Self:
        """Return the pairs of rows with equal keys; nulls match nothing.

        ``on`` (on both sides) gives one key column, ``left_on`` and ``right_on`` keep both; each is a name, an
        expression or a list of them. ``how`` in inner left right full semi anti cross, or as Spark and Polars spell
        them; semi and anti return the left columns, cross has no keys. A pair must also meet ``condition``, an
        expression over the columns of both sides, which may stand alone. ``suffix`` is put behind the names of right
        columns that the left has too. ``null_safe``: null equals null in the keys. ``null_aware`` makes ``how="anti"``
        SQL's NOT IN.

        >>> left = env.from_rows([(1, "a"), (None, "b")], pa.schema([("k", pa.int64()), ("x", pa.string())]))
        >>> left.join(left, on="k", suffix="_right", null_safe=True).sort("k").collect()
        [Row(k=None, x='b', x_right='b'), Row(k=1, x='a', x_right='a')]
        """
        right = self._partner(other, "join")
        keys = JoinKeys(on, left_on, right_on, null_safe)
        return self._with(join_node(self._node, right, how, keys, hint, condition, null_aware, suffix))
