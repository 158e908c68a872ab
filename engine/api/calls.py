"""Calls: what every group of a DataSet's calls stands on: its node, its environment, and how a next one is made.

    Calls ◄── RelationalCalls ◄── DataSet
          ◄── FunctionalCalls ◄──┤
          ◄── ...                ┘

The calls are in groups, a module each, so that a module has one subject; DataSet puts them together and adds little.
A call makes a node and returns ``self._with(node)``.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from engine.api.logical_node import LogicalNode
from engine.api.python_habits import RowsLater
from engine.errors import PlanError, SchemaError

if TYPE_CHECKING:
    from engine.api.runner import Runner
    from engine.graph.plan import Operator

#: more rows than there are anywhere, and an int64 with one to spare
_ROWS_MAX = 2**62


def row_count(count: Any, what: str) -> int:
    """Return a number of rows as it is given; PlanError for what is none."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise PlanError(f"{what}({count!r}): a number of rows, 0 or more")
    return min(count, _ROWS_MAX)


class Calls(RowsLater):
    """Base of the groups of calls."""

    def __init__(self, environment: Runner, node: LogicalNode) -> None:
        self._environment = environment
        self._node = node

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, in order."""
        return self._node.schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.schema.names)

    def _with(self, node: LogicalNode) -> Self:
        """Return the data set of a node."""
        return type(self)(self._environment, node)

    def _same_rows(self, operator: Operator) -> Self:
        """Return the data set of an operator over this one, of the same columns."""
        return self._with(LogicalNode(operator, (self._node,), self.schema))

    def _partner(self, other: Any, what: str) -> LogicalNode:
        """Return the node of another data set of the same environment."""
        if not isinstance(other, Calls):
            raise SchemaError(f"{what}: expected a DataSet, got {type(other).__name__}")
        if other._environment is not self._environment:
            raise PlanError(f"{what}: the data sets belong to two environments")
        return other._node
