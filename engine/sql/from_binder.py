"""FROM: tables, queries and joins as rows, and the names of their columns.

    FROM a, b JOIN c ON ...        a × (b ⋈ c): a comma begins anew
    FROM a JOIN b USING (k)        k once: that of the side whose rows all stay, of both sides of FULL
    FROM t, unnest(l) AS q(x)      a row for each element
    FROM t, LATERAL (SELECT ...)   a query that depends on the rows before it (dependent.py)
    FROM 'a/*.parquet'             a path; FROM range(3), FROM generate_series(1, 3): numbers or times

A SELECT that depends on rows outside begins with the different values that it carries of them, where it must.

Held by: tests/sql/test_joins.py
Held by: tests/sql/test_unnested.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.dialects.parser import nodes_in, sentence
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.near_names import did_you_mean
from engine.records.plain_scalars import no_values
from engine.records.plain_types import is_foreign
from engine.sql.aggregates import is_aggregate
from engine.sql.frames import Bound, Context, Frame
from engine.sql.hints import place_hints
from engine.sql.join_binder import crossed, joined_rows
from engine.sql.lateral_binder import beside, depends_on_rows, is_comma, of_lateral, unnested
from engine.sql.named_queries import named_rows, with_named
from engine.sql.pivots import bind_pivot
from engine.sql.relations import Rows, aliased, renamed
from engine.sql.samples import sampled
from engine.sql.scopes import Scope, own_columns
from engine.sql.series_of_rows import numbers_beside
from engine.sql.values import bind_values, carried_rows, first_row, one_row
from engine.sql_values.constants import at_moment, is_constant, is_null, scalar_of
from engine.sql_values.series import series_of

#: nodes that are not computed below a join: they need all rows, may be others for each pair, or fail for rows of none
_OF_PAIRS: Final = (
    exp.Query, exp.Window, exp.AggFunc, exp.Anonymous, exp.Rand, exp.Uuid, exp.Div, exp.IntDiv, exp.Mod,
)  # fmt: skip
#: functions of numbers and times; others read files
_SERIES: Final = ("range", "generate_series")
#: endings of files that a name without quotes may have
_ENDINGS: Final = frozenset(["parquet", "csv", "json", "jsonl", "ndjson", "arrow", "orc", "avro", "feather", "xlsx"])


def frame_of(node: exp.Select, context: Context) -> Frame:
    """Return the frame of the FROM clause of a SELECT."""
    clause = node.args.get("from_")
    if clause is None:
        first = first_row(node, context)
        place_hints(node, exp.Identifier(), (), context)
        return first
    carried = carried_rows(node, context)
    groups = [] if carried is None else [Rows(carried.data, carried.scope, carried.carried)]
    joins = [*_own_joins(clause.this), *(node.args.get("joins") or ())]
    place_hints(node, clause.this, joins, context)
    items, applied = _filtered_items(node, [clause.this, *(one.this for one in joins)], joins, context)
    computed = _computed_keys(node, joins, context, items)
    found = _joined_all(clause.this, joins, groups, context, items)
    if node.args.get("sample") is not None:
        found = found._replace(data=sampled(found.data, node.args["sample"], context, clause))
    frame = Frame(context, found.data, found.scope, found.carried)
    frame.applied = applied
    frame.bound |= computed
    return frame


def conjuncts_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND connects."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        one = stack.pop()
        inner = one.unnest()
        if isinstance(inner, exp.And):
            stack += list(inner.flatten())[::-1]
        else:
            found.append(one)
    return found


def _filtered_items(
    select: exp.Select, nodes: Sequence[exp.Expr], joins: Sequence[exp.Join], context: Context
) -> tuple[dict[int, Rows], set[int]]:
    """Return the rows of relations, filtered by conditions of WHERE over one of them alone, and those conditions.

    SQL has no order among conditions: one that may fail, which the optimizer leaves where it is, may go below a join.
    """
    items = {id(node): rows_of(node, context) for node in nodes if not depends_on_rows(node)}
    sides = {str(join.side or "").upper() for join in joins}
    where = select.args.get("where")
    if where is None or select.args.get("sample") is not None or sides & {"RIGHT", "FULL"} or len(nodes) < 2:
        return items, set()
    kept = {id(join.this) for join in joins if not join.side and str(join.kind or "").upper() not in ("SEMI", "ANTI")}
    merged = {one.name.lower() for join in joins for one in join.args.get("using") or ()}
    if any(str(join.method or "") for join in joins):
        return items, set()
    applied: set[int] = set()
    for part in conjuncts_of(where.this):
        if nodes_in(part, exp.Query, exp.Window) or _may_be_aggregate(part):
            continue
        columns = nodes_in(part, exp.Column)
        places = {_item_of(column, items) for column in columns}
        place = next(iter(places)) if len(places) == 1 else None
        if place is None or (place != id(nodes[0]) and place not in kept):
            continue
        if any(not column.table and column.name.lower() in merged for column in columns):
            continue
        rows = items[place]
        frame = Frame(context, rows.data, rows.scope)
        frame.place = "WHERE"
        frame.data = frame.data.filter(frame.binder.condition(part, "WHERE"))
        items[place] = rows._replace(data=frame.data)
        applied.add(id(part))
    return items, applied


def _computed_keys(
    select: exp.Select, joins: Sequence[exp.Join], context: Context, items: dict[int, Rows]
) -> dict[int, Expr]:
    """Give relations a column for each computed side of ``a.n = b.n + 1`` in WHERE; return these by their nodes.

    Two columns that are equal are a key of the join: rows are found by it, where all pairs would be tried else.
    """
    found: dict[int, Expr] = {}
    where = select.args.get("where")
    if where is None or select.args.get("sample") is not None or any(map(_changes_rows, joins)):
        return found
    for part in conjuncts_of(where.this):
        equal = part.unnest()
        if not isinstance(equal, exp.EQ) or nodes_in(part, *_OF_PAIRS) or not _casts_to_text(part):
            continue
        sides = {_only_item(side, items): side for side in (equal.this, equal.expression)}
        if len(sides) == 2 and not all(isinstance(side.unnest(), exp.Column) for side in sides.values()):
            found |= _with_keys(sides, items, context)
    return found


def _with_keys(sides: Mapping[int | None, exp.Expr], items: dict[int, Rows], context: Context) -> dict[int, Expr]:
    """Give the relations of both sides of an equality a column with it, integers in the wider of the two types."""
    frames, values, types = [], [], []
    for place, side in sides.items():
        if place is None:
            return {}
        frame = Frame(context, items[place].data, items[place].scope)
        frame.place = "WHERE"
        frames.append(frame)
        values.append(frame.binder.bind(side))
        types.append(frame.type_of(values[-1]))
    if types[0] != types[1] and all(map(pa.types.is_signed_integer, types)):
        widest = max(types, key=lambda one: one.bit_width)
        values = [value if one == widest else value.cast(widest) for value, one in zip(values, types, strict=True)]
    found = {}
    for (place, side), frame, value in zip(sides.items(), frames, values, strict=True):
        assert place is not None, "both sides have columns of a relation"
        found[id(side)] = col(frame.with_column(value, "key"))
        items[place] = items[place]._replace(data=frame.data)
    return found


def _changes_rows(join: exp.Join) -> bool:
    """Whether columns of a join may be other ones than those of its relations, or some are not there."""
    kind = str(join.kind or "").upper()
    return bool(join.side or join.method or join.args.get("using")) or kind in ("SEMI", "ANTI")


def _casts_to_text(node: exp.Expr) -> bool:
    """Whether all casts within an expression have a value for each row."""
    return all(cast.is_type(*exp.DataType.TEXT_TYPES) for cast in nodes_in(node, exp.Cast))


def _only_item(node: exp.Expr, items: Mapping[int, Rows]) -> int | None:
    """Return the relation that has all columns of an expression; None without one."""
    places = {_item_of(column, items) for column in nodes_in(node, exp.Column)}
    return next(iter(places)) if len(places) == 1 else None


def _may_be_aggregate(node: exp.Expr) -> bool:
    return any(is_aggregate(one) or str(one.name).lower() == "unnest" for one in nodes_in(node, exp.Anonymous))


def _item_of(column: exp.Column, items: Mapping[int, Rows]) -> int | None:
    """Return the relation that alone has a column, None for another name."""
    parts = [part for part in (column.args.get("table"), column.this) if part is not None]
    if column.args.get("db") is not None or not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    found = [place for place, rows in items.items() if _has(rows.scope, [part.name for part in parts])]
    return found[0] if len(found) == 1 else None


def _has(scope: Scope, names: Sequence[str]) -> bool:
    lower = names[-1].lower()
    if len(names) == 1:
        return any(lower in table.by_name for table in scope.tables)
    table = scope.table(names[0])
    return table is not None and lower in table.by_name


def _own_joins(node: exp.Expr) -> list[exp.Join]:
    return list(node.args.get("joins") or ())


def _joined_all(
    first: exp.Expr,
    joins: Sequence[exp.Join],
    groups: list[Rows],
    context: Context,
    items: Mapping[int, Rows] = MappingProxyType({}),
) -> Rows:
    """Return the rows of a list of relations, in groups between which commas stand."""
    is_one = bool(groups)  # columns of rows outside are joined at once: conditions of ON may look at them
    groups = _added(first, groups, context, items, is_one=is_one)
    for join in joins:
        if is_comma(join):
            groups = _added(join.this, groups, context, items, is_one=is_one)
            continue
        if depends_on_rows(join.this):
            groups = [beside(reduce(lambda one, other: crossed(one, other, context), groups), join, context)]
            continue
        right = items[id(join.this)] if id(join.this) in items else rows_of(join.this, context)
        groups[-1] = joined_rows(groups[-1], right, join, context)
    found = reduce(lambda one, other: crossed(one, other, context), groups)
    names = [table.name.lower() for table in found.scope.tables]
    for table in found.scope.tables:
        if table.name and names.count(table.name.lower()) > 1:
            said = f"{table.name} stands twice in FROM; give each a name, as in {table.name} AS a, {table.name} AS b"
            again = next((one.this for one in joins if one.this.alias_or_name.lower() == table.name.lower()), first)
            raise PlanError(sentence(again, said, context.session.text))
    return found


def _added(
    node: exp.Expr, groups: list[Rows], context: Context, items: Mapping[int, Rows], *, is_one: bool
) -> list[Rows]:
    if depends_on_rows(node) and groups:
        before = reduce(lambda one, other: crossed(one, other, context), groups)
        return [beside(before, exp.Join(this=node), context)]
    rows = items[id(node)] if id(node) in items else rows_of(node, context)
    return [crossed(groups[0], rows, context)] if is_one else [*groups, rows]


# ---- relations --------------------------------------------------------------------------------------------------


def rows_of(node: exp.Expr, context: Context) -> Rows:
    """Return the rows of a relation of FROM."""
    session = context.session
    if node.args.get("sample"):
        plain = node.copy()
        plain.set("sample", None)
        rows = rows_of(plain, context)
        return rows._replace(data=sampled(rows.data, node.args["sample"], context, node))
    if node.args.get("pivots"):
        return _pivoted(node, context)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and node.this.name.lower() in _SERIES:
        return aliased(_function(node, context), node, context)
    if isinstance(node, exp.Table):
        return _table(node, context)
    if isinstance(node, exp.Values):
        return aliased(bind_values(node, with_named(node, context)), node, context)
    if isinstance(node, exp.Unnest):
        frame = one_row(context)
        return unnested(Rows(frame.data, frame.scope, frame.carried), exp.Join(this=node), context)
    if isinstance(node, exp.Lateral):
        return rows_of(of_lateral(node), context)
    if (
        isinstance(node, exp.Subquery)
        and isinstance(node.this, exp.Table | exp.Subquery)
        and (_own_joins(node.this) or isinstance(node.this, exp.Table))
    ):
        found = _joined_all(node.this, _own_joins(node.this), [], context)
        return found if not node.alias else renamed(found, node, context)
    if isinstance(node, exp.Subquery | exp.Query | exp.Pivot):
        return aliased(session.bind_query(node, context), node, context)
    raise NotYetSupportedError(sentence(node, f"{node.key.upper()} in FROM", session.text))


def rows_as_query(node: exp.Expr, context: Context) -> Bound:
    """Return the rows of a relation as those of a query."""
    rows = rows_of(node, context)
    shown = list(rows.scope.columns)
    return Bound(rows.data, tuple(one.column for one in shown), tuple(one.name for one in shown), dict(rows.carried))


def _pivoted(node: exp.Expr, context: Context) -> Rows:
    """Return a relation with PIVOT or UNPIVOT behind it, or several, one after the other."""
    plain = node.copy()
    plain.set("pivots", None)
    found, name, last = rows_as_query(plain, context), plain.alias_or_name, node
    for last in node.args["pivots"]:
        found = bind_pivot(last, found, name, context)
        name = last.alias
    return aliased(found, last, context)


def _table(node: exp.Table, context: Context) -> Rows:
    session = context.session
    name = node.name
    if not node.db and (node.args.get("version") is not None or node.args.get("when") is not None):
        said = "FOR VERSION AS OF of a table of no catalog (read it at a version in Python)"
        raise NotYetSupportedError(sentence(node, said, session.text))
    if not node.db and name.lower() in context.ctes:
        return aliased(named_rows(node, context), node, context)
    data = session.table(node)
    if data is None:
        raise PlanError(sentence(node, _no_table(node, session.table_names), session.text))
    for field in data.schema:
        if field.type.num_fields and is_foreign(field.type):
            said = (
                f"column {field.name!r} is {field.type}, for which SQL has no type; register data.drop({field.name!r})"
            )
            raise SchemaError(sentence(node, said, session.text))
    own = own_columns(session.names, data.columns)
    if any(one.name != one.column for one in own):
        data = data.select([col(one.name).alias(one.column) for one in own])
    found = Bound(data, tuple(one.column for one in own), tuple(one.name for one in own))
    return aliased(found, node, context)


def _no_table(node: exp.Table, known: Sequence[str]) -> str:
    name = ".".join(part.name for part in node.parts)
    if name.rpartition(".")[2].lower() in _ENDINGS:
        return f"no table {name}; a file stands in single quotes: FROM '{name}'"
    shown = list(known)[:12]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    there = f" (there are {', '.join(shown)}{more})" if shown else ""
    return f"no table {name}{did_you_mean(name, known, likeness=0.5)}{there}"


def _function(node: exp.Table, context: Context) -> Bound:
    """Return the rows of a function in FROM: numbers, or times."""
    session, call = context.session, node.this
    name = str(call.name).lower()
    context = context.within(node)
    frame = first_row(node, context)
    values = frame.binder.all(call.expressions)
    if not all(map(is_constant, values)) and not frame.carried:
        session.repeats.end()
        values = [at_moment(one, session.moment) for one in values]
    column = session.names.unique(name)
    try:
        if frame.carried:
            data = numbers_beside(frame.data, column, name, values, frame.binder)
        else:
            given = [scalar_of(one).as_py() if is_constant(one) else None for one in values]
            numbers = no_values(pa.int64()) if any(map(is_null, values)) else series_of(name, given)
            data = session.from_arrow(pa.table({column: numbers}))
    except (PlanError, NotYetSupportedError) as error:
        kind = NotYetSupportedError if isinstance(error, NotYetSupportedError) else PlanError
        raise kind(sentence(call, str(error), session.text)) from None
    return Bound(data, (column,), (name,), frame.carried)
