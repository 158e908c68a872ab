"""Ranges in a join's condition, and when a range join is an alternative.

    t >= begin and t < end and x != y      point t, bounds begin and end of the other side; x != y stays a condition
    t between begin and end                likewise
    t > begin                              one bound
    one < other and third > fourth         the first comparison; the second one stays

Compared are columns of equal types: a plan has no others where an expression is compared (``engine.lowering.joins``). A
column that has both bounds comes before one that has a single one.

A range join sorts both sides. It is offered where that pays: where there are PAIRS_PER_ROW times as many candidate
pairs, those with equal keys, as rows. Joins that try pairs are charged for each of them then.

Held by: tests/optimizer/test_range_planning.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.graph.expression import Call, ColumnRef, Expression, conjunction, conjuncts
from engine.graph.plan import Join
from engine.graph.plan_schema import PlanSchema
from engine.graph.range_condition import RangeBound, RangeCondition
from engine.optimizer.join_estimates import candidate_pairs
from engine.statistics.costs import Costs
from engine.statistics.estimates import Estimates

#: candidate pairs per row of both sides from which sorting pays
PAIRS_PER_ROW: Final = 8.0
#: cost of trying one pair, in bytes that are touched
PAIR_BYTES: Final = 16.0

_MIRRORED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


class FoundRange(NamedTuple):
    """A range in a condition."""

    range: RangeCondition
    #: rest of the condition
    rest: Expression | None


class _Comparison(NamedTuple):
    """point > bound, >=, < or <=; seen from the side of the point."""

    is_point_left: bool
    point: str
    function: str
    bound: str
    part: Expression

    @property
    def is_lower(self) -> bool:
        return self.function.startswith("greater")


def find_range(join: Join, left: PlanSchema, right: PlanSchema) -> FoundRange | None:
    """Return the range in a join's condition; None where there is none, or where the join cannot use it."""
    if join.condition is None or join.null_aware:
        return None
    parts = [each for part in conjuncts(join.condition) for each in _opened(part)]
    found = [each for part in parts for each in _comparisons(part, left, right)]
    if not found:
        return None
    first = next((one for one in found if _partner(one, found) is not None), found[0])
    second = _partner(first, found)
    bounds = {each.is_lower: each for each in (first, second) if each is not None}
    used = [each.part for each in bounds.values()]
    rest = [part for part in parts if not any(part is one for one in used)]
    lower, upper = (
        None if (each := bounds.get(is_lower)) is None else RangeBound(each.bound, each.function.endswith("_equal"))
        for is_lower in (True, False)
    )
    where = RangeCondition(first.is_point_left, first.point, lower, upper)
    return FoundRange(where, conjunction(rest) if rest else None)


def _opened(part: Expression) -> list[Expression]:
    """Return a part, of ``between`` both comparisons."""
    match part:
        case Call(function="between", arguments=(value, low, high)):
            return [Call("greater_equal", (value, low)), Call("less_equal", (value, high))]
        case _:
            return [part]


def _comparisons(part: Expression, left: PlanSchema, right: PlanSchema) -> Iterator[_Comparison]:
    """Yield a comparison of columns of both sides as seen from either."""
    match part:
        case Call(function=function, arguments=(ColumnRef(name=one), ColumnRef(name=other))) if function in _MIRRORED:
            if one not in left.names:
                one, other, function = other, one, _MIRRORED[function]
            # what both sides have is the left one's
            if one not in left.names or other in left.names or other not in right.names:
                return
            columns = left.column(one), right.column(other)
            if columns[0].ipc == columns[1].ipc and columns[0].is_key_type:
                yield _Comparison(True, one, function, other, part)
                yield _Comparison(False, other, _MIRRORED[function], one, part)
        case _:
            return


def _partner(one: _Comparison, found: list[_Comparison]) -> _Comparison | None:
    """Return the other bound of a point."""
    for each in found:
        is_same = (each.is_point_left, each.point) == (one.is_point_left, one.point)
        if is_same and each.is_lower != one.is_lower:
            return each
    return None


def range_pairs(join: Join, left: PlanSchema, right: PlanSchema, sides: tuple[Estimates, Estimates]) -> float | None:
    """Return the number of pairs a join without a range join would try; None where that is not offered."""
    if find_range(join, left, right) is None:
        return None
    pairs = candidate_pairs(join, *sides)
    return pairs if pairs > PAIRS_PER_ROW * (sides[0].rows + sides[1].rows) else None


def pair_costs(pairs: float) -> Costs:
    """Return the costs of trying so many pairs."""
    return Costs(cpu=pairs * PAIR_BYTES, heuristic_cpu=pairs * PAIR_BYTES)
