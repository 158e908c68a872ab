"""Functions of lists with a function of their elements: ``list_transform(l, x -> x + 1)``, ``lambda x: x + 1``.

    list_transform(l, (x, i) -> x * k)      Call("list_transform", l, k), whose body is element * captured0
    [x + 1 FOR x IN l IF x > 2]             list_transform(list_filter(l, ...), ...)
    map_filter(m, (k, v) -> v > 1)          map_from_entries(list_filter(map_entries(m), ...))

Names of parameters come before those of columns. What the body sees of rows are arguments of the call.

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.column_expressions.row_functions import struct
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.argument_kinds import is_list
from engine.expressions.lambda_bodies import ELEMENT, PLACE, TOTAL, body_text, captured_part
from engine.graph.expression import ColumnRef, Expression, replaced
from engine.sql.frames import Binder, Frame
from engine.sql_values.data_types import shown_type
from engine.sql_values.lambda_names import ELEMENT_CALLS, pairs_of, sample_of
from engine.sql_values.operators import fitted, truth


class _BodyFrame(Frame):
    """The frame of a body: its parameters, and what the frame around it has."""

    def __init__(self, outer: Frame, parameters: dict[str, Expr], own: Sequence[pa.Field]) -> None:
        super().__init__(outer.context, outer.data, outer.scope, outer.carried)
        self._outer = outer
        self._parameters = parameters
        self._own = own

    @property
    def schema(self) -> pa.Schema:
        """The columns of the frame around it, and the parameters."""
        return pa.schema([*self._outer.schema, *self._own])

    def column(self, parts: Sequence[exp.Identifier]) -> tuple[Expr, Sequence[exp.Identifier]] | None:
        """Return a parameter, or a column of the frame around it."""
        value = self._parameters.get(parts[0].name.lower())
        return (value, parts[1:]) if value is not None else self._outer.column(parts)


def lambda_call(binder: Binder, node: exp.Anonymous) -> Expr:
    """Return the call of a function that takes a function. Raises: PlanError."""
    name = str(node.name).lower()
    given = list(node.expressions)
    functions = [one for one in given if isinstance(one, exp.Lambda)]
    others = [one for one in given if not isinstance(one, exp.Lambda)]
    row = ELEMENT_CALLS[name]
    if len(functions) != 1 or not row.values[0] <= len(others) <= row.values[1]:
        raise PlanError(sample_of(name))
    names = [one.name for one in functions[0].expressions]
    least, most = row.parameters
    if not least <= len(names) <= most:
        takes = f"{least} or {most}" if least < most else str(most)
        raise PlanError(f"the function of {name}() has {len(names)} parameters; it takes {takes}")
    values, body = binder.all(others), functions[0].this
    for one, data_type in [(one, binder.type_of(one)) for one in values[: row.values[0]]]:
        if pa.types.is_null(data_type):
            return one
        if not (pa.types.is_map(data_type) if row.kind == "map" else is_list(data_type)):
            raise PlanError(f"{name}() of {shown_type(data_type)}, which is no {row.kind}")
    values = values if row.part is None else [pairs_of(row.kind, values)]
    return row.result(of_elements(binder, row.function, values, names, body, row.part))


def of_elements(
    binder: Binder, function: str, values: list[Expr], names: Sequence[str], body: exp.Expr, part: str | None = None
) -> Expr:
    """Return the call of a function of lists over a list, and a first total, with a body for its elements.

    ``part``: elements are pairs, whose key and value are the parameters; the body makes that part of one, "" all of it.
    """
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
    columns = [frame.unique(kind) for kind in kinds[: len(names) if part is None else 1]]
    entry = [col(columns[0]).field("key"), col(columns[0]).field("value")] if part is not None else map(col, columns)
    own_types = [pa.field(column, types[kind]) for column, kind in zip(columns, kinds, strict=False)]
    parameters = {name.lower(): value for name, value in zip(names, entry, strict=True)}
    bound = _BodyFrame(frame, parameters, own_types).binder
    found = bound.bind(body)
    if part:
        found = struct(**{"key": col(columns[0]).field("key"), "value": col(columns[0]).field("value"), part: found})
    if function == "list_filter":
        found = truth(found, bound.type_of, "the condition")
    if function == "list_reduce" and len(values) > 1:
        total = fitted([values[1], found], bound.type_of)[0]
        values = [values[0], total]
    own = dict(zip(columns, kinds, strict=False))
    seen: list[Expression] = []
    text = body_text(replaced(found.expression, _renamed(own, seen)))
    options = {"has_initial": True} if len(values) > 1 else {}
    made = values[0].call(function, *values[1:], *map(Expr, seen), body=text, **options)
    binder.type_of(made)
    return made


def _renamed(own: dict[str, str], seen: list[Expression]) -> Callable[[Expression], Expression | None]:
    """Return a function that renames columns to those of a body; what is not its own is captured."""

    def rename(part: Expression) -> Expression | None:
        if isinstance(part, ColumnRef) and part.name in own:
            return ColumnRef(own[part.name])
        return captured_part(part, seen)

    return rename


def comprehension(binder: Binder, node: exp.Comprehension) -> Expr:
    """Return [body FOR x IN l IF condition]."""
    values = [binder.bind(node.args["iterator"])]
    names, condition = [node.expression.name], node.args.get("condition")
    if condition is not None:
        values = [of_elements(binder, "list_filter", values, names, condition)]
    return of_elements(binder, "list_transform", values, names, node.this)
