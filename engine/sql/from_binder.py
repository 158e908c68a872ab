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

import pyarrow as pa
from sqlglot import exp

from engine.api.expressions import col
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.records.plain_types import is_foreign
from engine.sql.aggregates import is_aggregate
from engine.sql.constants import is_constant, scalar_of
from engine.sql.dialect import did_you_mean, sentence
from engine.sql.expression_binder import Expressions
from engine.sql.frames import Bound, Context, Frame
from engine.sql.join_binder import crossed, joined_rows
from engine.sql.lateral_binder import beside, depends_on_rows, is_comma, of_lateral, unnested
from engine.sql.named_queries import named_rows, with_named
from engine.sql.pivots import bind_pivot
from engine.sql.relations import Rows, aliased, renamed
from engine.sql.samples import sampled
from engine.sql.scopes import Scope, matching, own_columns
from engine.sql.series import series_of
from engine.sql.values import bind_values, one_row


def frame_of(node: exp.Select, context: Context) -> Frame:
    """Return the frame of the FROM clause of a SELECT."""
    groups: list[Rows] = []
    dependent = context.dependent
    needed = dependent.needed(node) if dependent is not None and dependent.has_domain else []
    if dependent is not None and needed:
        data, names = dependent.domain(needed)
        groups.append(Rows(data, Scope(), names))
    clause = node.args.get("from_")
    if clause is None:
        if not groups:
            return one_row(context)
        return Frame(context, groups[0].data, groups[0].scope, groups[0].carried)
    joins = [*_own_joins(clause.this), *(node.args.get("joins") or ())]
    items, applied = _filtered_items(node, [clause.this, *(one.this for one in joins)], joins, context)
    found = _joined_all(clause.this, joins, groups, context, items)
    if node.args.get("sample") is not None:
        found = found._replace(data=sampled(found.data, node.args["sample"], context, clause))
    frame = Frame(context, found.data, found.scope, found.carried)
    frame.applied = applied
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
        if part.find(exp.Query, exp.Window) is not None or _may_be_aggregate(part):
            continue
        places = {_item_of(column, items) for column in part.find_all(exp.Column)}
        place = next(iter(places)) if len(places) == 1 else None
        if place is None or (place != id(nodes[0]) and place not in kept):
            continue
        if any(not column.table and column.name.lower() in merged for column in part.find_all(exp.Column)):
            continue
        rows = items[place]
        frame = Frame(context, rows.data, rows.scope)
        frame.place = "WHERE"
        frame.data = frame.data.filter(Expressions(frame).condition(part, "WHERE"))
        items[place] = rows._replace(data=frame.data)
        applied.add(id(part))
    return items, applied


def _may_be_aggregate(node: exp.Expr) -> bool:
    return any(is_aggregate(one) or str(one.name).lower() == "unnest" for one in node.find_all(exp.Anonymous))


def _item_of(column: exp.Column, items: Mapping[int, Rows]) -> int | None:
    """Return the relation that alone has a column, None for another name."""
    parts = [part for part in (column.args.get("table"), column.this) if part is not None]
    if column.args.get("db") is not None or not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    found = [place for place, rows in items.items() if _has(rows.scope, [part.name for part in parts])]
    return found[0] if len(found) == 1 else None


def _has(scope: Scope, names: Sequence[str]) -> bool:
    if len(names) == 1:
        return any(matching(names[0], table.columns) for table in scope.tables)
    table = scope.table(names[0])
    return table is not None and bool(matching(names[1], table.columns))


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
    # what carries columns of rows outside is joined at once: conditions of ON may look at them
    is_one = bool(groups)
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
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
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
    if not node.db and name.lower() in context.ctes:
        return aliased(named_rows(node, context), node, context)
    data = session.table(node)
    if not node.db and (node.args.get("version") is not None or node.args.get("when") is not None):
        said = "FOR VERSION AS OF of a table of no catalog (read it at a version in Python)"
        raise NotYetSupportedError(sentence(node, said, session.text))
    if data is None:
        raise PlanError(sentence(node, _no_table(node, session.table_names), session.text))
    for field in data.schema:
        if is_foreign(field.type):
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
    if name.rpartition(".")[2].lower() in (
        "parquet",
        "csv",
        "json",
        "jsonl",
        "ndjson",
        "arrow",
        "orc",
        "avro",
        "feather",
    ):
        return f"no table {name}; a file stands in single quotes: FROM '{name}'"
    shown = list(known)[:12]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    there = f" (there are {', '.join(shown)}{more})" if shown else ""
    return f"no table {name}{did_you_mean(name, known, cutoff=0.5)}{there}"


def _function(node: exp.Table, context: Context) -> Bound:
    """Return the rows of a function in FROM: numbers, or times."""
    session, call = context.session, node.this
    name = str(call.name).lower()
    if name not in ("range", "generate_series"):
        said = f"no table {name}(); a file stands in single quotes: FROM 'path'"
        raise PlanError(sentence(call, said, session.text))
    values = Expressions(one_row(context)).all(call.expressions)
    given = [scalar_of(one).as_py() if is_constant(one) else None for one in values]
    try:
        found = series_of(name, given)
    except PlanError as error:
        raise PlanError(sentence(call, str(error), session.text)) from None
    column = session.names.unique(name)
    return Bound(session.from_arrow(pa.table({column: found})), (column,), (name,))
