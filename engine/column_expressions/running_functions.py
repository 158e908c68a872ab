"""Functions over windows that are made of others, and those that follow from the row before.

    cum_sum cum_prod cum_min cum_max cum_count          of all rows up to this one; reverse=True: from this one on
    diff pct_change                                     against the value so many rows before
    forward_fill backward_fill interpolate              in the place of nulls
    rolling_sum rolling_mean rolling_median ...         of so many rows
    ewm_mean                                            a mean in which older values count less
    cut qcut                                            between which breaks, or quantiles, a value lies
    is_unique is_duplicated is_first_distinct ...       whether other rows have the same values

    cum_sum("x").over("k", order_by="day")              all but the last two lines need an order

Rows have no order of their own, so there is none without ``order_by``.

Held by: tests/integration/test_running_functions.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from engine.column_expressions.aggregates import Aggregate, avg, count, max_, min_, stddev, sum_, variance
from engine.column_expressions.expression import Expr, to_expression
from engine.column_expressions.expressions import lit, row_place, when
from engine.column_expressions.value_aggregates import median, quantile, share_of
from engine.column_expressions.windows import (
    Rows,
    RunningFunction,
    WindowFunction,
    first_value,
    lag,
    last_value,
    lead,
    row_number,
)
from engine.errors import SchemaError
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Cast, ColumnRef, Over

#: flags of ``ewm_mean``: adjusted weights, and nulls that let nothing fade
_ADJUSTED, _PASSES_NULLS = 1, 2


def _value(x: Expr | str) -> Expr:
    return Expr(ColumnRef(x)) if isinstance(x, str) else Expr(to_expression(x))


def _whole(value: Any, what: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**62:
        raise SchemaError(f"{what}: {value!r} is no whole number from {least} on")
    return value


def _float(x: Expr) -> Expr:
    return Expr(Cast(x.expression, type_to_ipc(pa.float64()), "double", widens=True))


# ---- of all rows so far


def _cumulated(text: str, x: Expr | str, function: Callable[[Expr], Aggregate], reverse: bool) -> RunningFunction:
    value, rows = _value(x), (0, None) if reverse else (None, 0)
    return RunningFunction(text, lambda window: when(value.is_not_null()).then(window.of(function(value), rows=rows)))


def cum_sum(x: Expr | str, reverse: bool = False) -> WindowFunction:
    """Return the sum of the values up to this row, null where it has none; ``reverse``: from this row on.

    >>> data = rows({"day": [1, 2, 3], "x": [5, None, 2]})
    >>> data.select("day", total=cum_sum("x").over(order_by="day")).sort("day").collect()
    [Row(day=1, total=5), Row(day=2, total=None), Row(day=3, total=7)]
    """
    return _cumulated("cum_sum", x, sum_, reverse)


def cum_min(x: Expr | str, reverse: bool = False) -> WindowFunction:
    """Return the least value up to this row, null where it has none; ``reverse``: from this row on."""
    return _cumulated("cum_min", x, min_, reverse)


def cum_max(x: Expr | str, reverse: bool = False) -> WindowFunction:
    """Return the greatest value up to this row, null where it has none; ``reverse``: from this row on."""
    return _cumulated("cum_max", x, max_, reverse)


def cum_count(x: Expr | str, reverse: bool = False) -> WindowFunction:
    """Return the number of rows up to this one that have a value; ``reverse``: from this row on."""
    value, rows = _value(x), (0, None) if reverse else (None, 0)
    return RunningFunction("cum_count", lambda window: window.of(count(value), rows=rows))


def cum_prod(x: Expr | str) -> WindowFunction:
    """Return the product of the values up to this row as float64, null where it has none.

    Polars multiplies integers in 64 bits, and wraps around beyond.

    >>> data = rows({"day": [1, 2, 3], "x": [2, 3, 4]})
    >>> data.select("day", p=cum_prod("x").over(order_by="day")).sort("day").collect()
    [Row(day=1, p=2.0), Row(day=2, p=6.0), Row(day=3, p=24.0)]
    """
    value = _float(_value(x)).expression
    return WindowFunction(Over("running_product", value, factor=-1.0))


def ewm_mean(
    x: Expr | str,
    *,
    com: float | None = None,
    span: float | None = None,
    half_life: float | None = None,
    alpha: float | None = None,
    adjust: bool = True,
    ignore_nulls: bool = False,
) -> WindowFunction:
    """Return the exponentially weighted mean of the values up to this row as float64, null where it has none.

    One of ``alpha`` (the share of a new value), ``com`` (alpha = 1 / (1 + com)), ``span`` (2 / (span + 1)) and
    ``half_life`` (rows after which a weight is half) says how fast older values fade. ``adjust=False`` is the recursion
    ``(1 - alpha) * before + alpha * x``. A null lets the values before it fade, unless ``ignore_nulls``. As Polars and
    pandas, which repeats the mean in rows without a value.

    >>> data = rows({"day": [1, 2, 3], "x": [1.0, 2.0, 4.0]})
    >>> data.select("day", m=ewm_mean("x", alpha=0.5, adjust=False).over(order_by="day")).sort("day").collect()
    [Row(day=1, m=1.0), Row(day=2, m=1.5), Row(day=3, m=2.75)]
    """
    share = _share({"com": com, "span": span, "half_life": half_life, "alpha": alpha})
    flags = (_ADJUSTED if adjust else 0) | (_PASSES_NULLS if ignore_nulls else 0)
    return WindowFunction(Over("ewm_mean", _float(_value(x)).expression, count=flags, factor=1.0 - share))


#: name of a parameter -> (least value, whether that counts too, share of a new value)
_SHARES: Final[dict[str, tuple[float, bool, Callable[[float], float]]]] = {
    "com": (0.0, True, lambda com: 1 / (1 + com)),
    "span": (1.0, True, lambda span: 2 / (span + 1)),
    "half_life": (0.0, False, lambda life: 1 - math.exp(-math.log(2) / life)),
    "alpha": (0.0, False, lambda alpha: alpha),
}


def _share(given: dict[str, float | None]) -> float:
    found = {name: value for name, value in given.items() if value is not None}
    if len(found) != 1:
        raise SchemaError(f"ewm_mean: give one of {', '.join(_SHARES)}; {' and '.join(found) or 'none'} given")
    ((name, value),) = found.items()
    least, is_least_in, share = _SHARES[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < least or (value == least and not is_least_in) or (name == "alpha" and value > 1):
        raise SchemaError(f"ewm_mean({name}={value!r}): {'over 0, up to 1' if name == 'alpha' else f'from {least} on'}")
    return share(value)


# ---- against other rows


def diff(x: Expr | str, n: int = 1) -> WindowFunction:
    """Return the value less that of ``n`` rows before; with a negative ``n`` that of so many rows behind.

    >>> data = rows({"day": [1, 2, 3], "x": [5, 7, 4]})
    >>> data.select("day", d=diff("x").over(order_by="day")).sort("day").collect()
    [Row(day=1, d=None), Row(day=2, d=2), Row(day=3, d=-3)]
    """
    value, other = _value(x), _shifted(x, n, "diff")
    return RunningFunction("diff", lambda window: value - window.of(other))


def pct_change(x: Expr | str, n: int = 1) -> WindowFunction:
    """Return the share by which the value differs from that of ``n`` rows before: 0.1 is ten percent more.

    Where a row or the one before has no value the result is null.

    >>> data = rows({"day": [1, 2], "x": [4, 5]})
    >>> data.select("day", change=pct_change("x").over(order_by="day")).sort("day").collect()
    [Row(day=1, change=None), Row(day=2, change=0.25)]
    """
    value, other = _value(x), _shifted(x, n, "pct_change")
    return RunningFunction("pct_change", lambda window: _float(value) / _float(window.of(other)) - 1.0)


def _shifted(x: Expr | str, n: int, what: str) -> WindowFunction:
    if isinstance(n, bool) or not isinstance(n, int):
        raise SchemaError(f"{what}: n={n!r} is no whole number")
    return lag(x, n) if n >= 0 else lead(x, -n)


def forward_fill(x: Expr | str, limit: int | None = None) -> WindowFunction:
    """Return the value, and where it is null the last one before it, at most ``limit`` rows away.

    Numbers, bools, times, texts and bytes are filled.

    >>> data = rows({"day": [1, 2, 3], "x": [5, None, None]})
    >>> data.select("day", x=forward_fill("x", limit=1).over(order_by="day")).sort("day").collect()
    [Row(day=1, x=5), Row(day=2, x=5), Row(day=3, x=None)]
    """
    most = None if limit is None else -_whole(limit, "forward_fill limit", 0)
    return RunningFunction("forward_fill", lambda window: window.of(last_value(x, ignore_nulls=True), rows=(most, 0)))


def backward_fill(x: Expr | str, limit: int | None = None) -> WindowFunction:
    """Return the value, and where it is null the next one behind it, at most ``limit`` rows away."""
    most = None if limit is None else _whole(limit, "backward_fill limit", 0)
    return RunningFunction("backward_fill", lambda window: window.of(first_value(x, ignore_nulls=True), rows=(0, most)))


def interpolate(x: Expr | str) -> WindowFunction:
    """Return the value as float64; where it is null, what lies on the line between the values before and behind it.

    Rows count as equally far from each other. Before the first value and behind the last one it is null.

    >>> data = rows({"day": [1, 2, 3], "x": [5, None, 8]})
    >>> data.select("day", x=interpolate("x").over(order_by="day")).sort("day").collect()
    [Row(day=1, x=5.0), Row(day=2, x=6.5), Row(day=3, x=8.0)]
    """
    return WindowFunction(Over("interpolate", _value(x).expression))


# ---- of rows around


def _rolling(
    text: str,
    x: Expr | str,
    window_size: int,
    min_samples: int | None,
    center: bool,
    function: Callable[[Expr], Aggregate],
) -> WindowFunction:
    value, size = _value(x), _whole(window_size, f"{text} window_size", 1)
    least = size if min_samples is None else _whole(min_samples, f"{text} min_samples", 1)
    if least > size:
        raise SchemaError(f"{text}: min_samples={least} of a window of {size} rows")
    behind = (size - 1) // 2 if center else 0
    rows = (behind - size + 1, behind)

    def made(window: Rows) -> Expr:
        enough = window.of(count(value), rows=rows) >= least
        return when(enough).then(window.of(function(value), rows=rows))

    return RunningFunction(text, made)


def rolling_sum(
    x: Expr | str, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the sum of this row and those before it, ``window_size`` in all; null where fewer have a value.

    ``min_samples``: how many must have one, all by default. ``center``: this row is in the middle of the window. A span
    of time is a frame, ``sum_("x").over(order_by="at", range=("-7 days", "0 days"))``, or ``rolling`` of the data set.

    >>> data = rows({"day": [1, 2, 3], "x": [5, 7, 4]})
    >>> data.select("day", s=rolling_sum("x", 2).over(order_by="day")).sort("day").collect()
    [Row(day=1, s=None), Row(day=2, s=12), Row(day=3, s=11)]
    """
    return _rolling("rolling_sum", x, window_size, min_samples, center, sum_)


def rolling_mean(
    x: Expr | str, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the mean of this row and those before it, ``window_size`` in all; see ``rolling_sum``."""
    return _rolling("rolling_mean", x, window_size, min_samples, center, avg)


def rolling_min(
    x: Expr | str, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the least value of this row and those before it, ``window_size`` in all; see ``rolling_sum``."""
    return _rolling("rolling_min", x, window_size, min_samples, center, min_)


def rolling_max(
    x: Expr | str, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the greatest value of this row and those before it, ``window_size`` in all; see ``rolling_sum``."""
    return _rolling("rolling_max", x, window_size, min_samples, center, max_)


def rolling_std(
    x: Expr | str, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the standard deviation (n - 1) of this row and those before it; see ``rolling_sum``."""
    return _rolling("rolling_std", x, window_size, min_samples, center, stddev)


def rolling_var(
    x: Expr | str, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the variance (n - 1) of this row and those before it; see ``rolling_sum``."""
    return _rolling("rolling_var", x, window_size, min_samples, center, variance)


def rolling_median(
    x: Expr | str, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the median of this row and those before it, ``window_size`` in all; see ``rolling_sum``."""
    return _rolling("rolling_median", x, window_size, min_samples, center, median)


def rolling_quantile(
    x: Expr | str, q: float, window_size: int, min_samples: int | None = None, center: bool = False
) -> WindowFunction:
    """Return the quantile ``q`` of this row and those before it; see ``quantile`` and ``rolling_sum``.

    >>> data = rows({"day": [1, 2, 3], "x": [5, 7, 4]})
    >>> data.select("day", m=rolling_quantile("x", 0.5, 2).over(order_by="day")).sort("day").collect()
    [Row(day=1, m=None), Row(day=2, m=6.0), Row(day=3, m=5.5)]
    """
    share = share_of(q, "rolling_quantile")
    return _rolling("rolling_quantile", x, window_size, min_samples, center, lambda value: quantile(value, share))


# ---- which part of the values


def cut(x: Expr | str, breaks: Sequence[float], labels: Sequence[str] | None = None, left_closed: bool = False) -> Expr:
    """Return the breaks between which a number lies, as a text: "(1, 2]", with ``left_closed`` "[1, 2)"; or its label.

    There is one label more than breaks. Null stays null; NaN is the largest number.

    >>> data = rows({"x": [1, 5, None]})
    >>> data.select(part=cut("x", [1, 3])).to_arrow()["part"].to_pylist()
    ['(-inf, 1]', '(3, inf]', None]
    """
    value, limits = _value(x), list(breaks)
    if not limits or any(isinstance(one, bool) or not isinstance(one, int | float) for one in limits):
        raise SchemaError(f"cut: breaks={breaks!r}: numbers, one at least")
    if not all(one < other for one, other in pairwise(limits)) or limits[0] != limits[0]:
        raise SchemaError(f"cut: breaks={breaks!r} must rise")
    texts = [f"{one:g}" if isinstance(one, float) else str(one) for one in limits]
    return _parts(value, [lit(one) for one in limits], _labels(texts, labels, left_closed, "cut"), left_closed)


def qcut(
    x: Expr | str, quantiles: int | Sequence[float], labels: Sequence[str] | None = None, left_closed: bool = False
) -> WindowFunction:
    """Return the quantiles of its partition between which a number lies, as a text or its label.

    ``quantiles``: shares of the values such as ``[0.25, 0.5]``, or into how many equal parts. Without labels a part is
    called after the shares: "(0.25, 0.5]". Quantiles are interpolated, as in ``quantile``.

    >>> data = rows({"x": [1, 2, 3, 4]})
    >>> data.select("x", half=qcut("x", 2, ["low", "high"]).over()).sort("x").to_arrow()["half"].to_pylist()
    ['low', 'low', 'high', 'high']
    """
    value = _value(x)
    if isinstance(quantiles, int):
        parts = _whole(quantiles, "qcut quantiles", 2)
        quantiles = [number / parts for number in range(1, parts)]
    shares = [share_of(one, "qcut") for one in quantiles]
    if not shares or not all(one < other for one, other in pairwise(shares)):
        raise SchemaError(f"qcut: quantiles={quantiles!r}: shares of the values, which rise")
    names = _labels([f"{share:g}" for share in shares], labels, left_closed, "qcut")

    def made(window: Rows) -> Expr:
        limits = [window.whole(quantile(value, share)) for share in shares]
        return _parts(value, limits, names, left_closed)

    return RunningFunction("qcut", made, is_ordered=False)


def _labels(limits: Sequence[str], labels: Sequence[str] | None, left_closed: bool, what: str) -> list[str]:
    if labels is None:
        ends = ["-inf", *limits, "inf"]
        return [f"[{low}, {high})" if left_closed else f"({low}, {high}]" for low, high in pairwise(ends)]
    if isinstance(labels, str) or len(labels) != len(limits) + 1 or not all(isinstance(one, str) for one in labels):
        raise SchemaError(f"{what}: labels={labels!r}: {len(limits) + 1} texts, one more than breaks")
    return list(labels)


def _parts(value: Expr, limits: Sequence[Expr], labels: Sequence[str], left_closed: bool) -> Expr:
    chain: Any = when(value.is_null()).then(lit(None, pa.string()))
    for limit, label in zip(limits, labels, strict=False):
        chain = chain.when(value < limit if left_closed else value <= limit).then(label)
    found: Expr = chain.otherwise(labels[-1])
    return found


# ---- the same values in other rows


def is_unique(*columns: Any) -> Expr:
    """Whether no other row has the same values in some columns; null equals null.

    >>> rows({"x": [1, 1, 2]}).filter(is_unique("x")).collect()
    [Row(x=2)]
    """
    return count().over(_columns(columns, "is_unique")) == 1


def is_duplicated(*columns: Any) -> Expr:
    """Whether another row has the same values in some columns; null equals null.

    >>> rows({"x": [1, 1, 2]}).filter(is_duplicated("x")).collect()
    [Row(x=1), Row(x=1)]
    """
    return count().over(_columns(columns, "is_duplicated")) > 1


def is_first_distinct(*columns: Any) -> Expr:
    """Whether a row is the first one with its values in some columns, in the order of the data set.

    >>> rows({"x": [1, 1, 2]}).filter(is_first_distinct("x")).count()
    2
    """
    return row_number().over(_columns(columns, "is_first_distinct"), order_by=row_place()) == 1


def is_last_distinct(*columns: Any) -> Expr:
    """Whether a row is the last one with its values in some columns, in the order of the data set."""
    return row_number().over(_columns(columns, "is_last_distinct"), order_by=row_place(), descending=True) == 1


def _columns(columns: Sequence[Any], what: str) -> list[Any]:
    from engine.column_expressions.named_columns import flattened

    found = flattened(columns)
    if not found:
        raise SchemaError(f"{what}(): name at least one column, or cs.all()")
    return found
