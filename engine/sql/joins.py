"""Joins of a query as joins of data sets.

    conditions        keys are the equalities between the sides, the rest is the condition
    inner left right full semi anti

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, cast

from engine.api.data_set import DataSet
from engine.choices import JoinHow
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit
from engine.expressions.infer import infer_type
from engine.graph.expression import Call, columns_of, conjuncts
from engine.graph.said_operators import JoinHint
from engine.lowering.exact_keys import as_equals_compares
from engine.sql_values.constants import is_constant, scalar_of

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
    hint: JoinHint | None = None,
) -> DataSet:
    """Return a join of two data sets; without keys and a condition all pairs."""
    if not keys and rest is None:
        rest, how = None if how in ("inner", "cross") else lit(True), "cross" if how == "inner" else how
    pairs = [compared_keys(left, right, key) for key in keys]
    return left.join(
        right,
        left_on=[one for one, _ in pairs] or None,
        right_on=[other for _, other in pairs] or None,
        null_safe=[key.null_safe for key in keys] or False,
        how=cast("JoinHow", how),
        condition=rest,
        hint=hint,
    )


def compared_keys(left: DataSet, right: DataSet, key: JoinKey) -> tuple[Expr, Expr]:
    """Return both keys as values of one type, in which they are equal where ``=`` says so."""
    one, other = key.left.expression, key.right.expression
    found = as_equals_compares((one, infer_type(one, left.schema)), (other, infer_type(other, right.schema)))
    return (key.left, key.right) if found is None else (Expr(found[0]), Expr(found[1]))
