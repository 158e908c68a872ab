"""Queries within expressions, and queries that look at the rows around them: operators Apply of the plan.

    (SELECT max(w) FROM u)                        Apply(VALUE): one row, beside all rows
    (SELECT max(w) FROM u WHERE u.k = t.k)        groups of u by k, of which one belongs to a row by t.k = k
    EXISTS, IN                                    Apply(EXISTS), Apply(IN): rows stay where they filter, else a column
    > ANY, > ALL                                  the least and the greatest value, beside the rows

A query that looks at columns outside is bound in one of three ways, the first that fits:

    CONDITIONS   EXISTS and IN of a plain SELECT      its WHERE becomes the condition of the join
    EQUALITIES   WHERE u.k = t.k, and nothing else    u.k stands for t.k: rows are grouped and joined by it
    DOMAIN       anything                             the different values of t.k are joined to FROM: what was one
                                                      query for each of them is one query with t.k as one more key

In the last two a query carries a column for each column of the rows outside: it is one of the keys of GROUP BY,
DISTINCT, PARTITION BY and LIMIT, and of the Apply with the rows outside. What an Apply is as joins is known to
``engine/lowering/apply.py``. Source: Neumann and Kemper, Unnesting Arbitrary Queries.

Held by: tests/sql/test_subqueries.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.aggregates import count, max_, min_
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit, when
from engine.errors import NotYetSupportedError, PlanError
from engine.graph.expression import ColumnRef
from engine.graph.said_operators import Apply, ApplyUse
from engine.lowering.said_nodes import lowered
from engine.sql.aggregates import aggregates_in
from engine.sql.frames import Binder, Bound, Dependent, Frame, Groups, OuterColumnError, Way
from engine.sql.joins import JoinKey, joined, split
from engine.sql_values.constants import computed, is_constant, is_null
from engine.sql_values.operators import compared, fitted

_OF_TESTS: Final = (Way.CONDITIONS, Way.DOMAIN)
_OF_VALUES: Final = (Way.EQUALITIES, Way.DOMAIN)


# ---- binding ----------------------------------------------------------------------------------------------------


def bound(
    binder: Binder, node: exp.Expr, ways: Sequence[Way], *, is_existence: bool = False, takes_default: bool = False
) -> tuple[Bound, Dependent]:
    """Return a query that may look at the rows of a frame, and how it depends on them."""
    frame = binder.frame
    needed: Dependent | None = None
    for way in ways:
        dependent = Dependent(frame, way, node)
        dependent.is_existence, dependent.takes_default = is_existence, takes_default
        if needed is not None:
            dependent._needed = needed._needed
        context = replace(frame.context, dependent=dependent, path=())
        while True:
            dependent.conditions, dependent.defaults_of, dependent.default = [], None, None
            try:
                return frame.session.bind_query(node, context), dependent
            except OuterColumnError as error:
                if error.dependent is not dependent:
                    raise
                dependent.need(error.path, error.column)
                needed = dependent
                if way is not Way.DOMAIN:
                    break
    raise AssertionError("the last way binds any query")


def _keys(found: Bound) -> list[JoinKey]:
    return [JoinKey(col(outer), col(own), null_safe=True) for outer, own in found.carried.items()]


def keys_of(found: Bound, dependent: Dependent) -> list[JoinKey]:
    """Return the keys by which a query is joined to the rows outside."""
    is_equal = dependent.way is Way.EQUALITIES
    return [JoinKey(col(outer), col(own), null_safe=not is_equal) for outer, own in found.carried.items()]


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren) or (
        isinstance(node, exp.Subquery) and not any(node.args.get(one) for one in ("order", "limit", "offset", "with_"))
    ):
        node = node.this
    return node


def _one_column(binder: Binder, node: exp.Expr, found: Bound) -> str:
    if len(found.columns) != 1:
        said = (
            f"a query of one column is needed here, not of {len(found.columns)}; for several write EXISTS"
            " (SELECT ... WHERE a = x AND b = y)"
        )
        raise PlanError(binder.said(node, said))
    return found.columns[0]


def _checked_place(binder: Binder, node: exp.Expr) -> None:
    if binder.frame.place == "an aggregate":
        return
    if binder.frame.beside is not None:
        raise NotYetSupportedError(binder.said(node, "a query within this condition; write it in WHERE"))


# ---- values -----------------------------------------------------------------------------------------------------


def scalar(binder: Binder, node: exp.Expr) -> Expr:
    """Return the only value of a query as a column: null where it has no row, an error where it has several."""
    _checked_place(binder, node)
    frame, inner = binder.frame, _inner(node)
    found, dependent = bound(binder, inner, _OF_VALUES, takes_default=True)
    column = _one_column(binder, node, found)
    name = frame.unique("value")
    default = dependent.default
    _apply(
        frame,
        found,
        keys_of(found, dependent),
        use=ApplyUse.VALUE,
        column=name,
        value=ColumnRef(column),
        default=None if default is None or is_null(default) else default.expression,
        is_single=_has_one_row(inner),
        words="a SQL query",
    )
    return col(name)


def _apply(frame: Frame, found: Bound, keys: Sequence[JoinKey], rest: Expr | None = None, **said: Any) -> None:
    """Give the rows of a frame what a query says of them: a column, or they stay where it is true."""
    pairs = tuple((key.left.expression, key.right.expression) for key in keys)
    flags, condition = tuple(key.null_safe for key in keys), None if rest is None else rest.expression
    operator = Apply(keys=pairs, null_safe=flags, condition=condition, **said)
    frame.data = frame.data._with(lowered(operator, (frame.data._node, found.data._node)))


def _has_one_row(node: exp.Expr) -> bool:
    """Return whether a query has one row at most: of all rows as one group, or with LIMIT 1."""
    limit = node.args.get("limit")
    if limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.this in ("0", "1"):
        return True
    is_grouped = node.args.get("group") is not None or not isinstance(node, exp.Select)
    return not is_grouped and any(aggregates_in(one) for one in node.expressions)


# ---- tests ------------------------------------------------------------------------------------------------------


def existence(binder: Binder, node: exp.Exists) -> Expr:
    """Return whether a query has rows, as a column."""
    _checked_place(binder, node)
    frame = binder.frame
    found, dependent = bound(binder, _inner(node.this), _OF_TESTS, is_existence=True)
    mark = frame.unique("exists")
    _apply(frame, found, *_conditions(frame, found, dependent), use=ApplyUse.EXISTS, column=mark)
    return col(mark)


def _conditions(frame: Frame, found: Bound, dependent: Dependent) -> tuple[list[JoinKey], Expr | None]:
    """Return the keys and the condition that join a query with the rows outside."""
    keys = _keys(found)
    rest: Expr | None = None
    for condition in dependent.conditions:
        more, other = split(condition, frame.data.columns, found.data.columns)
        keys += more
        if other is not None:
            rest = other if rest is None else rest & other
    return keys, rest


def membership(binder: Binder, node: exp.In) -> Expr:
    """Return whether a value is one of those of a query, as a column: null where that is unknown."""
    _checked_place(binder, node)
    query = node.args.get("query") or node.expressions[0]
    return _member(binder, node, node.this, _inner(query))


def _member(binder: Binder, node: exp.Expr, tested: exp.Expr, query: exp.Expr) -> Expr:
    mark = binder.frame.unique("mark")
    _apply_in(binder, node, tested, query, column=mark)
    return col(mark)


def _apply_in(binder: Binder, node: exp.Expr, tested: exp.Expr, query: exp.Expr, **said: Any) -> None:
    """Give the rows of a frame what IN says of them; several values in parentheses are one."""
    frame = binder.frame
    row = tested.unnest()
    if isinstance(row, exp.Tuple):
        values = binder.all(row.expressions)
        # what is left open by nulls is asked of all rows, of which conditions are a part
        found, dependent = bound(binder, query, _OF_TESTS if "column" not in said else (Way.DOMAIN,))
        if len(values) != len(found.columns):
            words = f"a row of {len(values)} values beside a query of {len(found.columns)} columns"
            raise PlanError(binder.said(node, words))
        pairs = list(zip(values, map(col, found.columns), strict=True))
    else:
        value = binder.bind(tested)
        found, dependent = bound(binder, query, _OF_TESTS)
        value, other = _comparable(binder, value, found, _one_column(binder, node, found))
        pairs = [(col(frame.with_column(value, "tested")) if is_constant(value) else value, other)]
    keys, rest = _conditions(frame, found, dependent)
    both = tuple((one.expression, other.expression) for one, other in pairs)
    _apply(frame, found, keys, rest, use=ApplyUse.IN, tested=both, **said)


def _comparable(binder: Binder, value: Expr, found: Bound, column: str) -> tuple[Expr, Expr]:
    """Return the value, and the column of a query that it is compared with."""
    inner = Frame(binder.frame.context, found.data, binder.frame.scope)
    types = {id(value): binder.type_of(value)}
    other = col(column)

    def type_of(one: Expr) -> pa.DataType:
        return types[id(one)] if id(one) in types else inner.type_of(one)

    value, other = fitted([value, other], type_of)
    if id(value) not in types:
        types[id(value)] = binder.type_of(value)
    compared("=", value, other, type_of)
    return value, other


def quantified(binder: Binder, node: exp.Expr, one: exp.Expr, sign: str, query: exp.Expr, *, is_all: bool) -> Expr:
    """Return ``value > ALL (SELECT ...)`` and ``value > ANY (SELECT ...)``."""
    _checked_place(binder, node)
    if sign in ("=", "<>") and is_all == (sign == "<>"):
        is_member = _member(binder, node, one, _inner(query))
        return ~is_member if is_all else is_member
    frame = binder.frame
    value = binder.bind(one)
    tested = col(frame.with_column(value, "tested")) if is_constant(value) else value
    found, _dependent = bound(binder, _inner(query), (Way.DOMAIN,))
    column = _one_column(binder, node, found)
    own = list(found.carried.values())
    seen, rows, known, low, high = (frame.unique(name) for name in ("seen", "rows", "known", "low", "high"))
    totals = (
        found.data.select([*own, col(column).alias(seen)])
        .group_by(own)
        .agg(**{rows: count(), known: count(seen), low: min_(seen), high: max_(seen)})
    )
    frame.data = joined(frame.data, totals, "left", _keys(found)) if own else frame.data.join(totals, how="cross")
    count_of = when(col(rows).is_null()).then(0).otherwise(col(rows))
    extreme = {"<": (low, high), "<=": (low, high), ">": (high, low), ">=": (high, low)}
    if sign in extreme:
        bound_column = extreme[sign][0 if is_all else 1]
        holds = compared(sign, tested, col(bound_column), binder.type_of)
    elif sign == "=":
        holds = compared("=", tested, col(low), binder.type_of) & compared("=", tested, col(high), binder.type_of)
    else:
        holds = compared("<>", tested, col(low), binder.type_of) | compared("<>", tested, col(high), binder.type_of)
    has_nulls = col(rows) > col(known)
    nothing = lit(None, pa.bool_())
    decided = when(count_of == 0).then(lit(is_all))
    if is_all:
        return decided.when(~holds).then(False).when(has_nulls).then(nothing).otherwise(holds)
    return decided.when(holds).then(True).when(has_nulls).then(nothing).otherwise(holds)


# ---- conditions of WHERE ----------------------------------------------------------------------------------------


def filtered(binder: Binder, node: exp.Expr) -> bool:
    """Filter the rows of a frame by EXISTS or IN alone, or their negation; return False for another condition."""
    test, is_not = node.unnest(), False
    while isinstance(test, exp.Not):
        test, is_not = test.this.unnest(), not is_not
    if isinstance(test, exp.Exists):
        found, dependent = bound(binder, _inner(test.this), _OF_TESTS, is_existence=True)
        conditions = _conditions(binder.frame, found, dependent)
        _apply(binder.frame, found, *conditions, use=ApplyUse.EXISTS, is_not=is_not)
        return True
    query = _query_of(test)
    if query is None or (is_not and isinstance(test.this.unnest(), exp.Tuple)):
        return False
    _apply_in(binder, test, test.this, _inner(query), is_not=is_not)
    return True


def _query_of(test: exp.Expr) -> exp.Expr | None:
    if isinstance(test, exp.In):
        query = test.args.get("query")
        if query is None and len(test.expressions) == 1 and isinstance(test.expressions[0], exp.Query | exp.Subquery):
            query = test.expressions[0]
        return query
    return None


def default_of(grouping: Groups, value: Expr) -> Expr:
    """Return the value of a query over all rows as one group, where there are none."""
    return computed(grouping.of_no_rows(value))
