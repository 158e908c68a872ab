"""RangeSpec: a RangeCondition by column indexes, as the range join takes it.

Held by: tests/join/test_range_join.py
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from engine.graph.range_condition import RangeCondition


class RangeSpec(NamedTuple):
    """The range condition: the points in a row's interval."""

    is_point_left: bool
    #: column of the side that has the points
    point: int
    #: columns of the other side, None: the interval has no such end
    lower: int | None
    upper: int | None
    lower_is_inclusive: bool = True
    upper_is_inclusive: bool = True


def range_spec(where: RangeCondition, left: pa.Schema, right: pa.Schema) -> RangeSpec:
    """Return a range over the schemas of a join's inputs."""
    points, intervals = (left, right) if where.is_point_left else (right, left)
    lower, upper = where.lower, where.upper
    return RangeSpec(
        where.is_point_left,
        points.get_field_index(where.point),
        None if lower is None else intervals.get_field_index(lower.column),
        None if upper is None else intervals.get_field_index(upper.column),
        lower is None or lower.is_inclusive,
        upper is None or upper.is_inclusive,
    )
