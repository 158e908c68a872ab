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

from engine.api.expression import Expr
from engine.api.other_names import ON_DATA_SETS, HasOtherNames
from engine.api.python_habits import RowsLater
from engine.errors import PlanError, SchemaError
from engine.graph.expression import FromDataSet
from engine.graph.plan import Limit
from engine.lowering.logical_node import LogicalNode

if TYPE_CHECKING:
    from engine.api.runner import Runner
    from engine.graph.plan import Operator, PythonFunction

#: largest number of rows, which leaves room for one more in an int64
_ROWS_MAX = 2**62


def row_count(count: Any, what: str) -> int:
    """Return a number of rows as it is given; PlanError for what is none."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise PlanError(f"{what}({count!r}): a number of rows, 0 or more")
    return min(count, _ROWS_MAX)


class Calls(RowsLater, HasOtherNames):
    """Base of the groups of calls."""

    _kind = "a data set"
    _other_names = ON_DATA_SETS

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

    def scalar(self) -> Expr:
        """Return the only value of this data set, of one row and one column, as an expression for another one.

        For ``select``, ``with_columns`` and ``filter``. Without a row it is null; two rows end the job with an error.

        >>> prices = rows({"x": [1, 2, 6]})
        >>> prices.filter(col("x") > prices.agg(mean=avg("x")).scalar()).collect()
        [Row(x=6)]
        """
        return Expr(FromDataSet(self._number("scalar")))

    def has_value(self, tested: Expr) -> Expr:
        """Return whether a value is one of the values of this data set's only column; ``is_in`` calls this.

        >>> prices = rows({"x": [1, 2, 6]})
        >>> prices.filter(rows({"y": [2, 7]}).has_value(col("x"))).collect()
        [Row(x=2)]
        """
        return Expr(FromDataSet(self._number("is_in"), tested.expression))

    def _number(self, what: str) -> int:
        if len(self.schema) != 1:
            raise SchemaError(f"{what}: the data set has {len(self.schema)} columns; select() the one that is meant")
        return self._environment.number_of(self._node)

    def _first_results(self, function: PythonFunction, schema: pa.Schema) -> pa.Table:
        """Run a function over the first rows and return its results."""
        from engine.functions.first_calls import FIRST_ROWS

        first = LogicalNode(Limit(FIRST_ROWS), (self._node,), self.schema)
        return self._environment.sample(LogicalNode(function, (first,), schema, parallelism=1))

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
