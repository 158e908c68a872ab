"""Comparisons between both sides of a join, as comparisons of columns: only those can be a range of a range join.

    col("t") - 5 < col("begin")     a column for t - 5 on its side, which the result does not have

A side of a comparison that reads one input alone becomes a column there, unless it is one of the right type already.
Only for joins without keys: of others most pairs have been dropped before values are compared.

Held by: tests/integration/test_range_joins.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.expressions.common_type import common_type
from engine.expressions.infer import infer_type
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    NamedExpression,
    columns_of,
    conjunction,
    conjuncts,
)
from engine.graph.function_table import is_deterministic
from engine.lowering.join_keys import KeyedSides
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import project_node

_COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal"})


class ComparedColumns:
    """Both sides of a join, to which the columns are added that a condition compares."""

    def __init__(self, sides: KeyedSides) -> None:
        self._sides = (sides.left, sides.right)
        self._added: tuple[list[NamedExpression], list[NamedExpression]] = ([], [])

    def condition(self, expression: Expression) -> Expression:
        """Return a condition that compares columns where it may."""
        parts: list[Expression] = []
        for part in conjuncts(expression):
            match part:
                case Call(function="between", arguments=(value, low, high)):
                    parts += [Call("greater_equal", (value, low)), Call("less_equal", (value, high))]
                case _:
                    parts.append(part)
        found = conjunction([self._compared(part) for part in parts])
        return found if any(self._added) else expression

    def nodes(self) -> tuple[LogicalNode, LogicalNode]:
        """Return left and right with the columns."""
        left, right = (
            project_node(
                side, [*(NamedExpression(name, ColumnRef(name)) for name in side.schema.names), *added], "join"
            )
            if added
            else side
            for side, added in zip(self._sides, self._added, strict=True)
        )
        return left, right

    def _compared(self, part: Expression) -> Expression:
        if not isinstance(part, Call) or part.function not in _COMPARISONS or not is_deterministic(part):
            return part
        places = [self._side_of(argument) for argument in part.arguments]
        if sorted(places) != [0, 1]:
            return part
        types = [infer_type(each, self._sides[side].schema) for each, side in zip(part.arguments, places, strict=True)]
        wanted = common_type(*types)
        if wanted is None:
            return part
        columns = [
            self._column(argument, side, own, wanted)
            for argument, side, own in zip(part.arguments, places, types, strict=True)
        ]
        return Call(part.function, tuple(columns))

    def _side_of(self, expression: Expression) -> int:
        """Return the side that an expression reads, -1: both or neither."""
        names = set(columns_of(expression))
        left = set(self._sides[0].schema.names)
        if not names:
            return -1
        if names <= left:
            return 0
        return 1 if names <= set(self._sides[1].schema.names) - left else -1

    def _column(self, expression: Expression, side: int, own: pa.DataType, wanted: pa.DataType) -> Expression:
        if own == wanted and isinstance(expression, ColumnRef):
            return expression
        value = expression if own == wanted else Cast(expression, type_to_ipc(wanted), str(wanted), widens=True)
        used = {*self._sides[0].schema.names, *self._sides[1].schema.names}
        name = f"__compared{len(self._added[0]) + len(self._added[1])}"
        while name in used:
            name = f"_{name}"
        self._added[side].append(NamedExpression(name, value))
        return ColumnRef(name)
