"""Calls by name: functions of the user, and those of SQL.

Held by: tests/sql/test_registered_functions.py
"""

from __future__ import annotations

import inspect

from engine.column_expressions.expression import Expr
from engine.column_expressions.udfs import Udf
from engine.errors import PlanError
from engine.sql.frames import Binder
from engine.sql_values import function_calls
from engine.sql_values.function_handlers import Known
from engine.sql_values.lambda_names import LAMBDA_NAMES, sample_of


def called(binder: Binder, name: str, given: list[Expr]) -> Expr:
    """Return a call. Raises: PlanError for a name or arguments that no function has."""
    session = binder.frame.session
    if name in session.functions:
        return binder.frame.called(_of_user(name, session.functions[name], given))
    if name in LAMBDA_NAMES:
        raise PlanError(sample_of(name))
    known = Known(binder.type_of, session.repeats.end)
    return function_calls.called(known, name, given, session.functions)


def _of_user(name: str, function: Udf, given: list[Expr]) -> Expr:
    """Return a call of a function of the user. Raises: PlanError for more or fewer arguments than it takes."""
    try:
        parameters = inspect.signature(function.function)
    except (TypeError, ValueError):  # a function that tells nothing about itself
        return function(*given)
    try:
        parameters.bind(*given)
    except TypeError as error:
        raise PlanError(f"{name}{parameters}: {error}") from None
    return function(*given)
