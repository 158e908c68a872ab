"""Pivot: a column for each value of a column.

Without a list of values a first job finds the different ones, which names and types of the result need.

Held by: tests/integration/test_shapes.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.group_calls import GroupCalls
from engine.api.other_options import with_other_options
from engine.api.projections import column_name, column_names
from engine.errors import PlanError, SchemaError
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.plan import Pivot
from engine.lowering.projections import check_columns
from engine.lowering.said_nodes import lowered
from engine.shown_text import shown_line

if TYPE_CHECKING:
    from engine.api.aggregates import Aggregate

#: largest number of columns that a pivot finds by itself
FOUND_MAX: Final = 1_000
_ENDINGS: Final = ("", "_")


@with_other_options
class PivotCalls(GroupCalls):
    """Base of DataSet with its pivot."""

    def pivot(
        self,
        on: Any,
        values: Any,
        index: Any,
        agg: str | Callable[[Any], Aggregate],
        columns: Sequence[Any] | None = None,
    ) -> Self:
        """Return a row for each ``index`` and a column for each value of ``on``: the aggregate of its ``values``.

        ``agg`` is the name of an aggregate (sum, count, min, max, avg, first, last ...) or a function that gives one,
        such as ``sum_``. Columns are called after the values; with several ``values`` columns, after both:
        ``jan_price``. Where there is no row it is null, a count too. ``columns`` says which values, in which order;
        others are left out. Without it a first job finds them, in their order, at most 1,000; null is "null".

        >>> sales = rows({"shop": [1, 1, 2], "day": ["mon", "tue", "mon"], "sold": [5, 6, 7]})
        >>> sales.pivot("day", "sold", index="shop", agg="sum").sort("shop").to_arrow().to_pylist()
        [{'shop': 1, 'mon': 5, 'tue': 6}, {'shop': 2, 'mon': 7, 'tue': None}]
        """
        key, cells, lines = (
            column_name(on, "pivot on"),
            column_names(values, "pivot"),
            column_names(index, "pivot index"),
        )
        check_columns([key, *cells, *lines], self.schema)
        if not cells or not lines or key in lines:
            raise SchemaError(
                "pivot: name the column whose values become columns, the values, and another column as index"
            )
        function = _aggregate(agg)
        wanted = self.different_values(key) if columns is None else _given(columns, self.schema.field(key).type)
        held = tuple(NamedExpression(one, function(Expr(ColumnRef(one))).expression) for one in cells)
        made = tuple(NamedExpression(value_name(value), _is(key, value).expression) for value in wanted)
        return self._with(lowered(Pivot(key, tuple(lines), held, made), (self._node,)))

    def different_values(self, key: str) -> list[pa.Scalar]:
        """Return the different values of a column, in order, nulls last: of a job that runs now."""
        different = self.select(key).distinct().top(FOUND_MAX + 1, key, descending=False, nulls_last=True)
        values = self._environment.sample(different._node).column(0)
        if len(values) > FOUND_MAX:
            raise PlanError(
                f"pivot: {key!r} has more than {FOUND_MAX:,} different values, a column each; say columns=[...], or "
                "group_by both columns"
            )
        return list(values)


def value_name(value: pa.Scalar) -> str:
    """Return the name of a value's column."""
    if not value.is_valid:
        return "null"
    plain = value.as_py()
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def _is(key: str, value: pa.Scalar) -> Expr:
    from engine.api.expressions import col, lit

    return col(key) == lit(value) if value.is_valid else col(key).is_null()


def _aggregate(agg: str | Callable[[Any], Aggregate]) -> Callable[[Any], Aggregate]:
    """Return the function that gives an aggregate, by name (as it is, or with an underscore where Python's is)."""
    from engine.api import aggregates

    if isinstance(agg, str):
        for ending in _ENDINGS:
            function = getattr(aggregates, agg + ending, None)
            if callable(function) and not isinstance(function, type) and agg.isidentifier() and agg[0] != "_":
                found: Callable[[Any], Aggregate] = function
                return found
        raise SchemaError(f"pivot(agg={agg!r}): no such aggregate; sum, count, min, max, avg, first, last, ...")
    if not callable(agg):
        raise SchemaError(f"pivot(agg={agg!r}): the name of an aggregate, or a function such as sum_")
    return agg


def _given(columns: Sequence[Any], data_type: pa.DataType) -> list[pa.Scalar]:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise SchemaError(f"pivot(columns={columns!r}): a list of values")
    found = []
    for value in columns:
        try:
            found.append(pa.scalar(value, data_type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
            raise SchemaError(f"pivot(columns=...): {shown_line(repr(value))} is no {data_type}") from None
    return found
