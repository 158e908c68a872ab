"""Groups as queries within their expressions see them: aggregates and keys of the query around.

    SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.x > sum(t.v))      sum(t.v) is one of t's groups
    SELECT k + 1, (SELECT max(x) FROM u WHERE u.k = t.k + 1) FROM t GROUP BY k + 1       t.k + 1 is the key

Before the groups are made, each becomes a column that only the query around has, which holds what was written. An
aggregate belongs to the query whose columns it reads, if it reads no others; one of no columns to its own.

Held by: tests/sql/test_outer_groups.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from engine.dialects.parser import nodes_in
from engine.sql.aggregates import is_aggregate
from engine.sql.frames import OF_GROUPS, Frame

#: arguments of a column, the last part of its name first
_PARTS = ("this", "table", "db", "catalog")


def lift_aggregates(frame: Frame, nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return the aggregates of a frame that queries within expressions have; each leaves a column in its place."""
    for query in _queries_in(nodes):
        for one in [one for one in nodes_in(query) if is_aggregate(one)]:
            # what stands behind an aggregate is a part of it
            if not is_aggregate(one.parent or query) and _is_of(frame, one, query):
                _leave_column(frame, one)
    found = [one.this.meta.get(OF_GROUPS) for query in _queries_in(nodes) for one in nodes_in(query, exp.Column)]
    return [one for one in found if one is not None and is_aggregate(one) and frame.has(one)]


def lift_keys(frame: Frame, nodes: Sequence[exp.Expr], is_key: Callable[[exp.Expr], bool]) -> None:
    """Leave columns in the place of keys that queries within expressions have."""
    for query in _queries_in(nodes):
        waiting = [query]
        while waiting:
            one = waiting.pop()
            if not isinstance(one, exp.Query) and _is_of(frame, one, query) and is_key(one):
                _leave_column(frame, one)
            else:
                waiting += one.iter_expressions()


def _queries_in(nodes: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    for node in nodes:
        yield from node.find_all(exp.Query)


def _leave_column(frame: Frame, node: exp.Expr) -> None:
    for column in list(node.find_all(exp.Column)):
        if parts := _marked(column):
            column.replace(exp.Column(**dict(zip(_PARTS, [part.copy() for part in reversed(parts)], strict=False))))
    name = exp.to_identifier(frame.unique("group"), quoted=True)
    first = node.find(exp.Identifier)
    if first is not None:  # its place in the text
        name.meta.update(first.meta)
    node.replace(exp.Column(this=name))
    name.meta[OF_GROUPS] = node


def _is_of(frame: Frame, node: exp.Expr, query: exp.Expr) -> bool:
    """Return whether a node within a query reads columns of a frame alone."""
    columns = [] if isinstance(node, exp.Column | exp.Identifier) else nodes_in(node, exp.Column)
    if columns and all(_marked(one) for one in columns):
        levels = _levels(node, query)
        return all(one.this.meta["levels"] == levels and frame.knows(_marked(one)) for one in columns)
    if not columns or not all(isinstance(one.this, exp.Identifier) and _named(frame, one) for one in columns):
        return False
    around: list[exp.Select] = []
    at: exp.Expr | None = node
    while at is not query.parent and at is not None:
        around += [at] if isinstance(at, exp.Select) else []
        at = at.parent
    return not any(_has(frame, select, column) for select in around for column in columns)


def _marked(column: exp.Expr) -> Sequence[exp.Identifier]:
    """Return the column that an argument of a macro named, as the caller wrote it; () for other columns."""
    found: Sequence[exp.Identifier] = column.this.meta.get("parts", ())
    return found if len(found) <= len(_PARTS) else ()


def _levels(node: exp.Expr, query: exp.Expr) -> int:
    """Return the number of queries within expressions from a node to the one that it is in, and with that one."""
    levels = 0
    at: exp.Expr | None = node.parent
    while at is not None and at is not query.parent:
        if isinstance(at, exp.Select | exp.SetOperation | exp.Values):
            levels += not isinstance(_around(at), exp.SetOperation | exp.CTE | exp.From | exp.Join)
        at = at.parent
    return levels


def _around(query: exp.Expr) -> exp.Expr | None:
    found = query.parent
    while isinstance(found, exp.Paren | exp.Subquery):
        found = found.parent
    return found


def _named(frame: Frame, column: exp.Column) -> bool:
    parts = [one for one in (column.args.get("table"), column.this) if one is not None]
    return column.args.get("db") is None and frame.knows(parts)


def _has(frame: Frame, select: exp.Select, column: exp.Column) -> bool:
    """Return whether a table of a SELECT has the name of a column, or may have it."""
    clause = select.args.get("from_")
    relations = [] if clause is None else [clause.this, *(one.this for one in select.args.get("joins") or ())]
    if column.table:
        return any(one.alias_or_name.lower() == column.table.lower() for one in relations)
    return any(_may_have(frame, one, column.name.lower()) for one in relations)


def _may_have(frame: Frame, relation: exp.Expr, name: str) -> bool:
    alias = relation.args.get("alias")
    if isinstance(relation, exp.Values) and alias is not None and alias.columns:
        return name in (one.name.lower() for one in alias.columns)
    if not isinstance(relation, exp.Table) or not isinstance(relation.this, exp.Identifier):
        return True
    if relation.name.lower() in frame.context.ctes or relation.args.get("joins"):
        return True
    data = frame.session.table(relation)
    return data is None or name in (one.lower() for one in data.columns)
