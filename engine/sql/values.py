"""Rows of constants: VALUES, and the one row of a SELECT without FROM.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from engine.errors import PlanError
from engine.expressions.common_type import common_type
from engine.records.plain_scalars import array_of
from engine.sql.constants import is_constant, scalar_of
from engine.sql.dialect import sentence
from engine.sql.expression_binder import Expressions
from engine.sql.frames import Bound, Context, Frame
from engine.sql.operators import fitted
from engine.sql.scopes import Scope


def bind_values(node: exp.Values, context: Context) -> Bound:
    """Return the rows of VALUES."""
    session = context.session
    binder = Expressions(one_row(context))
    rows = [list(one.expressions) if isinstance(one, exp.Tuple) else [one] for one in node.expressions]
    if len({len(row) for row in rows}) > 1:
        raise PlanError(sentence(node.expressions[-1], "rows of VALUES need as many values", session.text))
    columns = [fitted([binder.bind(row[place]) for row in rows], binder.type_of) for place in range(len(rows[0]))]
    given = [f"col{place}" for place in range(len(columns))]
    names = [session.names.unique(name) for name in given]
    if all(is_constant(value) for column in columns for value in column) and binder.frame.carried == {}:
        arrays = [_array([scalar_of(value) for value in column], node, context) for column in columns]
        data = session.from_arrow(pa.Table.from_arrays(arrays, names=names))
    else:
        parts = [
            binder.frame.data.select([column[place].alias(name) for column, name in zip(columns, names, strict=True)])
            for place in range(len(rows))
        ]
        data = parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]
    return Bound(data, tuple(names), tuple(given))


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
