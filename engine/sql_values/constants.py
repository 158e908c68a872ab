"""Constants of a query, evaluated by the code that evaluates columns, so that both have equal values.

    computed(lit("2024-02-29").cast(date) + interval) -> lit(2024-03-01 12:00)

What has no value (1 / 0) stays as it is, and fails where a row is there to be computed.

Held by: tests/sql/test_constants.py
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit
from engine.errors import DataError, SchemaError
from engine.expressions.evaluate import evaluate
from engine.expressions.literals import literal_scalar, make_literal
from engine.graph.expression import JOB_MOMENT, Call, ColumnRef, Expression, Literal, reads_columns, replaced
from engine.graph.function_table import is_deterministic

_ONE_ROW: Final = pa.record_batch({"": pa.nulls(1)})


def is_constant(value: Expr) -> bool:
    """Return whether an expression is a constant."""
    return isinstance(value.expression, Literal)


def is_null(value: Expr) -> bool:
    """Return whether an expression is NULL."""
    return is_constant(value) and not scalar_of(value).is_valid


def scalar_of(value: Expr) -> pa.Scalar:
    """Return the value of a constant."""
    assert isinstance(value.expression, Literal)
    return literal_scalar(value.expression)


def at_moment(value: Expr, moment: datetime) -> Expr:
    """Return the constant that an expression is at a moment: what stands in FROM is made before any job."""
    now = make_literal(moment)

    def answered(part: Expression) -> Expression | None:
        return now if isinstance(part, Call) and part.function == JOB_MOMENT else None

    return computed(Expr(replaced(value.expression, answered)))


def computed(value: Expr) -> Expr:
    """Return the constant that an expression is, or the expression where it reads columns or has no value."""
    expression = value.expression
    if isinstance(expression, Literal | ColumnRef) or reads_columns(expression):
        return value
    try:
        return lit(evaluate(expression, _ONE_ROW)[0]) if is_deterministic(expression) else value
    except (DataError, SchemaError):
        return value
