"""Rows without a table: VALUES, and the one row of a SELECT without FROM.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from engine.dialects.parser import sentence
from engine.errors import PlanError
from engine.expressions.common_type import common_type
from engine.records.plain_scalars import array_of
from engine.sql.frames import Bound, Context, Frame
from engine.sql.scopes import Scope
from engine.sql_values.constants import is_constant, scalar_of
from engine.sql_values.operators import fitted


def bind_values(node: exp.Values, context: Context) -> Bound:
    """Return the rows of VALUES."""
    session = context.session
    context = context.within(node)
    binder = first_row(node, context).binder
    rows = [list(one.expressions) if isinstance(one, exp.Tuple) else [one] for one in node.expressions]
    if len({len(row) for row in rows}) > 1:
        raise PlanError(sentence(node.expressions[-1], "rows of VALUES need as many values", session.text))
    columns = [fitted([binder.bind(row[place]) for row in rows], binder.type_of) for place in range(len(rows[0]))]
    given = [f"col{place}" for place in range(len(columns))]
    names = [session.names.unique(name) for name in given]
    carried = binder.frame.carried
    if all(is_constant(value) for column in columns for value in column) and not carried:
        arrays = [_array([scalar_of(value) for value in column], node, context) for column in columns]
        data = session.from_arrow(pa.Table.from_arrays(arrays, names=names))
    else:
        parts = [
            binder.frame.data.select(
                [*carried.values(), *(column[place].alias(name) for column, name in zip(columns, names, strict=True))]
            )
            for place in range(len(rows))
        ]
        data = parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]
    return Bound(data, tuple(names), tuple(given), dict(carried))


def first_row(node: exp.Expr, context: Context) -> Frame:
    """Return the frame of what has no FROM: one row, or the different values that it carries of rows outside."""
    return carried_rows(node, context) or one_row(context)


def carried_rows(node: exp.Expr, context: Context) -> Frame | None:
    """Return the frame of the different values that a query carries of rows outside, None where it carries none."""
    dependent = context.dependent
    needed = dependent.needed(node) if dependent is not None and dependent.has_domain else []
    if dependent is None or not needed:
        return None
    data, names = dependent.domain(needed)
    return Frame(context, data, Scope(), names)


def one_row(context: Context) -> Frame:
    """Return the frame of a SELECT without FROM: one row."""
    name = context.session.names.unique("row")
    return Frame(context, context.session.from_arrow(pa.table({name: array_of([1], pa.int8())})), Scope())


def _array(values: Sequence[pa.Scalar], node: exp.Expr, context: Context) -> pa.Array:
    wanted = values[0].type
    for value in values[1:]:
        common = common_type(wanted, value.type)
        if common is None:
            said = f"values of a column of VALUES are {wanted} and {value.type}; cast one of them"
            raise PlanError(sentence(node, said, context.session.text))
        wanted = common
    return array_of([value.as_py() for value in values], wanted)
