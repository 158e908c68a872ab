"""Aggregates that look at the order of values, or at how often each one is there.

Their values lie in partitions or sorted runs, not in states, and spill: a group may be larger than memory. Approximate
ones keep a bounded number of rows for each group, which spill, too.

    median("x"), quantile("x", 0.9)   between the two nearest values
    collect_list("x", order_by="t")   values as a list; string_agg: as one text
    max_by("status", "time")          the status at the greatest time
    approx_count_distinct("x")        within a percent of the number of different values

Held by: tests/integration/test_aggregate_functions.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from engine.column_expressions.aggregates import Aggregate, aggregated, argument_expression
from engine.column_expressions.expression import Expr
from engine.column_expressions.windows import order_keys
from engine.errors import SchemaError
from engine.expressions.schema_bridge import type_to_ipc
from engine.expressions.text import expression_text
from engine.graph.expression import Call, Cast, OrderedBy


def median(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the value in the middle, halfway between two where their number is even: ``quantile(x, 0.5)``.

    >>> groups(x=[1, 2, 10, 3, None]).agg(middle=median("x"))
    [Row(middle=2.5)]
    """
    return quantile(argument, 0.5, filter=filter, distinct=distinct)


def quantile(
    argument: Any,
    q: float | Sequence[float],
    exact: bool = True,
    *,
    filter: Any = None,  # noqa: A002
    distinct: bool = False,
) -> Aggregate:
    """Return the quantile ``q``: a share ``q`` of the values is below; interpolated between the two nearest.

    Of numbers it is float64, of integers and decimals the one nearest to the exact number, of dates a timestamp, of
    times and timestamps their own type. NaN is the largest number. ``exact=False`` is ``approx_quantile``. As DuckDB's
    ``quantile_cont``, Spark's ``percentile`` and pandas; Polars takes the nearest value unless it is told to
    interpolate. A list of shares gives the list of their quantiles.

    >>> groups(x=[1.0, 2.0, 3.0, 4.0, 5.0]).agg(low=quantile("x", 0.1), halves=quantile("x", [0.5, 1]))
    [Row(low=1.4, halves=[3.0, 5.0])]
    """
    if isinstance(q, list | tuple):
        if not q:
            raise SchemaError("quantile: q=[] has no shares")
        each = [quantile(argument, one, exact, filter=filter, distinct=distinct).expression for one in q]
        return Aggregate(Call("array", tuple(each)))
    q = share_of(q, "quantile")
    if not exact:
        if distinct:
            raise SchemaError("quantile: approximate quantiles of different values; use exact=True")
        return approx_quantile(argument, q, filter=filter)
    return aggregated("quantile", argument, filter=filter, distinct=distinct, q=q)


def collect_list(
    argument: Any,
    order_by: Any = None,
    descending: bool | list[bool] = False,
    nulls_last: bool | list[bool] = False,
    *,
    filter: Any = None,  # noqa: A002
    distinct: bool = False,
) -> Aggregate:
    """Return the values of a group as a list, nulls among them; ``order_by`` and flags as in ``sort``.

    Without an order it is that of a sort before, else any. Null where no row counts. As DuckDB's ``list``; Spark's
    leaves nulls out: ``filter=col("x").is_not_null()``. A list lies in memory; one that has no room is an error.

    >>> groups(x=["b", "a", None], t=[2, 1, 3]).agg(values=collect_list("x", order_by="t"))
    [Row(values=['a', 'b', None])]
    """
    order = order_keys(order_by, descending, nulls_last)
    value = argument_expression(argument, "collect_list")
    if distinct:
        order = order or (OrderedBy(value),)
        if any(key.expression != value for key in order):
            raise SchemaError("collect_list(distinct=True): different values are ordered by themselves only")
    return aggregated("list", Expr(value), filter=filter, distinct=distinct, order_by=order)


def collect_set(argument: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the different values of a group that are not null as a list, in their order; null without any.

    >>> groups(x=["b", "a", None, "b"]).agg(values=collect_set("x"))
    [Row(values=['a', 'b'])]
    """
    value = Expr(argument_expression(argument, "collect_set"))
    kept = value.is_not_null()
    if filter is not None:
        kept = kept & Expr(argument_expression(filter, "collect_set: filter="))
    return collect_list(value, filter=kept, distinct=True)


def string_agg(
    argument: Any,
    separator: str = ",",
    order_by: Any = None,
    descending: bool | list[bool] = False,
    nulls_last: bool | list[bool] = False,
    *,
    filter: Any = None,  # noqa: A002
    distinct: bool = False,
) -> Aggregate:
    """Return the values of a group that are not null as one text; what is no text is cast. Null without values.

    >>> groups(x=["b", "a", None], t=[2, 1, 3]).agg(text=string_agg("x", "; ", order_by="t"))
    [Row(text='a; b')]
    """
    if not isinstance(separator, str):
        raise SchemaError(f"string_agg: separator={separator!r} is no text")
    value = argument_expression(argument, "string_agg")
    text = Expr(Cast(value, type_to_ipc(pa.string()), "string"))
    order = order_keys(order_by, descending, nulls_last)
    if distinct and any(key.expression != value for key in order):
        raise SchemaError(f"string_agg(distinct=True): ordered by {expression_text(value)} itself only")
    kept = text.is_not_null()
    if filter is not None:
        kept = kept & Expr(argument_expression(filter, "string_agg: filter="))
    if distinct:
        flags = [order[0].descending] if order else False
        joined = collect_list(text, text if order else None, flags, filter=kept, distinct=True)
    else:
        joined = aggregated("list", text, filter=kept, order_by=order)
    return Aggregate(joined.list.join(separator).expression)


def histogram(argument: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Count each value, as a map in the order of values; nulls do not count.

    >>> groups(x=["b", "a", "b", None]).agg(counts=histogram("x"))
    [Row(counts=[('a', 1), ('b', 2)])]
    """
    return aggregated("histogram", argument, filter=filter)


def mode(argument: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the value that is there most often, the least one of several; nulls do not count.

    >>> groups(x=["b", "a", "b", None]).agg(most=mode("x"))
    [Row(most='b')]
    """
    return aggregated("mode", argument, filter=filter)


def min_by(argument: Any, key: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the value in the row with the least key; rows whose value or key is null do not count.

    Of several rows with that key it is the least value. As DuckDB; Spark's gives a value that is null.

    >>> groups(x=["a", "b", None], k=[2, 1, 0]).agg(first=min_by("x", "k"))
    [Row(first='b')]
    """
    return aggregated("min_by", argument, key, filter=filter)


def max_by(argument: Any, key: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the value in the row with the greatest key; rows whose value or key is null do not count.

    Of several rows with that key it is the least value. As DuckDB; Spark's gives a value that is null.

    >>> groups(x=["a", "b", None], k=[1, 2, 3]).agg(latest=max_by("x", "k"))
    [Row(latest='b')]
    """
    return aggregated("max_by", argument, key, filter=filter)


def approx_count_distinct(argument: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return an estimate of the number of distinct values, without null; int64, standard error 0.8 %.

    It is a LogLog-Beta estimate of 2**14 registers: of each group at most so many rows travel between subtasks, where
    ``count_distinct`` sends each different value.

    >>> groups(x=["a", "b", None, "a"]).agg(kinds=approx_count_distinct("x"))
    [Row(kinds=2)]
    """
    return aggregated("approx_count_distinct", argument, filter=filter)


def approx_quantile(argument: Any, q: float, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return a number that is within 1/8192 (0.012 %) of the value below which a share ``q`` of the values lies.

    Values are rounded to 13 binary digits and counted, so equal numbers of digits travel once. It does not
    interpolate. Only numbers are taken; ``quantile`` is exact and takes times, too.

    >>> groups(x=[1.0, 2.0, 3.0, 1000.0, None]).agg(low=approx_quantile("x", 0.5))
    [Row(low=2.0)]
    """
    return aggregated("approx_quantile", argument, filter=filter, q=share_of(q, "approx_quantile"))


def share_of(q: Any, what: str) -> float:
    """Return the share of a quantile; SchemaError when it is none."""
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        raise SchemaError(f"{what}: q={q!r} is no share of the values, from 0 to 1")
    return float(q)
