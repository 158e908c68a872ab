"""Calls: what every group of a DataSet's calls stands on: its node, its environment, and how a next one is made.

    Calls ◄── RelationalCalls ◄── DataSet
          ◄── FunctionalCalls ◄──┤
          ◄── ...                ┘

The calls are in groups, a module each, so that a module has one subject; DataSet puts them together and adds little.
A call makes a node and returns ``self._with(node)``.

Rows are there only after a job has run: what Python would ask of a list, ``for row in data_set`` and ``len(data_set)``,
is an error that says what to write.

Held by: tests/api/test_data_set.py
Held by: tests/api/test_environment.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.named_columns import column_names
from engine.column_expressions.other_names import ON_DATA_SETS, HasOtherNames
from engine.errors import PlanError, SchemaError
from engine.expressions.column_names import check_columns
from engine.graph.expression import FromDataSet
from engine.graph.plan import Limit
from engine.lowering.logical_node import LogicalNode

if TYPE_CHECKING:
    from pathlib import Path

    from engine.api.result_stream import ResultStream
    from engine.client.job_result import JobResult
    from engine.config.loader import Configuration
    from engine.graph.plan import Operator, PythonFunction
    from engine.graph.source_spec import SinkSpec

#: largest number of rows, which leaves room for one more in an int64
_ROWS_MAX = 2**62


def row_count(count: Any, what: str) -> int:
    """Return a number of rows as it is given; PlanError for what is none."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise PlanError(f"{what}({count!r}): a number of rows, 0 or more")
    return min(count, _ROWS_MAX)


class Runner(Protocol):
    """The environment as data sets know it: it knows them, and they know only this."""

    @property
    def configuration(self) -> Configuration:
        """The options of the environment."""
        ...

    @property
    def target(self) -> str:
        """The target of jobs: local, cluster or spark."""
        ...

    def add_sink(self, sink: LogicalNode) -> None:
        """Add a sink to the next job."""
        ...

    def run_to_table(self, node: LogicalNode) -> pa.Table:
        """Run what a node needs and return its rows."""
        ...

    def run_to_sink(self, node: LogicalNode, spec: SinkSpec, what: str) -> JobResult:
        """Run what a node needs, into one output."""
        ...

    def temporary_folder(self) -> Path:
        """Return the folder for temporary data."""
        ...

    def number_of(self, node: LogicalNode) -> int:
        """Return the number under which expressions speak of a node."""
        ...

    def node_of(self, number: int) -> LogicalNode:
        """Return the node of a number; PlanError for one of another environment."""
        ...

    def stream(self, node: LogicalNode) -> ResultStream:
        """Begin a job of what a node needs, and return its rows as they come."""
        ...

    def sample(self, node: LogicalNode) -> pa.Table:
        """Run what a node needs while a program is being written, and return its rows."""
        ...

    def explain_said(self, node: LogicalNode) -> str:
        """Return the plan of a node as the program says it."""
        ...

    def explain_node(self, node: LogicalNode) -> str:
        """Return the explained plan of a node."""
        ...

    def analyze_node(self, node: LogicalNode, *, form: str) -> str:
        """Run what a node needs, and return the plan beside what its operators did."""
        ...


class Calls(HasOtherNames):
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

    def _names(self, values: Any, what: str) -> list[str]:
        """Return names of columns of this data set: one, a list, a selector; SchemaError for what is none."""
        names = column_names(values, what, self.schema)
        check_columns(names, self.schema)
        return names

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

    def __bool__(self) -> NoReturn:
        raise SchemaError(
            "a data set is neither true nor false: compare it with `is None`, or ask data_set.count(), which runs a job"
        )

    def __iter__(self) -> NoReturn:
        raise SchemaError(
            "a data set cannot be iterated over, its rows are made by a job: `for row in data_set.collect()` runs one,"
            " data_set.iter_rows() gives them while it runs; a function for each row is data_set.map(fn)"
        )

    def __len__(self) -> NoReturn:
        raise SchemaError("a data set has no length before a job has run: data_set.count() runs one and returns it")

    def __contains__(self, _value: object) -> NoReturn:
        raise SchemaError(
            "in does not work on a data set: data_set.columns has its names, filter(...).count() its rows"
        )

    def __setitem__(self, name: object, _value: object) -> NoReturn:
        raise SchemaError(
            f"a data set is never changed: data_set = data_set.with_columns({name}=...) is one with another column"
        )
