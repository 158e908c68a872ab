"""asof_join: what a user says of it, checked, as an operator of the plan.

Keys are columns or expressions as in joins (``join_keys``); the last one is what rows are compared by. A tolerance is
in whole units of its type, as distances of windows are.

Held by: tests/api/test_asof_joins.py
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from engine.errors import SchemaError
from engine.graph.plan import AsofJoin
from engine.graph.said_operators import AsofDirection, AsofJoinBy, JoinType
from engine.lowering.join_keys import keyed_sides, shown
from engine.lowering.logical_node import LogicalNode
from engine.lowering.window_distances import distance


def asof_node(left: LogicalNode, right: LogicalNode, said: AsofJoinBy) -> LogicalNode:
    """Return the as-of join of two nodes; SchemaError for what does not fit."""
    by = len(said.by)
    pairs = [*((one, one) for one in said.by), said.on]
    merged = [*([True] * by), said.is_on]
    sides = keyed_sides(left, right, pairs, merged, said.suffix, totals=[*([False] * by), True])
    compared = sides.left.schema.field(sides.left_keys[-1]).type
    if said.direction is AsofDirection.NEAREST and not _has_distances(compared):
        raise SchemaError(f"asof_join direction='nearest': {compared} has no distances; use backward or forward")
    tolerance = _tolerance(said.tolerance, compared)
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
        said.direction,
        said.is_strict,
        tolerance,
    )
    joined = LogicalNode(operator, (sides.left, sides.right), pa.schema([*sides.left.schema, *taken]))
    return shown(joined, sides, JoinType.LEFT)


def _has_distances(data_type: pa.DataType) -> bool:
    if types.is_decimal(data_type):
        return bool(data_type.precision <= 74)
    return bool(types.is_integer(data_type) or types.is_floating(data_type) or types.is_temporal(data_type))


def _tolerance(tolerance: float | str | None, data_type: pa.DataType) -> int | float | None:
    if tolerance is None:
        return None
    what = "asof_join tolerance"
    if not _has_distances(data_type):
        raise SchemaError(f"{what}={tolerance!r}: {data_type} has no distances")
    found = distance(tolerance, data_type, what)
    if not found >= 0:
        raise SchemaError(f"{what}={tolerance!r}: how far away a row may be is not negative")
    return found
