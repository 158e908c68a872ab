"""Queries as rows: SELECT, UNION and the like, VALUES, WITH, and names for all of them.

    WITH x AS (...) SELECT a, b AS c FROM ... ORDER BY ... LIMIT ...        select_binder.py, from_binder.py
    SELECT ... UNION ALL SELECT ...        columns by position; of INTERSECT and EXCEPT null equals null
    VALUES (1, 'a'), (2, 'b')              a table of constants

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.column_expressions.expressions import col, lit
from engine.dialects.parser import sentence
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.sql.frames import Bound, Context, Frame
from engine.sql.from_binder import rows_as_query
from engine.sql.joins import JoinKey, joined
from engine.sql.named_queries import with_named
from engine.sql.ordering import bounds, in_order, order_key, ordinal
from engine.sql.pivots import bind_pivot
from engine.sql.scopes import Named, Scope, ScopeTable, different_names
from engine.sql.select_binder import bind_select
from engine.sql.values import bind_values


def data_set_of(node: exp.Expr, context: Context) -> DataSet:
    """Return the data set of a whole query, its columns under the names that the query gives them."""
    found = bind_query(node, context, is_whole=True)
    names = different_names(found.names)
    return found.data.select([col(own).alias(name) for own, name in zip(found.columns, names, strict=True)])


def bind_query(node: exp.Expr, context: Context, *, is_whole: bool = False) -> Bound:
    """Return a query as rows. Raises: PlanError, NotYetSupportedError.

    is_whole: the order of its rows is the order of the result.
    """
    context = with_named(node, context)
    match node:
        case exp.Select():
            return bind_select(node, context, is_whole)
        case exp.SetOperation():
            return _set(node, context, is_whole)
        case exp.Subquery():
            inner = bind_query(node.this, context, is_whole=is_whole and node.args.get("order") is None)
            return _ordered(node, context, inner, is_whole)
        case exp.Values():
            return _ordered(node, context, bind_values(node, context), is_whole)
        case exp.Paren():
            return bind_query(node.this, context, is_whole=is_whole)
        case exp.Table():
            return rows_as_query(node, context)
        case exp.Pivot():
            return bind_pivot(node, rows_as_query(node.this, context), node.this.alias_or_name, context)
    raise NotYetSupportedError(sentence(node, f"the SQL query {node.key.upper()}", context.session.text))


# ---- sets -------------------------------------------------------------------------------------------------------


def _set(node: exp.SetOperation, context: Context, is_whole: bool) -> Bound:
    node = _with_precedence(node)
    context = context.within(node)
    parts = [bind_query(one, context) for one in _parts(node)]
    word = node.key.upper()
    if node.args.get("by_name"):
        parts = _by_name(parts, context)
    if len({len(part.columns) for part in parts}) > 1:
        raise PlanError(sentence(node.expression, f"both sides of {word} need as many columns", context.session.text))
    outer = list(dict.fromkeys(column for part in parts for column in part.carried))
    if outer:
        parts = [_carrying(part, outer, context) for part in parts]
    names = [context.session.names.unique(name.partition("#")[0]) for name in parts[0].columns]
    own = {column: context.session.names.unique(column.partition("#")[0]) for column in outer}
    # rows without columns have one that the query does not see
    hidden = [] if names or own else [lit(1).alias(context.session.names.unique("row"))]
    data = [
        part.data.select(
            [
                *(col(column).alias(name) for column, name in zip(part.columns, names, strict=True)),
                *(col(part.carried[column]).alias(name) for column, name in own.items()),
                *hidden,
            ]
        )
        for part in parts
    ]
    data = _typed_alike(data)
    try:
        rows = _combined(node, data)
    except SchemaError as error:
        raise PlanError(sentence(node.expression, f"{word}: {error}", context.session.text)) from None
    found = Bound(rows, tuple(names), parts[0].names, own)
    return _ordered(node, context, found, is_whole)


def _with_precedence(node: exp.SetOperation) -> exp.SetOperation:
    """Return a set operation in which INTERSECT binds before UNION and EXCEPT."""
    left = node.this
    if not isinstance(node, exp.Intersect) or not isinstance(left, exp.Union | exp.Except):
        return node
    inner = exp.Intersect(this=left.expression, expression=node.expression, distinct=node.args.get("distinct"))
    others = {name: node.args.get(name) for name in ("order", "limit", "offset")}
    return type(left)(this=left.this, expression=inner, distinct=left.args.get("distinct"), **others)


def _parts(node: exp.SetOperation) -> list[exp.Expr]:
    """Return both sides; of a chain of the same UNION all of them."""
    found: list[exp.Expr] = [node.expression]
    left = node.this
    while (
        type(left) is type(node)
        and isinstance(node, exp.Union)
        and left.args.get("distinct") == node.args.get("distinct")
        and not any(left.args.get(one) for one in ("order", "limit", "offset", "with_", "by_name"))
        and not node.args.get("by_name")
    ):
        found.append(left.expression)
        left = left.this
    return [left, *found[::-1]]


def _combined(node: exp.SetOperation, data: Sequence[DataSet]) -> DataSet:
    is_distinct = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        union = data[0].union(*data[1:])
        return union.distinct() if is_distinct else union
    if isinstance(node, exp.Intersect):
        return data[0].intersect(data[1], all=not is_distinct)
    return data[0].except_(data[1], all=not is_distinct)


def _typed_alike(data: Sequence[DataSet]) -> list[DataSet]:
    """Return data sets whose columns of NULL alone have the type of the others."""
    schemas = [one.schema for one in data]
    found = []
    for one, schema in zip(data, schemas, strict=True):
        untyped = {}
        for place, field in enumerate(schema):
            if pa.types.is_null(field.type):
                known = next(
                    (other.field(place).type for other in schemas if not pa.types.is_null(other.field(place).type)),
                    None,
                )
                if known is not None:
                    untyped[field.name] = lit(None, known)
        found.append(one.with_columns(**untyped) if untyped else one)
    return found


def _by_name(parts: Sequence[Bound], context: Context) -> list[Bound]:
    """Return the sides of UNION BY NAME with the same columns: null where a side has one not."""
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    found = []
    for part in parts:
        data, columns = part.data, []
        for name in names:
            if name in part.names:
                columns.append(part.columns[part.names.index(name)])
            else:
                columns.append(context.session.names.unique(name))
                data = data.with_columns(**{columns[-1]: lit(None)})
        found.append(part._replace(data=data, columns=tuple(columns), names=tuple(names)))
    return found


def _carrying(part: Bound, outer: Sequence[str], context: Context) -> Bound:
    """Return a side with all columns of rows outside."""
    missing = [column for column in outer if column not in part.carried]
    if not missing:
        return part
    dependent = context.dependent
    assert dependent is not None, "a side depends on rows outside"
    if not dependent.has_domain:
        frame = Frame(context, part.data, Scope(), {outer[0]: outer[0]})
        frame.fall_back()
    domain, names = dependent.domain(outer)
    keys = [JoinKey(col(names[column]), col(own), null_safe=True) for column, own in part.carried.items()]
    return part._replace(data=joined(domain, part.data, "inner", keys), carried=names)


def _ordered(node: exp.Expr, context: Context, found: Bound, is_whole: bool) -> Bound:
    """Return rows in the order, and with the limit, behind a query of several parts: by their own columns."""
    order, limit, offset = bounds(node, context)
    if order is None and limit is None and not offset:
        return found
    shown = tuple(Named(name, column) for name, column in zip(found.names, found.columns, strict=True))
    frame = Frame(context, found.data, Scope((ScopeTable("", shown),)), found.carried)
    binder = frame.binder
    keys = []
    for one in order.expressions if order is not None else ():
        if isinstance(one.this, exp.Var) and one.this.name.upper() == "ALL":
            keys += [order_key(one, col(column)) for column in found.columns]
            continue
        place = ordinal(one.this, len(found.columns), context)
        keys.append(order_key(one, col(found.columns[place]) if place is not None else binder.bind(one.this)))
    return found._replace(data=in_order(frame, keys, limit, offset, is_whole))
