"""Rows beside rows as DuckDB compares them: null is equal to null in them, and greater than all values.

    (1, NULL) = (1, NULL) ──► (1, NULL) IS NOT DISTINCT FROM (1, NULL)
    (a, b) < (c, d)       ──► before(a, c) OR (a IS NOT DISTINCT FROM c AND before(b, d))

Held by: tests/sql/dialects/test_duckdb.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from engine.dialects.shared_forms import Repair

_Pairs = Sequence[tuple[exp.Expr, exp.Expr]]


def _values(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the values of a row, None for what is none."""
    inner = node.unnest()
    is_call = isinstance(inner, exp.Anonymous) and inner.name.lower() == "row"
    return list(inner.expressions) if is_call or isinstance(inner, exp.Tuple) else None


def _pairs(one: exp.Expr, other: exp.Expr) -> _Pairs | None:
    """Return the values of two rows side by side, None for what are no rows of one length."""
    left, right = _values(one), _values(other)
    return None if left is None or right is None or len(left) != len(right) else list(zip(left, right, strict=True))


def _same(pairs: _Pairs) -> exp.Expr:
    tests = [exp.NullSafeEQ(this=one.copy(), expression=other.copy()) for one, other in pairs]
    return exp.paren(exp.and_(*tests)) if tests else exp.true()


def _before(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    is_null, is_known = exp.Is(this=other.copy(), expression=exp.Null()), exp.Is(this=one.copy(), expression=exp.Null())
    less = exp.LT(this=one.copy(), expression=other.copy())
    return exp.paren(
        exp.or_(
            exp.and_(is_null, exp.Not(this=is_known)), exp.Coalesce(this=exp.paren(less), expressions=[exp.false()])
        )
    )


def _less(pairs: _Pairs) -> exp.Expr:
    """Return whether the first values that differ are in order."""
    parts = [exp.and_(_same(pairs[:at]), _before(*pair)) for at, pair in enumerate(pairs)]
    return exp.paren(exp.or_(*parts)) if parts else exp.false()


def _turned(pairs: _Pairs) -> _Pairs:
    return [(other, one) for one, other in pairs]


def _compared(kind: type[exp.Expr], pairs: _Pairs) -> exp.Expr:
    if kind is exp.EQ:
        return _same(pairs)
    if kind is exp.NEQ:
        return exp.Not(this=_same(pairs))
    is_greater, is_not = kind in (exp.GT, exp.LTE), kind in (exp.LTE, exp.GTE)
    found = _less(_turned(pairs) if is_greater else pairs)
    return exp.Not(this=found) if is_not else found


def comparison(node: exp.Expr) -> exp.Expr:
    """Return a comparison of two rows by their values."""
    pairs = _pairs(node.this, node.expression)
    return node if pairs is None else _compared(type(node), pairs)


def among(node: exp.Expr) -> exp.Expr:
    """Return a test of whether a row is one of those in a list."""
    found = [_pairs(node.this, one) for one in node.expressions]
    if not found or any(pairs is None for pairs in found):
        return node
    return exp.paren(exp.or_(*(_same(pairs) for pairs in found if pairs is not None)))


def between(node: exp.Expr) -> exp.Expr:
    """Return whether a row is not before one and not behind another."""
    low, high = _pairs(node.this, node.args["low"]), _pairs(node.this, node.args["high"])
    if low is None or high is None:
        return node
    return exp.paren(exp.and_(_compared(exp.GTE, low), _compared(exp.LTE, high)))


def counted(node: exp.Expr) -> exp.Expr:
    """Return count_if(): a sum, which is null where no condition is known."""
    is_met = node.this
    ifs = [exp.If(this=is_met.copy(), true=exp.Literal.number(1))]
    ifs.append(exp.If(this=exp.Not(this=exp.paren(is_met.copy())), true=exp.Literal.number(0)))
    return exp.Sum(this=exp.Case(ifs=ifs))


ROWS_OF_DUCKDB: Final[dict[type[exp.Expr], Repair]] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), comparison),
    exp.In: among,
    exp.Between: between,
    exp.CountIf: counted,
}
