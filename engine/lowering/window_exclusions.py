"""Frames that count groups of equal rows, and frames without some rows, as frames of ranges, and of what lies around.

    of_ranges(over, column)          GROUPS BETWEEN 1 PRECEDING ...   a range of dense_rank() of the same window
    excluded(over, schema)           a function of the rows before those that are excluded and of those behind them:
                                     sum(before) + sum(behind), least(min(before), min(behind)) ...

    EXCLUDE           rows before       behind            and
    CURRENT ROW       the row           the row
    GROUP             its peers         its peers
    TIES              its peers         its peers         the row itself, where the frame has it

Both parts are frames of one window, sorted once, and only move forward, so each row is entered once into each.

Held by: tests/integration/test_window_exclusions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.text import expression_text
from engine.graph.expression import Expression, OrderedBy, Over
from engine.graph.window import CURRENT_ROW, GROUP, TIES
from engine.lowering.terms import call, case, cast, is_there, term
from engine.lowering.window_distances import frame_distances
from engine.window.functions import result_type

#: largest n of nth_value of a frame with EXCLUDE: a case for each number of rows before
_NTH_MOST: Final = 16


def of_ranges(over: Over, column: Callable[[Expression], Expression]) -> Over:
    """Return a function over a frame of groups as one over a range of their numbers."""
    assert over.frame is not None, "it counts groups"
    if not over.order_by:
        raise SchemaError(f"{expression_text(over)}: groups= counts in an order: over(..., order_by=...)")
    number = column(Over("dense_rank", None, over.partition_by, over.order_by))
    return replace(over, order_by=(OrderedBy(number),), frame=replace(over.frame, kind="range"))


def excluded(over: Over, schema: pa.Schema) -> Expression:
    """Return a function over a frame with EXCLUDE, of the parts of the frame. Raises: NotYetSupportedError."""
    if over.distinct or over.function not in _OF_PARTS:
        raise NotYetSupportedError(f"{expression_text(over)}: EXCLUDE of this function")
    return _OF_PARTS[over.function](_Parts(over, schema))


class _Parts:
    """The parts of a frame: rows before those that are excluded, the row itself where it alone is kept, rows behind."""

    def __init__(self, over: Over, schema: pa.Schema) -> None:
        assert over.frame is not None, "a frame excludes rows"
        self.over = over
        cut = CURRENT_ROW if over.frame.exclude == CURRENT_ROW else GROUP
        self._frames = [replace(over.frame, exclude=cut, part=part) for part in ("before", "behind")]
        #: condition for the row itself to be in its frame; None: it never is, or is left out
        self.has_row = _has_row(over, schema) if over.frame.exclude == TIES else None
        self._schema = schema

    @property
    def value(self) -> Expression:
        """The argument."""
        assert self.over.argument is not None, "it has an argument"
        return self.over.argument

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""
        return result_type(self.over.function, infer_type(self.value, self._schema))

    def before(self, function: str = "", count: int = 0) -> Over:
        """Return a function of the rows before."""
        return self._part(0, function, count)

    def behind(self, function: str = "", count: int = 0) -> Over:
        """Return a function of the rows behind."""
        return self._part(1, function, count)

    def _part(self, place: int, function: str, count: int) -> Over:
        argument = None if function == "count_all" else self.over.argument
        return replace(
            self.over,
            function=function or self.over.function,
            argument=argument,
            frame=self._frames[place],
            count=count or self.over.count,
        )

    def all(self, own: Callable[[], Expression], function: str = "", *, otherwise: Any = None) -> list[Expression]:
        """Return a function of each part; ``own``: of the row itself, ``otherwise``: where it is not in the frame."""
        row = [] if self.has_row is None else [case((self.has_row, own()), otherwise=otherwise)]
        return [self.before(function), *row, self.behind(function)]


def _has_row(over: Over, schema: pa.Schema) -> Expression | None:
    """Return the condition for a frame to have the row itself: neither bound lies beyond it, or its key has no number.

    A key that is null or NaN is at no distance from others of its kind, whatever the bounds are.
    """
    assert over.frame is not None, "a frame excludes rows"
    found = frame_distances(over.frame, over, schema)
    start, end = (None if bound is None else float(bound) for bound in (found.start, found.end))
    if (start is None or start <= 0) and (end is None or end >= 0):
        return term(True)
    if found.kind != "range":
        return None
    key = over.order_by[0].expression
    is_null = call("is_null", key)
    return call("or", is_null, call("is_nan", key)) if pa.types.is_floating(infer_type(key, schema)) else is_null


def _rows(parts: _Parts) -> Expression:
    return reduce(lambda one, other: call("add", one, other), parts.all(lambda: term(1), otherwise=0))


def _counted(parts: _Parts) -> list[Expression]:
    return parts.all(lambda: case((is_there(parts.value), 1), otherwise=0), "count", otherwise=0)


def _count(parts: _Parts) -> Expression:
    return reduce(lambda one, other: call("add", one, other), _counted(parts))


def _sum(parts: _Parts) -> Expression:
    kind = parts.type

    def plus(one: Expression, other: Expression) -> Expression:
        total = cast(call("add", one, other), kind)
        return case((call("is_null", one), other), (call("is_null", other), one), otherwise=total)

    return reduce(plus, parts.all(lambda: cast(parts.value, kind)))


def _extreme(parts: _Parts) -> Expression:
    name = "least" if parts.over.function == "min" else "greatest"
    return call(name, *parts.all(lambda: parts.value))


def _means(parts: _Parts) -> list[Expression]:
    return parts.all(lambda: cast(parts.value, pa.float64(), widens=True), "avg")


def _mean_of(counts: Sequence[Expression], means: Sequence[Expression]) -> tuple[Expression, Expression]:
    """Return the number of values in several parts, and their mean: null without any."""
    count = reduce(lambda one, other: call("add", one, other), counts)
    products = (call("multiply", call("coalesce", mean, 0.0), one) for one, mean in zip(counts, means, strict=True))
    total = reduce(lambda one, other: call("add", one, other), products)
    return count, case((call("greater", count, 0), call("divide", total, cast(count, pa.float64()))))


def _avg(parts: _Parts) -> Expression:
    return _mean_of(_counted(parts), _means(parts))[1]


def _variance(parts: _Parts) -> Expression:
    """Return the variance: of the squares within each part, and of those between the means of the parts."""
    counts, means = _counted(parts), _means(parts)
    count, mean = _mean_of(counts, means)
    squares: list[Expression] = []
    for one, own_mean in zip(counts, means, strict=True):
        distance = call("subtract", call("coalesce", own_mean, mean), mean)
        squares.append(call("multiply", one, call("multiply", distance, distance)))
    for one, spread in ((counts[0], parts.before("variance")), (counts[-1], parts.behind("variance"))):
        squares.append(call("multiply", call("subtract", one, 1), call("coalesce", spread, 0.0)))
    total = reduce(lambda one, other: call("add", one, other), squares)
    less = cast(call("subtract", count, 1), pa.float64())
    found = case((call("greater", count, 1), call("divide", total, less)))
    return call("sqrt", found) if parts.over.function == "stddev" else found


def _first(parts: _Parts) -> Expression:
    before = (call("greater", parts.before("count_all"), 0), parts.before())
    return case(before, *_of_row(parts), otherwise=parts.behind())


def _last(parts: _Parts) -> Expression:
    behind = (call("greater", parts.behind("count_all"), 0), parts.behind())
    return case(behind, *_of_row(parts), otherwise=parts.before())


def _of_row(parts: _Parts) -> list[tuple[Expression, Expression]]:
    return [] if parts.has_row is None else [(parts.has_row, parts.value)]


def _nth(parts: _Parts) -> Expression:
    wanted = parts.over.count
    if wanted > _NTH_MOST:
        raise NotYetSupportedError(f"{expression_text(parts.over)}: EXCLUDE of nth_value beyond {_NTH_MOST}")
    rows = parts.before("count_all")
    branches: list[tuple[Expression, Expression]] = [(call("greater_equal", rows, wanted), parts.before())]
    for before in range(wanted):
        is_so, place = call("equal", rows, before), wanted - before
        if parts.has_row is not None:
            row = parts.value if place == 1 else parts.behind(count=place - 1)
            branches.append((call("and", is_so, parts.has_row), row))
        branches.append((is_so, parts.behind(count=place)))
    return case(*branches)


_OF_PARTS: Final[dict[str, Callable[[_Parts], Expression]]] = {
    "count_all": _rows,
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("variance", "stddev"), _variance),
    **dict.fromkeys(("first", "first_value"), _first),
    **dict.fromkeys(("last", "last_value"), _last),
    "nth_value": _nth,
}
