"""Aggregates that look at the order of values, or at how often each one is there.

Their values lie in sorted runs, not in states, and spill: a group may be larger than memory. Approximate ones keep a
bounded number of rows for each group, which spill, too.

    max_by("status", "time")          the status at the greatest time
    approx_count_distinct("x")        within a percent of the number of different values

Held by: tests/integration/test_aggregate_functions.py
"""

from __future__ import annotations

from typing import Any

from engine.api.aggregates import Aggregate, aggregated
from engine.errors import SchemaError


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
    """Return about how many different values there are that are not null; int64, standard error 0.8 %.

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
        raise SchemaError(f"{what}: q={q!r} is a share of the values, from 0 to 1")
    return float(q)
