"""Relations of FROM: rows, and the names that a query has for their columns.

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.dialects.parser import sentence
from engine.errors import PlanError
from engine.sql.frames import Bound, Context
from engine.sql.scopes import Named, Scope, ScopeTable


class Rows(NamedTuple):
    """The rows of a part of FROM."""

    data: DataSet
    scope: Scope
    #: columns of rows outside, by their name there
    carried: Mapping[str, str] = {}


def aliased(found: Bound, node: exp.Expr, context: Context) -> Rows:
    """Return the rows of a query under its alias, with the names of columns that this has."""
    alias = node.args.get("alias")
    name = node.alias_or_name if not isinstance(node, exp.Subquery | exp.Values) else node.alias
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
        name = node.alias or str(node.this.name)
    columns = [one.name for one in alias.columns] if isinstance(alias, exp.TableAlias) else []
    if columns:
        found = with_names(found, columns, node, context)
    shown = tuple(Named(name, column) for name, column in zip(found.names, found.columns, strict=True))
    return Rows(found.data, Scope((ScopeTable(name, shown),)), dict(found.carried))


def with_names(found: Bound, names: Sequence[str], node: exp.Expr, context: Context) -> Bound:
    """Return a query with other names for its first columns. Raises: PlanError for more than it has."""
    if len(names) > len(found.names):
        said = f"{len(names)} names for {len(found.names)} columns"
        raise PlanError(sentence(node, said, context.session.text))
    return found._replace(names=(*names, *found.names[len(names) :]))


def renamed(rows: Rows, node: exp.Subquery, context: Context) -> Rows:
    """Return joined relations in parentheses as one table."""
    shown = list(rows.scope.columns)
    found = Bound(rows.data, tuple(one.column for one in shown), tuple(one.name for one in shown), rows.carried)
    return aliased(found, node, context)
