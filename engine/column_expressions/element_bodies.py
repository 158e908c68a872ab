"""Functions of the elements of lists, as users write them: ``lambda x: x + col("y")``, or ``element() + 1``.

    body_call(values, "list_transform", function, 1)    Call("list_transform", values, y), its body: element + captured0

A function is called once, with expressions of the element and, if it takes two values, of its place from 0. What it
reads of the row is captured: an argument of the call.

Held by: tests/column_expressions/test_element_bodies.py
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from engine.column_expressions.string_expressions import ExprT
from engine.errors import SchemaError
from engine.expressions.lambda_bodies import ELEMENT, ELEMENT_ITSELF, PLACE, body_text, captured_part
from engine.graph.expression import (
    ColumnRef,
    Expression,
    has_aggregate,
    has_data_set,
    has_python,
    has_window,
    replaced,
)

_numbers = count()


def body_call(
    values: ExprT, function: str, body: Any, first: Sequence[Any] = (), kinds: Sequence[str] = (ELEMENT, PLACE)
) -> ExprT:
    """Return the call of a function of lists with a body, a function or an expression of ``element()``.

    first: further arguments in front of what is captured. kinds: what a function is called with, at most.
    """
    what = function.replace("_", ".", 1)
    own = {f"{kind} {next(_numbers)} of {what}": kind for kind in kinds}
    columns = {kind: values.made(ColumnRef(name)) for name, kind in own.items()}
    parameters = [one.call("subtract", 1) if kind == PLACE else one for kind, one in columns.items()]
    if callable(body):
        found = values.made(body(*parameters[: _taken(body, len(kinds), what)])).expression
    elif hasattr(body, "expression"):
        found = values.made(body).expression
    else:
        raise SchemaError(f"{what}({body!r}): write a function, lambda x: x * 2, or an expression of element()")
    for has, said in ((has_window, "a window"), (has_aggregate, "an aggregate"), (has_python, "a Python function")):
        if has(found):
            raise SchemaError(f"{what}: {said} within a list; explode the list first")
    if has_data_set(found):
        raise SchemaError(f"{what}: a value of a data set within a list; make it a column first")
    own[ELEMENT_ITSELF] = ELEMENT
    seen: list[Expression] = []

    def renamed(part: Expression) -> Expression | None:
        if isinstance(part, ColumnRef) and part.name in own:
            return ColumnRef(own[part.name])
        return captured_part(part, seen)

    text = body_text(replaced(found, renamed))
    options = {"has_initial": True} if first else {}
    return values.call(function, *first, *map(values.made, seen), body=text, **options)


def _taken(function: Callable[..., Any], most: int, what: str) -> int:
    """Return the number of values that a function takes: all, or all but the last one."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function that tells nothing about itself
        return most - 1
    for number in (most - 1, most):
        try:
            signature.bind(*[None] * number)
        except TypeError:
            continue
        return number
    raise SchemaError(f"{what}: the function {signature} is called with {most - 1} values, or {most}")
