"""INTERSECT and EXCEPT, as one aggregate over the rows of both sides.

    left, 1, null ──┐
                    ├─► union ─► group by all columns: max of both marks ─► filter on which side has the row
    right, null, 1 ─┘

As keys of groups null equals null and NaN is one value. Where copies count, the equal rows of each side are numbered
first, so that the third one of the left matches the third one of the right.

Rows of other types than the left's go as a semi or anti join, which compares keys of two types exactly.

Held by: tests/integration/test_row_calls.py
Held by: tests/integration/test_keys_of_two_types.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.literals import make_literal
from engine.graph.expression import AggregateCall, ColumnRef, NamedExpression, Over
from engine.graph.plan import Filter
from engine.graph.said_operators import JoinType, SetOperation
from engine.lowering.aggregate_nodes import aggregate_node
from engine.lowering.join_keys import keys_on
from engine.lowering.joins import join_node, union_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, free_name, project_node
from engine.lowering.terms import call, is_there
from engine.lowering.window_nodes import windowed_project
from engine.records.key_types import is_key_type, key_remedy


def matched(left: LogicalNode, right: LogicalNode, said: SetOperation) -> LogicalNode:
    """Return the rows of the left that the right has, or has not."""
    what = "intersect" if said.in_other else "except_"
    names = left.schema.names
    for field in union_node([left, right], what).schema:
        if not is_key_type(field.type):
            raise SchemaError(
                f"{what}: column {field.name!r} is {field.type}, which cannot be compared; drop it, or "
                + key_remedy(field.type)
            )
    rows = columns_as_they_are(names)
    own, others, number = (free_name(name, left.schema) for name in ("__left", "__right", "__number"))
    sides, keys = [left, project_node(right, rows, what)], tuple(names)
    if said.counts_copies:
        copy = NamedExpression(number, Over("row_number", None, tuple(map(ColumnRef, names))))
        sides, keys = [windowed_project(side, [*rows, copy], what) for side in sides], (*names, number)
    if sides[0].schema.types != sides[1].schema.types:
        one = sides[0] if said.counts_copies else aggregate_node(sides[0], keys, ())
        kind = JoinType.SEMI if said.in_other else JoinType.ANTI
        return project_node(join_node(one, sides[1], kind, keys_on(keys, null_safe=True)), rows, what)
    present, absent = make_literal(1, pa.int8()), make_literal(None, pa.int8())
    marked = [
        project_node(
            side, [*columns_as_they_are(keys), NamedExpression(own, mark), NamedExpression(others, other)], what
        )
        for side, mark, other in zip(sides, (present, absent), (absent, present), strict=True)
    ]
    calls = tuple(AggregateCall("max", ColumnRef(name), name) for name in (own, others))
    groups = aggregate_node(union_node(marked), keys, calls)
    there = call("is_not_null" if said.in_other else "is_null", ColumnRef(others))
    kept = LogicalNode(Filter(call("and", is_there(ColumnRef(own)), there)), (groups,), groups.schema)
    return project_node(kept, rows, what)
