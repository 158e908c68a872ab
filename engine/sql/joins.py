"""Joins of a query as joins of data sets.

    conditions        keys are the equalities between the sides, the rest is the condition
    inner left right full semi anti
    marked            rows of the left, and whether each has a match: true, false, or null for "unknown" as IN says it

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from engine.api.aggregates import count
from engine.api.data_set import DataSet
from engine.api.expression import Expr
from engine.api.expressions import col, lit, when
from engine.expressions.infer import infer_type
from engine.graph.expression import Call, columns_of, conjuncts
from engine.lowering.data_set_values import with_mark
from engine.lowering.exact_keys import as_equals_compares
from engine.sql.column_names import ColumnNames
from engine.sql.constants import is_constant, scalar_of

_SIGNS: Final = {"greater_equal": ">=", "greater": ">", "less_equal": "<=", "less": "<"}
_TURNED: Final = str.maketrans("<>", "><")


class JoinKey(NamedTuple):
    """A pair of keys that must be equal; ``null_safe``: null equals null."""

    left: Expr
    right: Expr
    null_safe: bool = False


def split(condition: Expr | None, left: Collection[str], right: Collection[str]) -> tuple[list[JoinKey], Expr | None]:
    """Return the keys of a condition over the columns of two sides, and the rest of it."""
    keys: list[JoinKey] = []
    rest: Expr | None = None
    for part in conjuncts(condition.expression) if condition is not None else ():
        one = Expr(part)
        if is_constant(one) and scalar_of(one).as_py() is True:
            continue
        key = _key(one, set(left), set(right))
        if key is not None:
            keys.append(key)
        else:
            rest = one if rest is None else rest & one
    return keys, rest


def comparison(part: Expr, left: Collection[str], right: Collection[str]) -> tuple[Expr, Expr, str] | None:
    """Return the left and the right side of a comparison by order, and its sign; None for another condition."""
    call = part.expression
    if not isinstance(call, Call) or call.function not in _SIGNS:
        return None
    sign = _SIGNS[call.function]
    one, other = (set(columns_of(side)) for side in call.arguments)
    first, second = (Expr(side) for side in call.arguments)
    if one and other and one <= set(left) and other <= set(right):
        return first, second, sign
    if one and other and one <= set(right) and other <= set(left):
        return second, first, sign.translate(_TURNED)
    return None


def _key(part: Expr, left: set[str], right: set[str]) -> JoinKey | None:
    call = part.expression
    if not isinstance(call, Call) or call.function not in ("equal", "eq_null_safe"):
        return None
    one, other = (set(columns_of(side)) for side in call.arguments)
    sides = [Expr(side) for side in call.arguments]
    null_safe = call.function == "eq_null_safe"
    if one and other and one <= left and other <= right:
        return JoinKey(sides[0], sides[1], null_safe)
    if one and other and one <= right and other <= left:
        return JoinKey(sides[1], sides[0], null_safe)
    return None


def joined(
    left: DataSet,
    right: DataSet,
    how: str,
    keys: Sequence[JoinKey] = (),
    rest: Expr | None = None,
    null_aware: bool = False,
) -> DataSet:
    """Return a join of two data sets; without keys and a condition all pairs."""
    if not keys and rest is None:
        rest = None if how in ("inner", "cross") else lit(True)
        how = "cross" if how == "inner" else how
    pairs = [compared_keys(left, right, key) for key in keys]
    return left.join(
        right,
        left_on=[one for one, _ in pairs] or None,
        right_on=[other for _, other in pairs] or None,
        null_safe=[key.null_safe for key in keys] or False,
        how=how,
        condition=rest,
        null_aware=null_aware,
    )


def compared_keys(left: DataSet, right: DataSet, key: JoinKey) -> tuple[Expr, Expr]:
    """Return both keys as values of one type, in which they are equal where ``=`` says so."""
    one, other = key.left.expression, key.right.expression
    found = as_equals_compares((one, infer_type(one, left.schema)), (other, infer_type(other, right.schema)))
    return (key.left, key.right) if found is None else (Expr(found[0]), Expr(found[1]))


def marked(
    names: ColumnNames, left: DataSet, right: DataSet, keys: Sequence[JoinKey], rest: Expr | None
) -> tuple[DataSet, str]:
    """Return the rows of the left and the name of a column: whether they have a match."""
    mark = names.unique("mark")
    if rest is not None or not keys:
        parts = [
            joined(left, right, how, keys, rest).with_columns(**{mark: lit(how == "semi")}) for how in ("semi", "anti")
        ]
        return parts[0].union(parts[1]), mark
    found, own = names.unique("found"), [names.unique("join_key") for _ in keys]
    different = right.select([key.right.alias(name) for key, name in zip(keys, own, strict=True)])
    flagged = different.distinct().with_columns(**{found: lit(True)})
    pairs = [JoinKey(key.left, col(name), key.null_safe) for key, name in zip(keys, own, strict=True)]
    return joined(left, flagged, "left", pairs).with_columns(**{mark: col(found).is_not_null()}), mark


def member(
    names: ColumnNames,
    left: DataSet,
    right: DataSet,
    tested: JoinKey,
    others: Sequence[JoinKey],
    rest: Expr | None,
) -> tuple[DataSet, str]:
    """Return the rows of the left and the name of a column: whether a value is one of those of its rows of the right.

    true      some row meets the other conditions, and its value is the one that is tested
    unknown   else, and some row meets them, where its value or the one that is tested is null
    false     else
    """
    if not others and rest is None:
        mark = names.unique("mark")
        values = right.select([tested.right.alias(mark)])
        return left._with(with_mark(left._node, tested.left.expression, values._node, mark)), mark
    if rest is None:
        return _member_of_groups(names, left, right, tested, others)
    mark = names.unique("mark")
    both = [tested, *others]
    value_is_null = tested.left.is_null()
    with_null = [JoinKey(value_is_null, lit(True)), *others]
    without = joined(left, right, "anti", both, rest)
    values = right.filter(tested.right.is_null())
    known = joined(joined(without, values, "anti", others, rest), right, "anti", with_null, rest)
    among_nulls = joined(without.filter(~value_is_null), values, "semi", others, rest)
    null_outside = joined(without, right, "semi", with_null, rest)
    parts = [
        part.with_columns(**{mark: lit(value, pa.bool_())})
        for part, value in (
            (joined(left, right, "semi", both, rest), True),
            (known, False),
            (among_nulls, None),
            (null_outside, None),
        )
    ]
    return parts[0].union(*parts[1:]), mark


def _member_of_groups(
    names: ColumnNames, left: DataSet, right: DataSet, tested: JoinKey, others: Sequence[JoinKey]
) -> tuple[DataSet, str]:
    """Return the mark by groups of the other keys: how many values each has, and how many that are not null."""
    with_match, match = marked(names, left, right, [tested, *others], None)
    mark, rows, values = (names.unique(name) for name in ("mark", "rows", "values"))
    own = [names.unique("join_key") for _ in others]
    keyed = right.select(
        [*(key.right.alias(name) for key, name in zip(others, own, strict=True)), tested.right.alias(values)]
    )
    counts = keyed.group_by(own).agg(**{rows: count(), f"{values}_known": count(values)})
    pairs = [JoinKey(key.left, col(name), key.null_safe) for key, name in zip(others, own, strict=True)]
    counted = joined(with_match, counts, "left", pairs)
    is_unknown = col(rows).is_not_null() & (tested.left.is_null() | (col(rows) > col(f"{values}_known")))
    value = when(col(match)).then(True).when(is_unknown).then(lit(None, pa.bool_())).otherwise(False)
    return counted.with_columns(**{mark: value}), mark
