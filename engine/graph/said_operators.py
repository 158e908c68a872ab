"""Operators as users say them: ``engine.lowering`` makes others of them before a plan is optimized.

    GroupBy   JoinBy   AsofJoinBy   SortBy   Page   SetOperation   Pivot   Apply

They keep what a user wrote, for ``explain``, for errors and for Spark: expressions as keys, sets of keys, queries
beside rows. Join types, hints and directions are here, since the lowered operators of ``plan`` have them too.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from engine.graph.expression import Expression, NamedExpression, OrderedBy


class JoinHint(StrEnum):
    """A hint for the optimizer about a join. FIRST is the left input, SECOND the right."""

    OPTIMIZER_CHOOSES = "OPTIMIZER_CHOOSES"
    BROADCAST_HASH_FIRST = "BROADCAST_HASH_FIRST"
    BROADCAST_HASH_SECOND = "BROADCAST_HASH_SECOND"
    REPARTITION_HASH_FIRST = "REPARTITION_HASH_FIRST"
    REPARTITION_HASH_SECOND = "REPARTITION_HASH_SECOND"
    REPARTITION_SORT_MERGE = "REPARTITION_SORT_MERGE"


class JoinType(StrEnum):
    """The type of a join: which rows it returns."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    CROSS = "cross"


class AsofDirection(StrEnum):
    """The direction of an as-of join: which right row it takes."""

    BACKWARD = "backward"
    FORWARD = "forward"
    NEAREST = "nearest"


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


class SortBy(msgspec.Struct, frozen=True, tag="sort_by"):
    """Rows in the order of expressions; ``limit`` keeps the first ones only."""

    keys: tuple[OrderedBy, ...]
    limit: int | None = None


class Page(msgspec.Struct, frozen=True, tag="page"):
    """The ``count`` rows (None: all) behind the first ``offset``, in the order of the input."""

    count: int | None
    offset: int


class SetOperation(msgspec.Struct, frozen=True, tag="set_operation"):
    """Different rows of input 0 that input 1 has, or has not; ``counts_copies``: each as often as its copies say."""

    in_other: bool
    counts_copies: bool = False


class Pivot(msgspec.Struct, frozen=True, tag="pivot"):
    """A row for each ``index``: of the rows that meet the condition of a column, the aggregates of each cell.

    ``columns``: conditions of ``on`` by name; behind the name is that of the cell where there are several.
    """

    on: str
    index: tuple[str, ...]
    cells: tuple[NamedExpression, ...]
    columns: tuple[NamedExpression, ...]


class ApplyUse(StrEnum):
    """The question that is asked of a query beside rows."""

    VALUE = "value"
    EXISTS = "exists"
    IN = "in"


class Apply(msgspec.Struct, frozen=True, tag="apply"):
    """Rows of input 0, each with what a query, input 1, says of it by the rows that belong to it.

    A row of the query belongs to a row where ``keys`` are equal (``null_safe``: of each key, whether null equals null)
    and the condition is met. ``column``: the name of the column that has the answer; without one the rows stay of which
    it is true, with ``is_not`` those of which it is false. IN: ``tested`` are values of a row and of the query.
    VALUE: ``value`` is that of a row of the query, of which one belongs to a row, or none: then it is the default.
    ``words``: the subject of the error about several; ``is_single``: there are no several.
    """

    use: ApplyUse
    column: str = ""
    is_not: bool = False
    keys: tuple[tuple[Expression, Expression], ...] = ()
    null_safe: tuple[bool, ...] = ()
    condition: Expression | None = None
    tested: tuple[tuple[Expression, Expression], ...] = ()
    value: Expression | None = None
    default: Expression | None = None
    is_single: bool = False
    words: str = "a data set"


#: operators as users say them; ``engine.lowering`` makes the others of them before a plan is optimized
SAID = (GroupBy, JoinBy, AsofJoinBy, SortBy, Page, SetOperation, Pivot, Apply)
