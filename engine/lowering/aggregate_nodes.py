"""One Aggregate as an operator of the plan, and what parts of a result have in common.

    aggregate_node(source, keys, calls)       calls as ``aggregate_functions`` has them; none: the different keys
    Part(node)                                keys and some of the aggregates, a row for each group

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.accumulators.aggregate_functions import argument_column, result_schema, state_schema
from engine.expressions.infer import infer_type
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.expression import AggregateCall
from engine.graph.plan import Aggregate
from engine.lowering.logical_node import LogicalNode


class Part(msgspec.Struct, frozen=True):
    """Some of the aggregates. ``has_all_groups``: else groups may be missing, whose aggregates are null."""

    node: LogicalNode
    has_all_groups: bool = True


def aggregate_node(source: LogicalNode, keys: tuple[str, ...], calls: tuple[AggregateCall, ...]) -> LogicalNode:
    """Return an aggregate of a node that has the keys as columns, with the schemas between its phases."""
    key_fields = [source.schema.field(key) for key in keys]
    types = [None if call.argument is None else infer_type(call.argument, source.schema) for call in calls]
    arguments = [
        pa.field(argument_column(index), data_type) for index, data_type in enumerate(types) if data_type is not None
    ]
    operator = Aggregate(
        keys=keys,
        calls=calls,
        state_schema=to_plan_schema(state_schema(key_fields, calls, types)),
        argument_schema=to_plan_schema(pa.schema([*key_fields, *arguments])),
    )
    return LogicalNode(operator, (source,), result_schema(key_fields, calls, types))
