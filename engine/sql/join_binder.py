"""Joins of FROM: their kinds, ON, USING and NATURAL, and the columns of rows outside that both sides carry.

Held by: tests/sql/test_joins.py
Held by: tests/sql/test_using_joins.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit
from engine.column_expressions.row_functions import coalesce
from engine.dialects.parser import nodes_in, sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.common_type import common_type
from engine.graph.said_operators import JoinHint
from engine.near_names import did_you_mean
from engine.sql.frames import Context, Dependent, Frame
from engine.sql.hints import check_hint
from engine.sql.joins import JoinKey, compared_keys, comparison, joined, split
from engine.sql.relations import Rows
from engine.sql.scopes import Named, Scope, matching
from engine.sql_values.operators import conjoined


def crossed(left: Rows, right: Rows, context: Context) -> Rows:
    """Return all pairs of two parts; those of the same rows outside where both carry such."""
    return paired(left, right, "inner", [], None, context)


def paired(
    left: Rows,
    right: Rows,
    how: str,
    keys: list[JoinKey],
    rest: Expr | None,
    context: Context,
    hint: JoinHint | None = None,
) -> Rows:
    """Return a join; columns of rows outside are among its keys, and stay where rows of a side have no match."""
    dependent = context.dependent
    if how in ("left", "right", "full", "semi", "anti") and (left.carried or right.carried):
        kept = [left] if how in ("left", "semi", "anti") else [right] if how == "right" else [left, right]
        lacking = any(set(one.carried) != {*left.carried, *right.carried} for one in kept)
        if lacking or how == "full":
            assert dependent is not None, "a side depends on rows outside"
            if not dependent.has_domain:
                Frame(context, left.data, left.scope, {**left.carried, **right.carried}).fall_back()
            outer = list(dict.fromkeys((*left.carried, *right.carried)))
            left, right = (_with_carried(one, outer, dependent) for one in (left, right))
    both = [
        JoinKey(col(left.carried[one]), col(right.carried[one]), null_safe=True)
        for one in left.carried
        if one in right.carried
    ]
    data = joined(left.data, right.data, how, [*keys, *both], rest, hint=hint)
    carried = {**right.carried, **left.carried}
    if how == "right":
        carried = {**left.carried, **right.carried}
    if how == "full" and both:
        names = {one: f"{left.carried[one]}" for one in left.carried if one in right.carried}
        values = {own: coalesce(col(own), col(right.carried[one])) for one, own in names.items()}
        data = data.with_columns(**values)
    scope = left.scope if how in ("semi", "anti") else left.scope + right.scope
    return Rows(data, scope, {one: own for one, own in carried.items() if own in data.columns})


def _with_carried(rows: Rows, outer: Sequence[str], dependent: Dependent) -> Rows:
    if set(outer) <= set(rows.carried):
        return rows
    domain, names = dependent.domain(outer)
    keys = [JoinKey(col(names[one]), col(own), null_safe=True) for one, own in rows.carried.items()]
    return Rows(joined(domain, rows.data, "inner", keys), rows.scope, names)


def joined_rows(left: Rows, right: Rows, join: exp.Join, context: Context) -> Rows:
    """Return a join of two parts of FROM."""
    session = context.session
    if str(join.method or "").upper() == "ASOF":
        return asof_joined(left, right, join, context)
    how = kind_of(join, context)
    using = join.args.get("using")
    if join.method and join.method.upper() == "NATURAL":
        shared = [one.name for one in left.scope.columns if matching(one.name, list(right.scope.columns))]
        if not shared:
            return crossed(left, right, context)
        using = [exp.to_identifier(name) for name in shared]
    if using:
        return _using(left, right, how, [one.name for one in using], join, context)
    on = join.args.get("on")
    if on is None:
        if how in ("left", "right", "full", "semi", "anti"):
            said = "a join that keeps rows needs ON a.k = b.k, or USING (k)"
            raise PlanError(sentence(join.this, said, session.text))
        return crossed(left, right, context)
    left, right, condition, deferred = _condition(left, right, how, on, context)
    keys, rest = split(condition, left.data.columns, right.data.columns)
    check_hint(join, how, has_keys=bool(keys or left.carried or right.carried))
    found = paired(left, right, how, keys, rest, context, join.meta.get("hint"))
    if deferred:
        frame = Frame(context, found.data, found.scope, found.carried)
        binder = frame.binder
        for part in deferred:
            value = binder.condition(part, "ON")
            frame.data = frame.data.filter(value)
        found = found._replace(data=frame.data)
    return found


def kind_of(join: exp.Join, context: Context) -> str:
    """Return the kind of a join. Raises: NotYetSupportedError."""
    method, side, kind = (str(one or "").upper() for one in (join.method, join.side, join.kind))
    if method == "POSITIONAL":
        said = "POSITIONAL JOIN (number both sides with row_number())"
        raise NotYetSupportedError(sentence(join.this, said, context.session.text))
    if kind in ("SEMI", "ANTI"):
        return kind.lower()
    return side.lower() or "inner"


def _condition(
    left: Rows, right: Rows, how: str, on: exp.Expr, context: Context
) -> tuple[Rows, Rows, Expr, list[exp.Expr]]:
    """Return both sides, the condition over their columns, and conditions that follow an inner join.

    A query within the condition is a column of the side that it looks at.
    """
    parts = list(on.unnest().flatten() if isinstance(on.unnest(), exp.And) else [on])
    values: list[Expr] = []
    deferred: list[exp.Expr] = []
    for part in parts:
        if not nodes_in(part, exp.Query):
            frame = pair_frame(left, right, context)
            values.append(frame.binder.condition(part, "ON"))
        elif how == "inner":
            deferred.append(part)
        else:
            left, right, value = _with_query(left, right, part, context)
            values.append(value)
    return left, right, conjoined(values, is_and=True), deferred


def pair_frame(left: Rows, right: Rows, context: Context) -> Frame:
    """Return the frame of a condition over both sides of a join."""
    frame = Frame(context, left.data, left.scope + right.scope, {**right.carried, **left.carried})
    frame.pair = right.data
    frame.place = "ON"
    return frame


def _with_query(left: Rows, right: Rows, part: exp.Expr, context: Context) -> tuple[Rows, Rows, Expr]:
    for place, side in enumerate((left, right)):
        frame = Frame(context, side.data, side.scope, side.carried)
        try:
            value = frame.binder.condition(part, "ON")
        except PlanError:
            continue
        name = frame.with_column(value, "condition")
        changed = side._replace(data=frame.data)
        return (changed, right, col(name)) if place == 0 else (left, changed, col(name))
    said = "a query in ON over columns of both sides (write it in WHERE)"
    raise NotYetSupportedError(sentence(part, said, context.session.text))


def asof_joined(left: Rows, right: Rows, join: exp.Join, context: Context) -> Rows:
    """Return each row of the left beside the one of the right that is nearest to it by a comparison."""
    text, how = context.session.text, str(join.side or "INNER").upper()
    if how not in ("INNER", "LEFT") or right.carried:
        raise NotYetSupportedError(sentence(join.this, f"ASOF {how} JOIN", text))
    using, on = join.args.get("using") or (), join.args.get("on")
    if using:
        sides = [[_column_of(side, one.name, join, context) for one in using] for side in (left, right)]
        keys = [JoinKey(col(one.column), col(other.column)) for one, other in zip(*sides, strict=True)]
        one, other, sign = keys[-1].left, keys[-1].right, ">="
        keys, rest = keys[:-1], None
    else:
        condition = None if on is None else pair_frame(left, right, context).binder.condition(on, "ON")
        keys, rest = split(condition, left.data.columns, right.data.columns)
        found = None if rest is None else comparison(rest, left.data.columns, right.data.columns)
        if found is None:
            said = "ASOF JOIN needs one comparison of both sides, as in a.ts >= b.ts, beside equalities"
            raise PlanError(sentence(on or join.this, said, text))
        one, other, sign = found
    types = [Frame(context, side.data, side.scope).type_of(value) for side, value in ((left, one), (right, other))]
    shared = common_type(*types)
    if shared is not None and types[0] != types[1]:
        one, other = one.cast(shared), other.cast(shared)
    pairs = [compared_keys(left.data, right.data, key) for key in keys]
    names = [context.session.names.unique("key") for _ in keys]
    first, second, mark = (context.session.names.unique(name) for name in ("time", "time", "found"))
    data = left.data.with_columns(**{first: one, **dict(zip(names, (pair[0] for pair in pairs), strict=True))})
    others = right.data.with_columns(
        **{second: other, mark: lit(True), **dict(zip(names, (pair[1] for pair in pairs), strict=True))}
    )
    joined_data = data.asof_join(
        others,
        left_on=first,
        right_on=second,
        by=names or None,
        direction="backward" if sign[0] == ">" else "forward",
        allow_exact_matches=len(sign) == 2,
    )
    if how == "INNER":
        joined_data = joined_data.filter(col(mark).is_not_null())
    tables = right.scope.tables
    if using:
        hidden = frozenset(one.column for one in sides[1])
        tables = tuple(replace(table, hidden=table.hidden | hidden) for table in tables)
    return Rows(joined_data, left.scope + Scope(tables, right.scope.merged), left.carried)


def _column_of(side: Rows, name: str, join: exp.Join, context: Context) -> Named:
    """Return the column of a name of USING. Raises: PlanError."""
    found = side.scope.column(name)
    if found is None:
        said = f"no column {name} on both sides of USING{did_you_mean(name, [one.name for one in side.scope.columns])}"
        raise PlanError(sentence(join.this, said, context.session.text))
    return found


def _using(left: Rows, right: Rows, how: str, names: Sequence[str], join: exp.Join, context: Context) -> Rows:
    keys: list[JoinKey] = []
    merged: dict[str, Named] = {}
    hidden: set[str] = set()
    for name in names:
        own = [_column_of(side, name, join, context) for side in (left, right)]
        keys.append(JoinKey(col(own[0].column), col(own[1].column)))
        hidden.add(own[1].column)
        if how == "full":
            made = context.session.names.unique(own[0].name)
            merged[name.lower()] = Named(own[0].name, made)
        else:
            merged[name.lower()] = Named(own[0].name, own[1 if how == "right" else 0].column)
    check_hint(join, how, has_keys=True)
    found_rows = paired(left, right, how, keys, None, context, join.meta.get("hint"))
    data = found_rows.data
    if how == "full":
        values = {
            merged[name.lower()].column: coalesce(key.left, key.right) for name, key in zip(names, keys, strict=True)
        }
        data = data.with_columns(**values)
    if how in ("semi", "anti"):
        return found_rows
    tables = tuple(
        replace(table, hidden=table.hidden | hidden.intersection(one.column for one in table.columns))
        for table in found_rows.scope.tables
    )
    return found_rows._replace(data=data, scope=Scope(tables, {**found_rows.scope.merged, **merged}))
