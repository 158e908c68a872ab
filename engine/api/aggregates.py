"""Aggregates: what ``group_by(...).agg(name=sum_(col("x")))`` takes.

Nulls do not count, except in ``count()``, ``first`` and ``last``.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from typing import Any

from engine.api.expression import Expr, to_expression
from engine.errors import SchemaError
from engine.expressions.text import aggregate_text
from engine.graph.expression import AggregateCall, ColumnRef, Expression, Over


class Aggregate:
    """An aggregate function of an expression; ``name`` is the column's, "" when agg gives it."""

    __slots__ = ("aggregate_function", "argument", "name")

    def __init__(self, function: str, argument: Expression | None, name: str = "") -> None:
        self.aggregate_function = function
        self.argument = argument
        self.name = name

    def alias(self, name: str) -> Aggregate:
        """Return the same aggregate under a column name."""
        return Aggregate(self.aggregate_function, self.argument, name)

    def over(
        self,
        partition_by: Any = None,
        order_by: Any = None,
        descending: bool | list[bool] = False,
        nulls_last: bool | list[bool] = False,
        rows: tuple[int | None, int | None] | None = None,
        range: tuple[Any, Any] | None = None,  # noqa: A002
    ) -> Expr:
        """Return the aggregate over rows around each row, as an expression: see ``row_number().over``.

        Without a frame it is over the whole partition, or with an order over all rows up to this one and its equals.
        """
        from engine.api.windows import over  # noqa: PLC0415 - start-up time

        base = Over(self.aggregate_function, self.argument)
        found = over(base, partition_by, order_by, descending, nulls_last, rows, range)
        return found.alias(self.name) if self.name else found

    def to_call(self, name: str) -> AggregateCall:
        """Return the plan's form."""
        return AggregateCall(self.aggregate_function, self.argument, name)

    def __repr__(self) -> str:
        return f"<Aggregate {aggregate_text(self.to_call(self.name))}>"

    def __bool__(self) -> bool:
        raise SchemaError(f"{self!r} has no value here; it stands in group_by(...).agg(name=...)")


def _aggregate(function: str, argument: Any) -> Aggregate:
    if isinstance(argument, Aggregate):
        raise SchemaError(f"{function}({argument!r}): an aggregate of an aggregate; call agg twice")
    return Aggregate(function, ColumnRef(argument) if isinstance(argument, str) else to_expression(argument))


_ROWS = object()


def count(argument: Any = _ROWS) -> Aggregate:
    """Return the number of rows, or of values of an expression (or column name) that are not null; int64."""
    return Aggregate("count_all", None) if argument is _ROWS else _aggregate("count", argument)


def count_distinct(argument: Expr | str) -> Aggregate:
    """Return the number of different values that are not null; int64. NaN is one value, -0.0 is 0.0."""
    return _aggregate("count_distinct", argument)


def sum_(argument: Expr | str) -> Aggregate:
    """Return the sum: int64 of integers (overflow is an error), float64 of floats, decimals keep their scale."""
    return _aggregate("sum", argument)


def min_(argument: Expr | str) -> Aggregate:
    """Return the least value."""
    return _aggregate("min", argument)


def max_(argument: Expr | str) -> Aggregate:
    """Return the greatest value; NaN is the largest number."""
    return _aggregate("max", argument)


def avg(argument: Expr | str) -> Aggregate:
    """Return the mean as float64, also for decimals: the one nearest to the exact mean, rounded once."""
    return _aggregate("avg", argument)


def first(argument: Expr | str) -> Aggregate:
    """Return the value of the first row, null if that is null: after a sort in its order, else of any row.

    One subtask takes its rows as they come, so equal inputs give equal results. With several subtasks and rows without
    an order, it is the first row of the subtask whose rows arrive first.
    """
    return _aggregate("first", argument)


def last(argument: Expr | str) -> Aggregate:
    """Return the value of the last row, null if that is null; for the order, see ``first``."""
    return _aggregate("last", argument)


def stddev(argument: Expr | str) -> Aggregate:
    """Return the standard deviation of a sample (n - 1): float64, null for fewer than two values."""
    return _aggregate("stddev", argument)


def variance(argument: Expr | str) -> Aggregate:
    """Return the variance of a sample (n - 1): float64, null for fewer than two values."""
    return _aggregate("variance", argument)
