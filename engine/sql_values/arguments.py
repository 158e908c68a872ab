"""Arguments of a call: constants, and what may be one.

    constant_of(argument, "the unit")     its value; an error that says what it is where it is no constant
    value_of(argument)                    its value, None for what is no constant
    as_option(argument)                   its value, or the expression: what a function takes for each row

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from engine.column_expressions.expression import Expr
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.literals import literal_scalar
from engine.graph.expression import Literal

Arguments = Sequence[Expr]
Function = Callable[[Arguments], Expr]


def constant_of(argument: Expr, what: str) -> Any:
    """Return the value of a constant; NotYetSupportedError, which says what it is, for an expression that is none."""
    if not isinstance(argument.expression, Literal):
        raise NotYetSupportedError(f"{what} that is no constant, in SQL")
    return literal_scalar(argument.expression).as_py()


def whole_constant(argument: Expr, what: str) -> int:
    """Return the whole number of a constant; PlanError, which says what it is, for NULL and what is no number."""
    value = constant_of(argument, what)
    if value is None or not isinstance(value, int | float | Decimal) or value != int(value):
        raise PlanError(f"{what} is {'NULL' if value is None else repr(value)}; write a whole number")
    return int(value)


def value_of(argument: Expr) -> Any:
    """Return the value of a constant, None for what is none."""
    return argument.expression.value if isinstance(argument.expression, Literal) else None


def as_option(argument: Expr) -> Any:
    """Return the value of a constant, or the expression itself: options of calls may be columns."""
    value = value_of(argument)
    return argument if value is None else value
