"""Window functions: ``row_number().over("k", order_by="day")``, ``sum_("x").over("k", order_by="day", rows=(-6, 0))``.

    row_number rank dense_rank percent_rank cume_dist ntile(n)     a row's place in its partition
    lag(x, n, default) lead(x, n, default)                         the value so many rows before, behind
    first_value(x) last_value(x) nth_value(x, n)                   a value of the frame
    cum_sum(x) forward_fill(x) diff(x) ewm_mean(x) ...             those of running_functions, made of these
    sum_ avg count min_ max_ stddev variance first last            aggregates of the frame
    count_distinct min_by max_by covar covar_pop corr              those that ``window_rewrites`` makes of them
    median quantile collect_list string_agg ...                    those of all values of the frame: framed_aggregates
    mode histogram skewness ...                                    others, of whole partitions: partition_aggregates

``over`` says which rows belong together, in which order they are, and which of them are seen; it gives an expression,
for select, with_columns and filter, on its own or as a part of others. Without a frame it is SQL's: with an order all
rows up to this one and those equal to it in the order, else the whole partition.

Held by: tests/column_expressions/test_windows.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import msgspec

from engine.column_expressions.expression import Expr, to_expression
from engine.column_expressions.framed_aggregates import framed
from engine.column_expressions.python_habits import with_options_of_windows
from engine.errors import SchemaError
from engine.expressions.text import expression_text
from engine.graph.expression import OF_GROUPS, Aggregated, ColumnRef, Expression, OrderedBy, Over
from engine.graph.window import (
    CURRENT_ROW,
    GROUP,
    RANKING_FUNCTIONS,
    RUNNING_FUNCTIONS,
    SHIFT_FUNCTIONS,
    TIES,
    WindowFrame,
)

if TYPE_CHECKING:
    from engine.choices import FrameExclude, RankMethod

#: functions that need an order
_EXCLUDED: Final = (CURRENT_ROW, GROUP, TIES)
_ORDERED: Final = (
    (RANKING_FUNCTIONS - {"row_number"}) | SHIFT_FUNCTIONS | RUNNING_FUNCTIONS | {"nth_value", "interpolate"}
)
_RANKS: Final = {"min": "rank", "dense": "dense_rank", "ordinal": "row_number"}
#: functions that look at the whole partition, or at the row before
_UNFRAMED: Final = RANKING_FUNCTIONS | SHIFT_FUNCTIONS | RUNNING_FUNCTIONS | {"interpolate"}


def _keys(values: Any, what: str) -> list[Expression]:
    """Return keys given as one or as a list: names or expressions."""
    if values is None:
        return []
    keys: list[Expression] = []
    for value in values if isinstance(values, list | tuple) else [values]:
        if isinstance(value, str):
            keys.append(ColumnRef(value))
        elif isinstance(value, Expr):
            keys.append(value.expression)
        else:
            raise SchemaError(f"{what}={value!r}: a column name, an expression, or a list of them")
    return keys


def flags_of_keys(value: Any, what: str, keys: Sequence[Expression]) -> list[bool]:
    """Return a flag for each key, given as one of all or as a list; SchemaError for what is none."""
    flags = list(value) if isinstance(value, list | tuple) else [value] * len(keys)
    if len(flags) != len(keys) or not all(isinstance(flag, bool) for flag in flags):
        hint = "; several keys are given as a list" if isinstance(value, str) else ""
        names = ", ".join(map(expression_text, keys))
        raise SchemaError(f"{what}={value!r}: a bool, or one for each of {names}{hint}")
    return flags


def order_keys(order_by: Any, descending: Any, nulls_last: Any) -> tuple[OrderedBy, ...]:
    """Return an order within groups of rows, given by names or expressions and flags as those of ``sort``."""
    order = _keys(order_by, "order_by")
    flags = flags_of_keys(descending, "descending", order), flags_of_keys(nulls_last, "nulls_last", order)
    return tuple(OrderedBy(*key) for key in zip(order, *flags, strict=True))


def over_keys(order: Sequence[OrderedBy]) -> tuple[list[Expr], list[bool], list[bool]]:
    """Return an order as ``over`` takes it: keys, which of them descend, and which have nulls last."""
    return (
        [Expr(key.expression) for key in order],
        [key.descending for key in order],
        [key.nulls_last for key in order],
    )


def _row_offset(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**62):
        raise SchemaError(f"over: {value!r} is no number of rows; an int, or None for unbounded")
    return value


def plain_distance(value: Any, what: str = "over: range") -> int | float | str | None:
    """Return a distance as it is carried until the type of the order key is known."""
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)} us"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bool) or (value is not None and not isinstance(value, int | float | str)):
        raise SchemaError(f"{what}: {value!r} is no distance; a number, a time such as '7 days', or None")
    return value


class Bounds(NamedTuple):
    """A frame as ``over`` takes it."""

    rows: Any = None
    range: Any = None
    groups: Any = None
    exclude: FrameExclude | None = None


def _frame(given: Bounds) -> WindowFrame | None:
    kinds = [kind for kind in ("rows", "range", "groups") if getattr(given, kind) is not None]
    if given.exclude not in (None, *_EXCLUDED) or (given.exclude is not None and not kinds):
        raise SchemaError(
            f"over: exclude={given.exclude!r}: one of {', '.join(_EXCLUDED)}, beside rows=, range=, groups="
        )
    if not kinds:
        return None
    if len(kinds) > 1:
        raise SchemaError("over: a frame is in rows=, in range= or in groups=, not in several")
    kind, bounds = kinds[0], getattr(given, kinds[0])
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise SchemaError(f"over: {kind}={bounds!r}: a pair (first, last), such as (-2, 0); None is unbounded")
    check: Callable[[Any], int | float | str | None] = plain_distance if kind == "range" else _row_offset
    start, end = (check(bound) for bound in bounds)
    if isinstance(start, int | float) and isinstance(end, int | float) and not start <= end:
        raise SchemaError(f"over: {kind}={bounds!r} begins behind its end")
    return WindowFrame(kind, start, end, given.exclude or "")


def over(
    base: Over,
    partition_by: Any,
    order_by: Any,
    descending: bool | list[bool],
    nulls_last: bool | list[bool],
    bounds: Bounds,
) -> Expr:
    """Return a function over a window as an expression; ``base`` says which function."""
    keys = order_keys(order_by, descending, nulls_last)
    frame = _frame(bounds)
    function = base.function
    if frame is not None and function in _UNFRAMED:
        raise SchemaError(f"{function} looks at the whole partition: it takes no rows=, range= or groups=")
    if function in _ORDERED and not keys:
        raise SchemaError(f"{function} needs an order: over(..., order_by=...)")
    if frame is not None and (frame.start, frame.end) != (None, None) and not keys:
        raise SchemaError(f"over: {frame.kind}= counts in an order: over(..., order_by=...)")
    partition: list[Expression] = []
    for key in _keys(partition_by, "partition_by"):
        partition += [key] if key not in partition else []
    window = msgspec.structs.replace(base, partition_by=tuple(partition), order_by=keys, frame=frame)
    if function != OF_GROUPS:
        return Expr(window)
    if not keys if frame is None else frame.is_whole:
        return Expr(msgspec.structs.replace(window, order_by=(), frame=None))
    assert isinstance(base.argument, Aggregated), "what is computed"
    return Expr(framed(base.argument, window))


class WindowFunction:
    """A window function that waits for its window."""

    __slots__ = ("_base",)

    def __init__(self, base: Over) -> None:
        self._base = base

    @with_options_of_windows
    def over(
        self,
        partition_by: Any = None,
        order_by: Any = None,
        descending: bool | list[bool] = False,
        nulls_last: bool | list[bool] = False,
        rows: tuple[int | None, int | None] | None = None,
        range: tuple[Any, Any] | None = None,  # noqa: A002
        groups: tuple[int | None, int | None] | None = None,
        exclude: FrameExclude | None = None,
    ) -> Expr:
        """Return the function of the rows with equal ``partition_by`` (names or expressions), all rows without.

        ``order_by`` with ``descending`` and ``nulls_last`` as in ``sort``. ``rows=(-2, 0)`` is a frame of this row and
        the two before it, ``range=(-7, 0)`` of those whose key is at most 7 less, ``groups=(-1, 0)`` of those that are
        equal in the order and of the group before them; None is unbounded. ``exclude``: "current row", "group" (the row
        and its equals) or "ties" (its equals) are left out of it.
        """
        bounds = Bounds(rows, range, groups, exclude)
        return over(self._base, partition_by, order_by, descending, nulls_last, bounds)

    def __repr__(self) -> str:
        return f"<WindowFunction {self._base.function}>"

    def __bool__(self) -> NoReturn:
        raise SchemaError(f"{self!r} is a window function; call .over(partition_by, order_by)")

    def _no_value(self, _other: Any) -> NoReturn:
        self.__bool__()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _no_value
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __mod__ = _no_value
    __hash__ = object.__hash__


class Rows:
    """A partition and its order, over which a function is put together."""

    def __init__(self, partition_by: Any, order_by: Any, descending: Any, nulls_last: Any) -> None:
        self._settings = {
            "partition_by": partition_by,
            "order_by": order_by,
            "descending": descending,
            "nulls_last": nulls_last,
        }

    def of(self, function: Any, **bounds: Any) -> Expr:
        """Return a function over these rows."""
        found: Expr = function.over(**self._settings, **bounds)
        return found

    def whole(self, function: Any) -> Expr:
        """Return an aggregate of the whole partition."""
        found: Expr = function.over(self._settings["partition_by"])
        return found


class RunningFunction(WindowFunction):
    """A window function that is made of others once its window is known."""

    __slots__ = ("_is_ordered", "_make", "_text")

    def __init__(self, text: str, make: Callable[[Rows], Expr], *, is_ordered: bool = True) -> None:
        self._text = text
        self._make = make
        self._is_ordered = is_ordered

    def __repr__(self) -> str:
        return f"<WindowFunction {self._text}>"

    @with_options_of_windows
    def over(  # type: ignore[override]
        self,
        partition_by: Any = None,
        order_by: Any = None,
        descending: bool | list[bool] = False,
        nulls_last: bool | list[bool] = False,
        **bounds: Any,
    ) -> Expr:
        """Return the function of the rows with equal ``partition_by``, in the order of ``order_by``."""
        if any(value is not None for value in bounds.values()):
            raise SchemaError(f"{self._text} has its own rows: it takes no {'=, '.join(bounds)}=")
        if self._is_ordered and (order_by is None or order_by == []):
            raise SchemaError(f"{self._text} needs an order: over(..., order_by=...)")
        return self._make(Rows(partition_by, order_by, descending, nulls_last))


def _argument(value: Any) -> Expression:
    return ColumnRef(value) if isinstance(value, str) else to_expression(value)


def _count(value: Any, what: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**62:
        raise SchemaError(f"{what}: {value!r} is no number from {least} on")
    return value


def row_number() -> WindowFunction:
    """Return the number of a row in its partition, from 1; rows that are equal in the order get different ones."""
    return WindowFunction(Over("row_number", None))


def rank(method: RankMethod = "min") -> WindowFunction:
    """Return 1 + how many rows of the partition come before; equal rows have the same, and leave a gap.

    ``method``: "max" gives equal rows the last of their places, "average" the mean of them as float64; "dense" is
    ``dense_rank()``, "ordinal" is ``row_number()``. Nulls have a rank, too, unlike in Polars and pandas.
    """
    if method in _RANKS:
        return WindowFunction(Over(_RANKS[method], None))
    if method not in ("max", "average"):
        raise SchemaError(f"rank(method={method!r}): choose one of {', '.join((*_RANKS, 'max', 'average'))}")

    def made(window: Rows) -> Expr:
        # all rows up to this one and its equals
        last = window.of(WindowFunction(Over("count_all", None)))
        return last if method == "max" else (window.of(rank()) + last) / 2.0

    return RunningFunction(f"rank(method={method!r})", made)


def dense_rank() -> WindowFunction:
    """Return 1 + how many different keys come before: without gaps."""
    return WindowFunction(Over("dense_rank", None))


def percent_rank() -> WindowFunction:
    """Return (rank - 1) / (rows - 1) as float64; 0.0 in a partition of one row."""
    return WindowFunction(Over("percent_rank", None))


def cume_dist() -> WindowFunction:
    """Return the share of rows of the partition that come before or are equal, as float64."""
    return WindowFunction(Over("cume_dist", None))


def ntile(n: int) -> WindowFunction:
    """Return the bucket of a row, from 1 to ``n``, in the ordered partition; the first ones may be a row larger."""
    return WindowFunction(Over("ntile", None, count=_count(n, "ntile", 1)))


def lag(x: Expr | str, n: int = 1, default: Any = None, ignore_nulls: bool = False) -> WindowFunction:
    """Return the value ``n`` rows before in the partition; ``default`` (a value or expression) where there is none.

    ignore_nulls: only rows that have a value are counted.
    """
    return WindowFunction(_shift("lag", x, n, default, ignore_nulls))


def lead(x: Expr | str, n: int = 1, default: Any = None, ignore_nulls: bool = False) -> WindowFunction:
    """Return the value ``n`` rows behind in the partition; ``default`` (a value or expression) where there is none.

    ignore_nulls: only rows that have a value are counted.
    """
    return WindowFunction(_shift("lead", x, n, default, ignore_nulls))


def _shift(function: str, x: Expr | str, n: int, default: Any, ignore_nulls: bool) -> Over:
    value = None if default is None else to_expression(default)
    return Over(function, _argument(x), count=_count(n, function, 0), default=value, ignore_nulls=bool(ignore_nulls))


def first_value(x: Expr | str, ignore_nulls: bool = False) -> WindowFunction:
    """Return the value of the first row of the frame, null if that is null; ``ignore_nulls``: of those with a value."""
    return WindowFunction(Over("first_value", _argument(x), ignore_nulls=bool(ignore_nulls)))


def last_value(x: Expr | str, ignore_nulls: bool = False) -> WindowFunction:
    """Return the value of the last row of the frame, which without one is the last of those equal to this row.

    ignore_nulls: of the rows that have a value.
    """
    return WindowFunction(Over("last_value", _argument(x), ignore_nulls=bool(ignore_nulls)))


def nth_value(x: Expr | str, n: int, ignore_nulls: bool = False) -> WindowFunction:
    """Return the value of the ``n``-th row of the frame, from 1; null where it has fewer.

    ignore_nulls: of the rows that have a value; the frame begins with the partition.
    """
    count = _count(n, "nth_value", 1)
    return WindowFunction(Over("nth_value", _argument(x), count=count, ignore_nulls=bool(ignore_nulls)))
