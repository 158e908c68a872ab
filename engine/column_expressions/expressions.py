"""The functions from which scripts build expressions: ``col lit when`` and the aggregates.

when(col("a").is_null()).then(col("b")).when(col("a") == "").then("none").otherwise(col("a"))

Held by: tests/column_expressions/test_expression.py
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from engine.column_expressions.aggregates import (
    all_,
    any_,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    corr,
    count,
    count_distinct,
    count_if,
    covar,
    covar_pop,
    first,
    kurtosis,
    last,
    max_,
    min_,
    product,
    skewness,
    stddev,
    stddev_pop,
    sum_,
    variance,
    variance_pop,
)
from engine.column_expressions.data_types import to_data_type
from engine.column_expressions.expression import Expr, to_expression
from engine.column_expressions.intervals import interval
from engine.column_expressions.python_habits import warn_plain_truth
from engine.column_expressions.row_functions import (
    array,
    coalesce,
    current_date,
    element,
    expr,
    format_,
    greatest,
    hash64,
    least,
    make_date,
    make_time,
    make_timestamp,
    map_from,
    map_from_entries,
    now,
    rand,
    row_place,
    sequence,
    struct,
)
from engine.column_expressions.value_aggregates import (
    approx_count_distinct,
    approx_quantile,
    collect_list,
    collect_set,
    histogram,
    max_by,
    median,
    min_by,
    mode,
    quantile,
    string_agg,
)
from engine.errors import SchemaError
from engine.expressions.literals import make_literal
from engine.graph.expression import Case, ColumnRef, Expression

__all__ = [
    "Expr",
    "all_",
    "any_",
    "approx_count_distinct",
    "approx_quantile",
    "array",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "coalesce",
    "col",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_distinct",
    "count_if",
    "covar",
    "covar_pop",
    "current_date",
    "element",
    "expr",
    "first",
    "format_",
    "greatest",
    "hash64",
    "histogram",
    "interval",
    "kurtosis",
    "last",
    "least",
    "lit",
    "make_date",
    "make_time",
    "make_timestamp",
    "map_from",
    "map_from_entries",
    "max_",
    "max_by",
    "median",
    "min_",
    "min_by",
    "mode",
    "now",
    "product",
    "quantile",
    "rand",
    "row_place",
    "sequence",
    "skewness",
    "stddev",
    "stddev_pop",
    "string_agg",
    "struct",
    "sum_",
    "variance",
    "variance_pop",
    "when",
]

Branches = tuple[tuple[Expression, Expression], ...]


def col(name: str, *more: str) -> Expr:
    """Return the column of that name; of several names, or of a pattern ``^...$``, each of these columns.

    A pattern is a name where a column is called so. ``drey.selectors`` chooses columns by type and place, too.
    """
    for one in (name, *more):
        if not isinstance(one, str) or not one:
            several = f"; write col({', '.join(map(repr, one))})" if isinstance(one, list | tuple) and one else ""
            raise SchemaError(f"col({one!r}): a column name is a non-empty string{several}")
    if more:
        from engine.column_expressions.selectors import by_name

        return by_name(name, *more)
    return Expr(ColumnRef(name))


def lit(value: Any, data_type: pa.DataType | None = None) -> Expr:
    """Return a constant; an int is int64, None needs a type unless something around it has one."""
    return Expr(make_literal(value, None if data_type is None else to_data_type(data_type)))


class When:
    """A condition that waits for its value."""

    __slots__ = ("_branches", "_condition")

    def __init__(self, branches: Branches, condition: Expr) -> None:
        if not isinstance(condition, Expr) and not isinstance(condition, bool):
            raise SchemaError(f"when({condition!r}): a condition is an expression such as col('a') > 1")
        warn_plain_truth(condition, "when")
        self._branches = branches
        self._condition = to_expression(condition)

    def then(self, value: Any) -> Then:
        """Return the expression with the value (an expression or a constant) for rows where the condition is true."""
        return Then((*self._branches, (self._condition, to_expression(value))))


class Then(Expr):
    """A chain of ``when`` and ``then``: null where no condition is true, unless ``otherwise`` follows."""

    __slots__ = ("_branches",)

    def __init__(self, branches: Branches) -> None:
        super().__init__(Case(branches))
        self._branches = branches

    def when(self, condition: Expr) -> When:
        """Add a condition for the rows that are left."""
        return When(self._branches, condition)

    def otherwise(self, value: Any) -> Expr:
        """Return the expression with the value for the rows that are left."""
        return Expr(Case(self._branches, to_expression(value)))


def when(condition: Expr) -> When:
    """Begin a choice: ``when(condition).then(value).otherwise(value)``; a null condition counts as false."""
    return When((), condition)
