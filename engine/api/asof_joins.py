"""asof_join: what a user says of it, checked, as an operator of the plan.

Keys are columns or expressions as in joins (``join_keys``); the last one is what rows are compared by. A tolerance is
in whole units of its type, as distances of windows are.

Held by: tests/api/test_asof_joins.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from engine.api.join_keys import keyed_sides, shown
from engine.api.logical_node import LogicalNode
from engine.api.projections import flattened
from engine.api.window_distances import distance
from engine.api.windows import plain_distance
from engine.errors import SchemaError
from engine.graph.plan import AsofDirection, AsofJoin, JoinType


class AsofMatch(NamedTuple):
    """The match of an as-of join: which row of the other side a row gets, as the user wrote it."""

    on: Any
    left_on: Any
    right_on: Any
    by: Any
    direction: str
    tolerance: Any
    is_strict: bool


def asof_node(left: LogicalNode, right: LogicalNode, match: AsofMatch, suffix: str | None) -> LogicalNode:
    """Return the as-of join of two nodes; SchemaError for what does not fit."""
    time = _time(match)
    by = [] if match.by is None else flattened([match.by])
    pairs = [*((one, one) for one in by), time]
    merged = [*([True] * len(by)), match.on is not None]
    sides = keyed_sides(left, right, pairs, merged, suffix, totals=[*([False] * len(by)), True])
    compared = sides.left.schema.field(sides.left_keys[-1]).type
    direction = _direction(match.direction)
    if direction is AsofDirection.NEAREST and not _has_distances(compared):
        raise SchemaError(f"asof_join direction='nearest': {compared} has no distances; use backward or forward")
    tolerance = _tolerance(match.tolerance, compared)
    taken = [sides.right.schema.field(name).with_nullable(True) for name in sides.right_shown]
    lefts = set(sides.left.schema.names)
    clashes = ", ".join(repr(field.name) for field in taken if field.name in lefts)
    if clashes:
        raise SchemaError(f"asof_join: both sides have a column {clashes}; rename() it, or give suffix='_right'")
    operator = AsofJoin(
        sides.left_keys[:-1],
        sides.right_keys[:-1],
        sides.left_keys[-1],
        sides.right_keys[-1],
        direction,
        bool(match.is_strict),
        tolerance,
    )
    joined = LogicalNode(operator, (sides.left, sides.right), pa.schema([*sides.left.schema, *taken]))
    return shown(joined, sides, JoinType.LEFT)


def _time(match: AsofMatch) -> tuple[Any, Any]:
    """Return the columns that are compared, left and right."""
    given = [name for name in ("on", "left_on", "right_on") if getattr(match, name) is not None]
    if given == ["on"]:
        columns = (match.on, match.on)
    elif given == ["left_on", "right_on"]:
        columns = (match.left_on, match.right_on)
    else:
        raise SchemaError(f"asof_join: give on=, or left_on= and right_on=; {' and '.join(given) or 'neither'} given")
    for column in columns:
        if len(flattened([column])) != 1:
            raise SchemaError(f"asof_join on={column!r}: one column; those that must be equal are by=[...]")
    left, right = (flattened([column])[0] for column in columns)
    return left, right


def _direction(word: str) -> AsofDirection:
    try:
        return AsofDirection(word)
    except ValueError:
        raise SchemaError(f"asof_join direction={word!r}: choose one of {', '.join(AsofDirection)}") from None


def _has_distances(data_type: pa.DataType) -> bool:
    if types.is_decimal(data_type):
        return bool(data_type.precision <= 74)
    return bool(types.is_integer(data_type) or types.is_floating(data_type) or types.is_temporal(data_type))


def _tolerance(tolerance: Any, data_type: pa.DataType) -> int | float | None:
    if tolerance is None:
        return None
    what = "asof_join tolerance"
    if not _has_distances(data_type):
        raise SchemaError(f"{what}={tolerance!r}: {data_type} has no distances")
    bound = plain_distance(tolerance, what)
    assert bound is not None
    found = distance(bound, data_type, what)
    if not found >= 0:
        raise SchemaError(f"{what}={tolerance!r}: how far away a row may be is not negative")
    return found
