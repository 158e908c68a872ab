"""Queries within expressions, and queries that look at the rows around them, as joins.

    (SELECT max(w) FROM u)                        one row, beside all rows
    EXISTS, IN, ANY, ALL                          semi and anti joins where they filter, else a column: a mark
    (SELECT max(w) FROM u WHERE u.k = t.k)        groups of u by k, joined to the rows by t.k = k

A query that looks at columns outside is bound in one of three ways, the first that fits:

    CONDITIONS   EXISTS and IN of a plain SELECT      its WHERE becomes the condition of the join
    EQUALITIES   WHERE u.k = t.k, and nothing else    u.k stands for t.k: rows are grouped and joined by it
    DOMAIN       anything                             the different values of t.k are joined to FROM: what was one
                                                      query for each of them is one query with t.k as one more key

In the last two a query carries a column for each column of the rows outside: it is one of the keys of GROUP BY,
DISTINCT, PARTITION BY and LIMIT, and of the join with the rows outside. Source:
Neumann and Kemper, Unnesting Arbitrary Queries.

Held by: tests/sql/test_subqueries.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.api.aggregates import count, first, max_, min_
from engine.api.data_set import DataSet
from engine.api.expression import Expr
from engine.api.expressions import col, lit, when
from engine.errors import NotYetSupportedError, PlanError
from engine.lowering.data_set_values import one_value
from engine.sql.aggregates import aggregates_in
from engine.sql.constants import computed, is_constant, scalar_of
from engine.sql.frames import Binder, Bound, Dependent, Frame, Groups, OuterColumnError, Way
from engine.sql.joins import JoinKey, joined, marked, member, split
from engine.sql.operators import compared, fitted

_OF_TESTS: Final = (Way.CONDITIONS, Way.DOMAIN)
_OF_VALUES: Final = (Way.EQUALITIES, Way.DOMAIN)


# ---- binding ----------------------------------------------------------------------------------------------------


def bound(
    binder: Binder,
    node: exp.Expr,
    ways: Sequence[Way],
    *,
    is_existence: bool = False,
    takes_default: bool = False,
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
    what = "a SQL query that stands for a value"
    if not found.carried:
        value = found.data.select([column])
        row = value._with(one_value(value._node, name, "a SQL query"))
        frame.data = frame.data.join(row, how="cross")
        return col(name)
    own = list(found.carried.values())
    if _has_one_row(inner):
        data = found.data.select([*own, col(column).alias(name)])
    else:
        rows = frame.unique("rows")
        counted = (
            found.data.select([*own, col(column).alias(name)]).group_by(own).agg(**{name: first(name), rows: count()})
        )
        said = f"{what} has more than one row"
        data = counted.with_columns(**{name: col(name).require(col(rows) <= 1, said)}).select([*own, name])
    keys = keys_of(found, dependent)
    default = dependent.default
    if default is None or (is_constant(default) and pa.types.is_null(_type_of(default))):
        frame.data = joined(frame.data, data, "left", keys)
        return col(name)
    mark = frame.unique("found")
    frame.data = joined(frame.data, data.with_columns(**{mark: lit(True)}), "left", keys)
    return when(col(mark).is_not_null()).then(col(name)).otherwise(default)


def _type_of(value: Expr) -> pa.DataType:
    return scalar_of(value).type


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
    keys, rest = _conditions(frame, found, dependent)
    if not keys and rest is None:
        name = frame.unique("exists")
        counted = found.data.limit(1).group_by().agg(**{name: count()})
        frame.data = frame.data.join(counted, how="cross")
        return col(name) > 0
    frame.data, mark = marked(frame.session.names, frame.data, found.data, keys, rest)
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
    frame = binder.frame
    if isinstance(tested.unnest(), exp.Tuple):
        return _row_member(binder, node, tested.unnest().expressions, query)
    value = binder.bind(tested)
    found, dependent = bound(binder, query, _OF_TESTS)
    value, right, data = _comparable(binder, value, found, _one_column(binder, node, found))
    found = found._replace(data=data)
    keys, rest = _conditions(frame, found, dependent)
    if is_constant(value):
        value = col(frame.with_column(value, "tested"))
    frame.data, mark = member(frame.session.names, frame.data, found.data, JoinKey(value, right), keys, rest)
    return col(mark)


def _comparable(binder: Binder, value: Expr, found: Bound, column: str) -> tuple[Expr, Expr, DataSet]:
    """Return the value, the column of a query that it is compared with, and the rows of that query."""
    inner = Frame(binder.frame.context, found.data, binder.frame.scope)
    types = {id(value): binder.type_of(value)}
    other = col(column)

    def type_of(one: Expr) -> pa.DataType:
        return types[id(one)] if id(one) in types else inner.type_of(one)

    value, other = fitted([value, other], type_of)
    if id(value) not in types:
        types[id(value)] = binder.type_of(value)
    compared("=", value, other, type_of)
    return value, other, found.data


def _row_member(binder: Binder, node: exp.Expr, tested: Sequence[exp.Expr], query: exp.Expr) -> Expr:
    """Return (a, b) IN (SELECT x, y ...): true, false, or null where values that are null leave it open."""
    frame = binder.frame
    values = binder.all(tested)
    found, dependent = bound(binder, query, (Way.DOMAIN,))
    if len(values) != len(found.columns):
        said = f"a row of {len(values)} values beside a query of {len(found.columns)} columns"
        raise PlanError(binder.said(node, said))
    carried, rest = _conditions(frame, found, dependent)
    others = [col(column) for column in found.columns]
    keys = [*(JoinKey(one, other) for one, other in zip(values, others, strict=True)), *carried]
    frame.data, match = marked(frame.session.names, frame.data, found.data, keys, rest)
    unknown: Expr | None = None
    for one, other in zip(values, others, strict=True):
        part = one.is_null() | other.is_null() | (one == other)
        unknown = part if unknown is None else unknown & part
    assert unknown is not None, "a row has values"
    frame.data, maybe = marked(frame.session.names, frame.data, found.data, carried, unknown)
    return when(col(match)).then(True).when(col(maybe)).then(lit(None, pa.bool_())).otherwise(False)


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
    rows, known, low, high = (frame.unique(name) for name in ("rows", "known", "low", "high"))
    totals = (
        found.data.select([*own, column])
        .group_by(own)
        .agg(**{rows: count(), known: count(column), low: min_(column), high: max_(column)})
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
    frame = binder.frame
    if isinstance(test, exp.Exists):
        found, dependent = bound(binder, _inner(test.this), _OF_TESTS, is_existence=True)
        keys, rest = _conditions(frame, found, dependent)
        if not keys and rest is None:
            return _exists_of_all(frame, found, is_not)
        frame.data = joined(frame.data, found.data, "anti" if is_not else "semi", keys, rest)
        return True
    query = _query_of(test)
    if query is None:
        return False
    tested = test.this.unnest()
    if isinstance(tested, exp.Tuple):
        return not is_not and _rows_filtered(binder, test, tested, _inner(query))
    value = binder.bind(test.this)
    found, dependent = bound(binder, _inner(query), _OF_TESTS)
    value, right, data = _comparable(binder, value, found, _one_column(binder, test, found))
    found = found._replace(data=data)
    keys, rest = _conditions(frame, found, dependent)
    if is_constant(value):
        value = col(frame.with_column(value, "tested"))
    key = JoinKey(value, right)
    if not is_not:
        frame.data = joined(frame.data, found.data, "semi", [key, *keys], rest)
    elif not keys and rest is None:
        frame.data = joined(frame.data, found.data, "anti", [key], null_aware=True)
    else:
        both = joined(frame.data, found.data, "anti", [key, *keys], rest)
        values, value_is_null = found.data.filter(right.is_null()), value.is_null()
        known = joined(both, values, "anti", keys, rest)
        frame.data = joined(known, found.data, "anti", [JoinKey(value_is_null, lit(True)), *keys], rest)
    return True


def _query_of(test: exp.Expr) -> exp.Expr | None:
    if isinstance(test, exp.In):
        query = test.args.get("query")
        if query is None and len(test.expressions) == 1 and isinstance(test.expressions[0], exp.Query | exp.Subquery):
            query = test.expressions[0]
        return query
    return None


def _rows_filtered(binder: Binder, node: exp.Expr, tested: exp.Tuple, query: exp.Expr) -> bool:
    frame = binder.frame
    values = binder.all(tested.expressions)
    found, dependent = bound(binder, query, _OF_TESTS)
    if len(values) != len(found.columns):
        said = f"a row of {len(values)} values beside a query of {len(found.columns)} columns"
        raise PlanError(binder.said(node, said))
    keys, rest = _conditions(frame, found, dependent)
    pairs = [JoinKey(one, col(column)) for one, column in zip(values, found.columns, strict=True)]
    frame.data = joined(frame.data, found.data, "semi", [*pairs, *keys], rest)
    return True


def _exists_of_all(frame: Frame, found: Bound, is_not: bool) -> bool:
    """Filter by a query that depends on no row: all rows stay, or none."""
    name = frame.unique("exists")
    counted = found.data.limit(1).group_by().agg(**{name: count()})
    beside = frame.data.join(counted, how="cross")
    frame.data = beside.filter((col(name) == 0) if is_not else (col(name) > 0))
    return True


def default_of(grouping: Groups, value: Expr) -> Expr:
    """Return the value of a query over all rows as one group, where there are none."""
    return computed(grouping.of_no_rows(value))
