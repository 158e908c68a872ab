"""Queries of WITH, and how often each is made.

A query that is used several times is one data set with several uses if it is mostly aggregates, or joins: what is
read by each use of another one is pruned and filtered for it. So is a use with a condition of its own, such as
x.year = 2001; the optimizer finds what such uses have in common.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.column_expressions.expressions import col
from engine.dialects.parser import nodes_in, sentence
from engine.errors import NotYetSupportedError
from engine.sql.aggregates import aggregates_in
from engine.sql.frames import Bound, Context, Session
from engine.sql.recursive_queries import is_recursive, recursive_rows
from engine.sql.relations import with_names


def with_named(node: exp.Expr, context: Context) -> Context:
    """Return a context with the queries of a WITH clause."""
    clause = node.args.get("with_")
    if clause is None:
        return context
    for one in clause.expressions:
        context = replace(context, ctes={**context.ctes, one.alias.lower(): (one, context)})
    return context


def named_rows(use: exp.Table, used: Context) -> Bound:
    """Return the rows of a name of WITH, where it is used."""
    found = used.ctes[use.name.lower()]
    if isinstance(found, Bound):
        return _again(used.session, found)
    node, context = found
    rows = _bound(node, context, used, use)
    alias = node.args.get("alias")
    columns = [one.name for one in alias.columns] if alias is not None else []
    return with_names(rows, columns, use, used) if columns else rows


def _bound(node: exp.CTE, context: Context, used: Context, use: exp.Table) -> Bound:
    session = context.session
    is_recursion = is_recursive(node)
    if is_recursion and id(node) not in session.known:
        session.known[id(node)] = recursive_rows(node, context)
    is_kept = is_recursion or (_is_kept(node.this) and not _is_filtered(use))
    if is_kept and id(node) in session.known:
        return _again(session, session.known[id(node)])
    found = session.bind_query(node.this, context)
    if found.carried and context.dependent is not used.dependent:
        said = "a query of WITH that looks at columns outside, within another such query"
        raise NotYetSupportedError(sentence(node, said, session.text))
    if is_kept and not found.carried:
        names = list(dict.fromkeys(found.columns))
        found = found._replace(data=found.data.select(names))
        session.known[id(node)] = found
    return found


def _again(session: Session, found: Bound) -> Bound:
    """Return a query that is made already, its columns under names of this use."""
    own = dict.fromkeys((*found.columns, *found.carried.values()))
    names = {column: session.names.unique(column) for column in own}
    data = found.data.select([col(column).alias(name) for column, name in names.items()])
    carried = {outer: names[column] for outer, column in found.carried.items()}
    return Bound(data, tuple(names[column] for column in found.columns), found.names, carried)


def _is_kept(node: exp.Expr) -> bool:
    """Return whether a query that is used several times is made once: see above."""
    below = beside = joins = 0
    for select in nodes_in(node, exp.Select):
        from_ = select.args.get("from_")
        tables = [from_.this] if from_ is not None else []
        inner_joins = select.args.get("joins") or ()
        tables += [one.this for one in inner_joins]
        joins += len(inner_joins)
        is_grouped = select.args.get("group") is not None or any(aggregates_in(one) for one in select.expressions)
        count = sum(isinstance(one, exp.Table) for one in tables)
        is_below = is_grouped or _is_below(select, node)
        below, beside = below + count * is_below, beside + count * (not is_below)
    return below > beside or (below == 0 and joins > 0)


def _is_filtered(use: exp.Table) -> bool:
    """Return whether a SELECT has a condition of a table alone, with constants."""
    select, name = use.parent_select, use.alias_or_name.lower()
    if select is None:
        return False
    where = select.args.get("where")
    conditions = [where.this] if where is not None else []
    conditions += [one.args["on"] for one in select.args.get("joins") or () if one.args.get("on") is not None]
    for condition in conditions:
        for part in condition.unnest().flatten() if isinstance(condition.unnest(), exp.And) else [condition]:
            columns = nodes_in(part, exp.Column)
            if columns and all(one.table.lower() == name for one in columns) and nodes_in(part, exp.Literal):
                return True
    return False


def _is_below(select: exp.Expr, root: exp.Expr) -> bool:
    parent = select.parent
    while parent is not None and select is not root:
        if isinstance(parent, exp.Select) and (
            parent.args.get("group") is not None or any(aggregates_in(one) for one in parent.expressions)
        ):
            return True
        if parent is root:
            return False
        parent = parent.parent
    return False
