"""PIVOT and UNPIVOT, as statements and in FROM: columns of values, and rows of columns.

    PIVOT t ON s USING sum(v) GROUP BY k       SELECT k, sum(v) FILTER (WHERE s = 'a') AS a, ... FROM t GROUP BY k
    t PIVOT (sum(v) FOR s IN ('a', 'b'))       the same, of values that are written; groups are all other columns
    UNPIVOT t ON a, b INTO NAME n VALUE x      a row for each of the columns: an array of structs, taken apart

Values that are not written are found by a job that runs when the query is bound; nulls are none of them.

Held by: tests/sql/test_pivots.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from engine.api.shapes import value_name
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit
from engine.column_expressions.row_functions import array, struct
from engine.dialects.parser import sentence, written
from engine.errors import PlanError
from engine.expressions.common_type import common_type
from engine.sql.aggregates import aggregates_in
from engine.sql.frames import Binder, Bound, Context, Frame
from engine.sql.scopes import Named, Scope, ScopeTable
from engine.sql.select_list import expanded
from engine.sql_values.constants import is_constant, scalar_of
from engine.sql_values.data_types import shown_type

_NAME: Final = "pivot"


class _Value(NamedTuple):
    """A value of a column of ON: its name in the columns of the result, and the condition of its rows."""

    name: str
    condition: exp.Expr


def bind_pivot(node: exp.Pivot, found: Bound, name: str, context: Context) -> Bound:
    """Return the rows of PIVOT or UNPIVOT over the rows of a relation of that name."""
    shown = tuple(Named(one, column) for one, column in zip(found.names, found.columns, strict=True))
    frame = Frame(context, found.data, Scope((ScopeTable(name, shown),)), found.carried)
    if node.args.get("unpivot"):
        return _unpivoted(node, frame)
    # of a statement: ON and USING; in FROM: FOR, and what stands before it
    is_statement = node.args.get("fields") is None
    ons = node.expressions if is_statement else node.args["fields"]
    given = (node.args.get("using") or ()) if is_statement else node.expressions
    aggregates = list(given) or [exp.Anonymous(this="count", expressions=[exp.Star()])]
    for one in aggregates:
        if not aggregates_in(one):
            said = "PIVOT takes aggregates, as in USING sum(v)"
            raise PlanError(sentence(one, said, context.session.text))
    used = _names_in([*ons, *aggregates])
    values = [_values(on, frame) for on in ons]
    group = node.args.get("group")
    kept = [exp.column(one.name, quoted=True) for one in shown if one.name.lower() not in used]
    keys = kept if group is None else list(group.expressions)
    select = exp.Select(expressions=[*keys, *_cells(values, aggregates, context)])
    if keys:
        select.set("group", exp.Group(expressions=[one.unalias().copy() for one in keys]))
    table = name or _NAME
    select.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(table, quoted=True))))
    for word in ("order", "limit", "offset"):
        select.set(word, node.args.get(word))
    made = [one for one in frame.data.columns if one not in found.data.columns]
    rows = Bound(frame.data, (*found.columns, *made), (*found.names, *made), found.carried)
    return context.session.bind_query(select, replace(context, ctes={**context.ctes, table.lower(): rows}))


def _names_in(nodes: Sequence[exp.Expr]) -> set[str]:
    return {column.name.lower() for node in nodes for column in node.find_all(exp.Column)}


# ---- columns of values ------------------------------------------------------------------------------------------


def _values(on: exp.Expr, frame: Frame) -> list[_Value]:
    """Return the values of ON; what it compares becomes columns of the frame."""
    tested = on.this.unnest() if isinstance(on, exp.In) else on
    binder, parts = frame.binder, tested.expressions if isinstance(tested, exp.Tuple) else [tested]
    columns = [frame.unique("on") for _ in parts]
    frame.data = frame.data.with_columns(**dict(zip(columns, binder.all(parts), strict=True)))
    if not isinstance(on, exp.In) or on.args.get("query") is not None:
        if isinstance(on, exp.In) or len(columns) != 1:
            said = "PIVOT takes values that are written, ON s IN ('a', 'b'), or all of one expression, ON s"
            raise PlanError(binder.said(on, said))
        different = [one for one in frame.data.different_values(columns[0]) if one.is_valid]
        return [_Value(value_name(one), _equals(columns[0], lit(one))) for one in different]
    found = []
    for one in on.expressions:
        alias = one.args["alias"].name if isinstance(one, exp.PivotAlias | exp.Alias) else ""
        inner = (one.this if alias else one).unnest()
        nodes = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
        if len(nodes) != len(columns):
            raise PlanError(binder.said(inner, f"{len(nodes)} values for {len(columns)} columns of PIVOT"))
        # a word without quotes is a text here
        words = [
            lit(each.name) if isinstance(each, exp.Column) and not each.table else binder.bind(each) for each in nodes
        ]
        if not all(map(is_constant, words)):
            raise PlanError(binder.said(inner, "values of PIVOT are constants"))
        name = alias or "_".join(value_name(scalar_of(each)) for each in words)
        tests = [_equals(column, each) for column, each in zip(columns, words, strict=True)]
        found.append(_Value(name, exp.and_(*tests) if len(tests) > 1 else tests[0]))
    return found


def _equals(column: str, value: Expr) -> exp.Expr:
    tested = exp.column(column, quoted=True)
    if not scalar_of(value).is_valid:
        return exp.Is(this=tested, expression=exp.Null())
    constant = exp.Placeholder()
    constant.meta["value"] = value
    return exp.EQ(this=tested, expression=constant)


def _cells(values: Sequence[list[_Value]], aggregates: Sequence[exp.Expr], context: Context) -> list[exp.Expr]:
    """Return the columns of all combinations of values, each aggregate of their rows alone."""
    cells: list[exp.Expr] = []
    for combined in product(*values):
        name = "_".join(one.name for one in combined)
        for one in aggregates:
            alias = one.alias if isinstance(one, exp.Alias) else ""
            shown = alias or (written(one, context.session.text) if len(aggregates) > 1 else "")
            cell = (one.this if alias else one).copy()
            for call in aggregates_in(cell):
                kept = exp.and_(*(value.condition for value in combined))
                cell = _filtered(cell, call, kept)
            cells.append(exp.alias_(cell, f"{name}_{shown}" if shown else name, quoted=True))
    return cells


def _filtered(cell: exp.Expr, call: exp.Expr, kept: exp.Expr) -> exp.Expr:
    """Return a cell in which an aggregate sees the rows that meet a condition."""
    if isinstance(call, exp.Filter):
        call.expression.set("this", exp.and_(call.expression.this, kept))
        return cell
    filtered = exp.Filter(this=call.copy(), expression=exp.Where(this=kept))
    if call is cell:
        return filtered
    call.replace(filtered)
    return cell


# ---- rows of columns --------------------------------------------------------------------------------------------


def _unpivoted(node: exp.Pivot, frame: Frame) -> Bound:
    """Return a row for each column, or group of columns."""
    session, binder = frame.session, frame.binder
    name, names, entries = _parts_of(node)
    items = [item for one in entries for item in _entries(one, frame)]
    groups = [one.expressions if isinstance(one, exp.Tuple) else [one] for _, one in items]
    if any(len(group) != len(names) for group in groups):
        said = f"UNPIVOT of {len(groups[0])} columns into {len(names)}; name as many values"
        raise PlanError(binder.said(node, said))
    values = [[binder.bind(one) for one in group] for group in groups]
    columns = [_alike([group[place] for group in values], binder, node) for place in range(len(names))]
    held, name_column, *own = (session.names.unique(one) for one in ("unpivoted", name, *names))
    pairs = array(
        *(
            struct(
                **{name_column: lit(shown), **{each: column[place] for each, column in zip(own, columns, strict=True)}}
            )
            for place, (shown, _) in enumerate(items)
        )
    )
    used = _names_in([one for _, one in items])
    kept = [one for one in frame.scope.columns if one.name.lower() not in used]
    carried = dict.fromkeys((*(one.column for one in kept), *frame.carried.values()))
    data = frame.data.select([*carried, pairs.alias(held)]).explode(held).unnest(held)
    if not node.args.get("include_nulls"):
        for each in own:
            data = data.filter(col(each).is_not_null())
    return Bound(
        data,
        (*(one.column for one in kept), name_column, *own),
        (*(one.name for one in kept), name, *names),
        frame.carried,
    )


def _parts_of(node: exp.Pivot) -> tuple[str, list[str], list[exp.Expr]]:
    """Return the names of the columns of names and of values, and the columns that become rows."""
    fields = node.args.get("fields")
    if fields:
        (values,) = node.expressions
        names = values.expressions if isinstance(values, exp.Tuple) else [values]
        return fields[0].this.name, [one.name for one in names], list(fields[0].expressions)
    into = node.args.get("into")
    if into is None:
        return "name", ["value"], list(node.expressions)
    return into.this.name, [one.name for one in into.expressions] or ["value"], list(node.expressions)


def _entries(node: exp.Expr, frame: Frame) -> list[tuple[str, exp.Expr]]:
    """Return the columns that become rows, with their names; of COLUMNS('pattern') and * all that they mean."""
    alias = node.args["alias"].name if isinstance(node, exp.PivotAlias | exp.Alias) else ""
    inner = node.this if alias else node
    if isinstance(inner, exp.Tuple):
        return [(alias or "_".join(one.name for one in inner.expressions), inner)]
    items = expanded(exp.Select(expressions=[inner.copy()]), frame)
    return [(alias or item.name, item.node or exp.column(item.name, quoted=True)) for item in items]


def _alike(values: list[Expr], binder: Binder, node: exp.Expr) -> list[Expr]:
    """Return values of one column, of one type."""
    types = [binder.type_of(one) for one in values]
    shared: pa.DataType | None = types[0]
    for one in types[1:]:
        shared = shared and common_type(shared, one)
    if shared is None:
        shown = " and ".join(dict.fromkeys(map(shown_type, types)))
        raise PlanError(binder.said(node, f"UNPIVOT of columns of {shown}; cast them to one type"))
    return [one if kind == shared else one.cast(shared) for one, kind in zip(values, types, strict=True)]
