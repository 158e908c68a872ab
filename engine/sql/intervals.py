"""Intervals whose number is computed: moments that are moved by them.

    d + INTERVAL (n) DAY, d + to_days(n)                 the date moved by as many days as n says

Held by: tests/sql/test_spans.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.sql.frames import Binder
from engine.sql_values.constants import is_constant, scalar_of
from engine.sql_values.operators import in_utc, is_moment
from engine.sql_values.spans import TO_UNITS, moved

_TO: Final = "to_"


def text_of_interval(binder: Binder, node: exp.Interval) -> str | None:
    """Return the text behind INTERVAL, of a constant or of a parameter; None for another value."""
    if isinstance(node.this, exp.Placeholder | exp.Parameter):
        value = binder.bind(node.this)
        given = scalar_of(value).as_py() if is_constant(value) else None
        return given if isinstance(given, str) else None
    return node.this.name if isinstance(node.this, exp.Literal) else None


def is_interval(binder: Binder, node: exp.Expr) -> bool:
    """Return whether a node is an interval whose number is computed."""
    inner = node.unnest()
    if isinstance(inner, exp.Anonymous):
        return str(inner.name).lower() in TO_UNITS
    if isinstance(inner, exp.Mul):
        return any(isinstance(one.unnest(), exp.Interval) for one in (inner.this, inner.expression))
    return isinstance(inner, exp.Interval) and text_of_interval(binder, inner) is None


def _count(node: exp.Expr) -> exp.Expr:
    """Return the number of an interval of one unit."""
    return exp.Literal.number(node.name) if isinstance(node, exp.Literal) else node


def interval_moved(binder: Binder, one: exp.Expr, other: exp.Expr, *, is_back: bool) -> Expr | None:
    """Return a moment moved by a computed interval; None where the other side is no moment."""
    inner = other.unnest()
    if isinstance(inner, exp.Mul):
        sides = [inner.this.unnest(), inner.expression.unnest()]
        interval = next(side for side in sides if isinstance(side, exp.Interval))
        times = next(side for side in sides if side is not interval)
        unit = interval.args["unit"].name if interval.args.get("unit") is not None else "day"
        number = exp.Mul(this=times, expression=_count(interval.this))
    elif isinstance(inner, exp.Anonymous):
        unit, number = str(inner.name).lower().removeprefix(_TO), inner.expressions[0]
    else:
        unit, number = inner.args["unit"].name if inner.args.get("unit") is not None else "day", inner.this
    value = binder.bind(one)
    data_type = binder.type_of(value)
    if not is_moment(data_type):
        return None
    is_date = bool(pa.types.is_date(data_type))
    return moved(in_utc(value, data_type), binder.bind(number), unit, is_date=is_date, is_back=is_back)
