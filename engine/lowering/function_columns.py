"""Users' functions of values within expressions, as columns that operators below them add.

    filter(odd(col("x") + 1))     rows ─► project: rows, __argument0 = x + 1 ─► column odd ─► filter ─► former columns

The operator sends the arguments to the workers and nothing else; one that is computed becomes a column first.

Held by: tests/integration/test_udfs.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from engine.expressions.infer import infer_type
from engine.expressions.schema_bridge import type_from_ipc
from engine.graph.expression import (
    ColumnRef,
    Expression,
    NamedExpression,
    PythonCall,
    children_of,
    has_window,
    with_children,
)
from engine.graph.plan import PythonFunction
from engine.lowering.logical_node import LogicalNode
from engine.lowering.partition_aggregates import partitioned_project
from engine.lowering.projections import columns_as_they_are, free_name, project_node


def with_functions(
    source: LogicalNode, expressions: Sequence[Expression], what: str
) -> tuple[LogicalNode, list[Expression]]:
    """Return a node that has the results of all user's functions in expressions, and the expressions over it."""
    columns = _Columns(source, what)
    found = [columns.read(expression) for expression in expressions]
    return columns.node, found


class _Columns:
    """The columns that functions make above one node."""

    def __init__(self, source: LogicalNode, what: str) -> None:
        self.node = source
        self._what = what
        #: pairs of a call and the column of its results; a list, since expressions have no hash
        self._known: list[tuple[Expression, str]] = []

    def read(self, expression: Expression) -> Expression:
        """Return an expression that reads the results of functions, added to the node."""
        expression = with_children(expression, [self.read(child) for child in children_of(expression)])
        if not isinstance(expression, PythonCall):
            return expression
        return ColumnRef(self._named(expression, self._add))

    def _named(self, expression: Expression, add: Callable[[Any], str]) -> str:
        for known, name in self._known:
            if known == expression:
                return name
        name = add(expression)
        self._known.append((expression, name))
        return name

    def _add(self, call: PythonCall) -> str:
        names = tuple(self._named(argument, self._compute) for argument in call.arguments)
        name = free_name(f"__function{len(self._known)}", self.node.schema)
        fields = (call.kind, call.function, call.function_name, call.file, call.line)
        operator = PythonFunction(*fields, arguments=names, result=name)
        schema = self.node.schema.append(pa.field(name, type_from_ipc(call.type_ipc)))
        self.node = LogicalNode(operator, (self.node,), schema)
        return name

    def _compute(self, argument: Expression) -> str:
        """Return the column of an argument, added where it is not one already."""
        if isinstance(argument, ColumnRef):
            infer_type(argument, self.node.schema)
            return argument.name
        name = free_name(f"__argument{len(self._known)}", self.node.schema)
        named = [*columns_as_they_are(self.node.schema.names), NamedExpression(name, argument)]
        project = partitioned_project if has_window(argument) else project_node
        self.node = project(self.node, named, self._what)
        return name
