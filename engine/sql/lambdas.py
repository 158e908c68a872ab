"""Functions of lists with a function of their elements: ``list_transform(l, x -> x + 1)``, ``lambda x: x + 1``.

    list_transform(l, (x, i) -> x * k)      Call("list_transform", l, k), whose body is element * captured0
    [x + 1 FOR x IN l IF x > 2]             list_transform(list_filter(l, ...), ...)

Names of parameters come before those of columns. What the body sees of rows are arguments of the call.

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.argument_kinds import is_list
from engine.expressions.lambda_bodies import ELEMENT, PLACE, TOTAL, body_text, captured
from engine.graph.expression import ColumnRef, Expression, replaced
from engine.sql.frames import Binder, Frame
from engine.sql_values.data_types import shown_type
from engine.sql_values.operators import fitted, truth

_NAMES: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("list_transform", "list_apply", "apply", "array_transform", "array_apply", "transform"), "list_transform"
    ),
    **dict.fromkeys(("list_filter", "array_filter", "filter"), "list_filter"),
    **dict.fromkeys(("list_reduce", "array_reduce", "reduce"), "list_reduce"),
    # Spark's, whose first total comes before the function
    "aggregate": "list_reduce",
}
LAMBDA_NAMES: Final = frozenset(_NAMES)


class _BodyFrame(Frame):
    """The frame of a body: its parameters, and what the frame around it has."""

    def __init__(self, outer: Frame, parameters: Sequence[tuple[str, str, pa.DataType]]) -> None:
        super().__init__(outer.context, outer.data, outer.scope, outer.carried)
        self._outer = outer
        self._parameters = {name.lower(): column for name, column, _ in parameters}
        self._own = [pa.field(column, data_type) for _, column, data_type in parameters]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the frame around it, and the parameters."""
        return pa.schema([*self._outer.schema, *self._own])

    def column(self, parts: Sequence[exp.Identifier]) -> tuple[Expr, Sequence[exp.Identifier]] | None:
        """Return a parameter, or a column of the frame around it."""
        column = self._parameters.get(parts[0].name.lower())
        return (col(column), parts[1:]) if column is not None else self._outer.column(parts)


def lambda_call(binder: Binder, node: exp.Anonymous) -> Expr:
    """Return the call of a function that takes a function. Raises: PlanError."""
    name = str(node.name).lower()
    given = list(node.expressions)
    functions = [one for one in given if isinstance(one, exp.Lambda)]
    others = [one for one in given if not isinstance(one, exp.Lambda)]
    is_reduce = _NAMES[name] == "list_reduce"
    if len(functions) != 1 or not 1 <= len(others) <= 1 + is_reduce:
        raise PlanError(f"{name}() takes a list and a function, as in {name}(l, {'(a, x)' if is_reduce else 'x'} -> x)")
    names = [one.name for one in functions[0].expressions]
    most = 2 + is_reduce
    if not 1 + is_reduce <= len(names) <= most:
        raise PlanError(f"the function of {name}() has {len(names)} parameters; it takes {1 + is_reduce} or {most}")
    values = binder.all(others)
    return of_elements(binder, _NAMES[name], values, names, functions[0].this)


def of_elements(binder: Binder, function: str, values: list[Expr], names: Sequence[str], body: exp.Expr) -> Expr:
    """Return the call of a function of lists over a list, and a first total, with a body for its elements."""
    frame, data_type = binder.frame, binder.type_of(values[0])
    if pa.types.is_null(data_type):
        return values[0]
    if not is_list(data_type):
        raise PlanError(f"{function}() of {shown_type(data_type)}, which is no list")
    if body.find(exp.Query, exp.Window) is not None:
        said = "a query or a window within the function of a list; write it with unnest()"
        raise NotYetSupportedError(binder.said(body, said))
    element = data_type.value_type
    kinds = [ELEMENT, PLACE] if function != "list_reduce" else [TOTAL, ELEMENT, PLACE]
    types = {ELEMENT: element, PLACE: pa.int64(), TOTAL: binder.type_of(values[1]) if len(values) > 1 else element}
    columns = [frame.unique(kind) for kind in kinds[: len(names)]]
    parameters = [(name, column, types[kind]) for name, column, kind in zip(names, columns, kinds, strict=False)]
    inner = _BodyFrame(frame, parameters)
    bound = inner.binder
    found = bound.bind(body)
    if function == "list_filter":
        found = truth(found, bound.type_of, "the condition")
    if function == "list_reduce" and len(values) > 1:
        total = fitted([values[1], found], bound.type_of)[0]
        values = [values[0], total]
    own = dict(zip(columns, kinds, strict=False))
    seen: dict[str, str] = {}
    text = body_text(replaced(found.expression, _renamed(own, seen)))
    options = {"has_initial": True} if len(values) > 1 else {}
    made = values[0].call(function, *values[1:], *map(col, seen), body=text, **options)
    binder.type_of(made)
    return made


def _renamed(own: dict[str, str], seen: dict[str, str]) -> Callable[[Expression], Expression | None]:
    """Return a function that renames columns to those of a body; what is not its own is captured."""

    def rename(part: Expression) -> Expression | None:
        if not isinstance(part, ColumnRef):
            return None
        name = own.get(part.name) or seen.setdefault(part.name, captured(len(seen)))
        return ColumnRef(name)

    return rename


def comprehension(binder: Binder, node: exp.Comprehension) -> Expr:
    """Return [body FOR x IN l IF condition]."""
    values = [binder.bind(node.args["iterator"])]
    names, condition = [node.expression.name], node.args.get("condition")
    if condition is not None:
        values = [of_elements(binder, "list_filter", values, names, condition)]
    return of_elements(binder, "list_transform", values, names, node.this)
