"""Expressions that rules of lowering put together, of expressions and plain constants.

    call("less_equal", rows, 1)                       a function by its name, as ``engine.graph.function_table`` has it
    case((condition, value), otherwise=0)             when, then, otherwise
    cast(value, pa.float64())                         a conversion that the engine adds: ``widens``

Held by: tests/integration/test_window_rewrites.py
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Call, Case, Cast, Expression
from engine.graph.function_table import with_constants


def term(value: Any) -> Expression:
    """Return an expression as it is, and a plain value as a constant."""
    return value if isinstance(value, Expression) else make_literal(value)


def call(function: str, *values: Any, **options: bool | int | float | str | None) -> Expression:
    """Return a function of values: expressions, and constants."""
    return with_constants(function, [term(value) for value in values], options, {})


def case(*branches: tuple[Expression, Any], otherwise: Any = None) -> Expression:
    """Return the value of the first branch whose condition is true; null where none is and there is no otherwise."""
    pairs = tuple((condition, term(value)) for condition, value in branches)
    return Case(pairs, None if otherwise is None else term(otherwise))


def cast(value: Expression, data_type: pa.DataType, *, widens: bool = False) -> Cast:
    """Return a value as another type; ``widens``: as the nearest value, where a user's cast must be exact."""
    return Cast(value, type_to_ipc(data_type), str(data_type), widens)


def is_there(value: Expression) -> Call:
    """Return whether a value is not null."""
    return Call("is_not_null", (value,))
