"""Operators as users say them, which ``engine.lowering`` makes of those that the optimizer knows.

    GroupBy       keys that are computed, expressions of aggregates, several sets of keys
    JoinBy        keys that are computed or of two types, where null equals null, names that both sides have
    AsofJoinBy    the same, and a distance in words

A Project and a Filter are said too: they may have window functions, values of data sets and users' functions in their
expressions, which those that the optimizer knows have not.

Held by: tests/api/test_asof_joins.py
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import Expression, NamedExpression
from engine.graph.plan import AsofDirection, JoinHint, JoinType


class GroupBy(msgspec.Struct, frozen=True, tag="group_by"):
    """A row for each group of equal keys: the keys, then expressions of aggregates.

    ``sets``: groups of each of several sets of keys, by their names; a key is null in rows of a set that has it not.
    None: all keys. ``grouping_id``: name of a column with the set's number; "" for none.
    """

    keys: tuple[NamedExpression, ...]
    outputs: tuple[NamedExpression, ...]
    sets: tuple[tuple[str, ...], ...] | None = None
    grouping_id: str = ""


class JoinBy(msgspec.Struct, frozen=True, tag="join_by"):
    """Pairs of rows of inputs 0 (left) and 1 (right) with equal keys that meet a condition.

    ``is_on``: both sides name the keys alike, and they come out once. ``null_safe``: of each key, whether null equals
    null. ``suffix`` is put behind the names of right columns that the left has too.
    """

    how: JoinType
    keys: tuple[tuple[Expression, Expression], ...] = ()
    is_on: bool = False
    null_safe: tuple[bool, ...] = ()
    hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES
    condition: Expression | None = None
    null_aware: bool = False
    suffix: str | None = None


class AsofJoinBy(msgspec.Struct, frozen=True, tag="asof_join_by"):
    """All rows of input 0 (left), each with the row of input 1 (right) that is nearest to it.

    ``on``: what is compared, left and right; with ``is_on`` it comes out once, as the keys of ``by`` do. ``tolerance``:
    the greatest distance, a number or a time in words.
    """

    by: tuple[Expression, ...]
    on: tuple[Expression, Expression]
    is_on: bool
    direction: AsofDirection = AsofDirection.BACKWARD
    is_strict: bool = False
    tolerance: int | float | str | None = None
    suffix: str | None = None
