"""The calls of DataSet that pair its rows with those of another one.

    join asof_join         their arguments are checked in join_arguments.py
    intersect except_      operations of sets

Held by: tests/integration/test_join_forms.py
Held by: tests/integration/test_row_calls.py
"""

from __future__ import annotations

from typing import Any, Self

from engine.api.calls import Calls
from engine.api.expression import Expr
from engine.api.other_options import with_other_options
from engine.errors import SchemaError
from engine.graph.plan import JoinBy, JoinHint, JoinType, SetOperation
from engine.lowering.said_nodes import lowered


@with_other_options
class JoinCalls(Calls):
    """Base of DataSet with its joins and operations of sets."""

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
        from engine.api.join_arguments import KeyArguments, join_condition, join_hint, join_keys, join_type

        right, kind = self._partner(other, "join"), join_type(how)
        if null_aware and kind is not JoinType.ANTI:
            raise SchemaError(f"join null_aware=True is NOT IN and goes with how='anti', not {kind.value!r}")
        arguments = KeyArguments(on, left_on, right_on, null_safe)
        keys = join_keys(kind, arguments, has_condition=condition is not None)
        if null_aware and any(keys.null_safe):
            raise SchemaError(
                "join: null_aware=True takes a null as unknown, null_safe=True as a value; give one of them"
            )
        flags, wanted = tuple(keys.null_safe), join_condition(condition)
        said = JoinBy(kind, tuple(keys.pairs), keys.is_on, flags, join_hint(hint), wanted, null_aware, suffix)
        return self._with(lowered(said, (self._node, right)))

    def asof_join(
        self,
        other: Self,
        on: Any = None,
        by: Any = None,
        direction: str = "backward",
        tolerance: Any = None,
        allow_exact_matches: bool = True,
        left_on: Any = None,
        right_on: Any = None,
        suffix: str | None = None,
    ) -> Self:
        """Return all rows, each with the row of ``other`` that is nearest to it by ``on``; nulls where there is none.

        ``on`` is a column of both sides, mostly a time, and comes out once; ``left_on`` and ``right_on`` keep both.
        ``by``: columns that must be equal. ``direction``: "backward" takes the last row that is not later, "forward"
        the first that is not earlier, "nearest" the nearer of the two (the earlier one where both are as near).
        ``tolerance`` is how far away it may be: a number, a ``timedelta``, or a text such as "10 min".
        ``allow_exact_matches=False``: a row at the very time does not count. A null matches nothing. Of several rows of
        ``other`` at one time, backward takes the last in their order, forward the first, where one subtask reads them.

        >>> trades = env.from_arrow(pa.table({"at": [2, 5, 9], "sym": ["a", "b", "a"], "size": [10, 20, 30]}))
        >>> quotes = env.from_arrow(pa.table({"at": [1, 4, 8], "sym": ["a", "b", "b"], "bid": [1.5, 2.0, 2.5]}))
        >>> trades.asof_join(quotes, on="at", by="sym", tolerance=5).sort("at").collect()
        [Row(at=2, sym='a', size=10, bid=1.5), Row(at=5, sym='b', size=20, bid=2.0),
         Row(at=9, sym='a', size=30, bid=None)]
        """
        from engine.api.join_arguments import AsofArguments, asof_join_by

        right = self._partner(other, "asof_join")
        arguments = AsofArguments(on, left_on, right_on, by, direction, tolerance, allow_exact_matches)
        return self._with(lowered(asof_join_by(arguments, suffix), (self._node, right)))

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
