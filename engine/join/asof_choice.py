"""AsofRule: which right row a left row of an as-of join gets; and the choice where distances decide it.

    direction   candidates                                    chosen
    backward    the last row that is not later                it
    forward     the first row that is not earlier             it
    nearest     both                                          the nearer one; the earlier where both are as near

    strict      a row at the very time is no candidate
    tolerance   a candidate farther away is none              in whole units of the column, as in frames of windows

Order and equality are those of sort keys: NaN is the largest number and equals itself; it is infinitely far from every
other one. Distances of integers, times and decimals are exact over the whole range of their type.

Held by: tests/join/test_asof_join.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from engine.graph.said_operators import AsofDirection
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: choices for a left row
NOTHING, BEFORE, AFTER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class AsofRule:
    """The rule that chooses the right row of a left row."""

    direction: AsofDirection = AsofDirection.BACKWARD
    strict: bool = False
    tolerance: int | float | None = None

    @property
    def measures(self) -> bool:
        """Whether distances decide."""
        return self.tolerance is not None or self.direction is AsofDirection.NEAREST

    def choose(self, times: pa.Array, before: pa.Array, after: pa.Array) -> pa.Array:
        """Return NOTHING, BEFORE or AFTER as uint8 for each left row.

        Args: before, after: times of the candidates, null where there is none.
        """
        back, ahead = _distance(times, before), _distance(after, times)
        take_back, take_ahead = self._is_near(back, before.type), self._is_near(ahead, before.type)
        is_nearer = pc.fill_null(pc.less(ahead, back), False)
        take_ahead = pc.and_(take_ahead, pc.or_(pc.invert(take_back), is_nearer))
        found = pc.if_else(take_back, scalar_of(BEFORE, pa.uint8()), scalar_of(NOTHING, pa.uint8()))
        return pc.if_else(take_ahead, scalar_of(AFTER, pa.uint8()), found)

    def _is_near(self, distance: pa.Array, data_type: pa.DataType) -> pa.Array:
        if self.tolerance is None:
            return pc.is_valid(distance)
        if pa.types.is_decimal(data_type):
            most = scalar_of(Decimal(self.tolerance).scaleb(-data_type.scale), pa.decimal256(76, data_type.scale))
            most = pc.cast(most, distance.type, safe=False) if most.as_py() < _largest(distance.type) else None
        elif pa.types.is_floating(data_type):
            most = scalar_of(float(self.tolerance), pa.float64())
        else:
            most = scalar_of(min(self.tolerance, 2**64 - 1), pa.uint64())
        if most is None:
            return pc.is_valid(distance)
        return pc.fill_null(pc.less_equal(distance, most), False)


def _largest(data_type: pa.DataType) -> Decimal:
    return Decimal(10 ** (data_type.precision - 1)).scaleb(-data_type.scale)


def _distance(later: pa.Array, earlier: pa.Array) -> pa.Array:
    """Return later - earlier, which is not negative, in a type that holds it; null where either is."""
    data_type = later.type
    if pa.types.is_floating(data_type):
        one, other = pc.cast(later, pa.float64()), pc.cast(earlier, pa.float64())
        is_equal = pc.or_(pc.equal(one, other), pc.and_(pc.is_nan(one), pc.is_nan(other)))
        apart = pc.subtract(one, other)
        apart = pc.if_else(pc.is_nan(apart), scalar_of(math.inf), apart)
        return pc.if_else(is_equal, scalar_of(0.0), apart)
    if pa.types.is_decimal(data_type):
        wide = pa.decimal256(min(data_type.precision + 1, 75), data_type.scale)
        return pc.subtract(pc.cast(later, wide), pc.cast(earlier, wide))
    if pa.types.is_uint64(data_type):
        return pc.subtract(later, earlier)
    if data_type.bit_width < 64:
        signed = pa.uint32() if pa.types.is_unsigned_integer(data_type) else pa.int32()
        later, earlier = later.cast(signed), earlier.cast(signed)
    # a difference that leaves the range of int64 is right as uint64
    one, other = (pc.cast(each, pa.int64()) for each in (later, earlier))
    return pc.subtract(one, other).view(pa.uint64())
