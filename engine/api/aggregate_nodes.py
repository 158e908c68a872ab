"""Aggregates as operators of the plan: one for plain calls, several where a call counts different values.

    aggregate_node(source, keys, calls)            one Aggregate; calls as engine.aggregate.functions has them
    distinct_counts_node(source, keys, calls)      the same with count_distinct among the calls

A count of different values is two aggregates, which spill like any other: first the different pairs of keys and
value, then how many of them have a value (nulls do not count, NaN is one value, -0.0 is 0.0, as keys everywhere).

    source ──► project keys, x ──► distinct ──► count(x) by keys ──┐
           ├─► project keys, y ──► distinct ──► count(y) by keys ──┼─► union ──► max of each column by keys
           └─► all other calls by keys ────────────────────────────┘

Calls of several arguments, or beside other calls, are computed apart and put together by a union, in which each row
has nulls for what the others compute: a group's columns then have one value each at most, and max takes it. Null keys
stay one group, which a join of the parts would lose; without keys each part is one row, also over no rows.

Limits: the source is read once for each argument that is counted, and once for all other calls.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from msgspec.structs import replace

from engine.aggregate.functions import argument_column, result_schema, state_schema
from engine.api.joins import union_node
from engine.api.logical_node import LogicalNode
from engine.api.projections import project_node
from engine.errors import SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import is_key_type, to_plan_schema
from engine.expressions.text import aggregate_text, expression_text
from engine.graph.expression import AggregateCall, ColumnRef, Expression, NamedExpression
from engine.graph.plan import Aggregate as AggregateOperator

COUNT_DISTINCT = "count_distinct"


def aggregate_node(source: LogicalNode, keys: tuple[str, ...], calls: tuple[AggregateCall, ...]) -> LogicalNode:
    """Return an aggregate of a node that has the keys as columns, with the schemas between its phases."""
    key_fields = [source.schema.field(key) for key in keys]
    types = [None if call.argument is None else infer_type(call.argument, source.schema) for call in calls]
    arguments = [
        pa.field(argument_column(index), data_type) for index, data_type in enumerate(types) if data_type is not None
    ]
    operator = AggregateOperator(
        keys=keys,
        calls=calls,
        state_schema=to_plan_schema(state_schema(key_fields, calls, types)),
        argument_schema=to_plan_schema(pa.schema([*key_fields, *arguments])),
    )
    return LogicalNode(operator, (source,), result_schema(key_fields, calls, types))


def distinct_counts_node(source: LogicalNode, keys: tuple[str, ...], calls: tuple[AggregateCall, ...]) -> LogicalNode:
    """Return a node that gives what one Aggregate of these calls would give; without count_distinct it is one.

    Raises:
        SchemaError: values of an argument cannot be compared; else as aggregate_node.
    """
    counted: list[tuple[Expression, list[AggregateCall]]] = []
    others = tuple(call for call in calls if call.function != COUNT_DISTINCT)
    for call in calls:
        if call.function == COUNT_DISTINCT and call.argument is not None:
            same = next((named for argument, named in counted if argument == call.argument), None)
            if same is None:
                counted.append((call.argument, [call]))
            else:
                same.append(call)
    parts = [_count_of_different(source, keys, argument, named) for argument, named in counted]
    if others or not parts:
        parts.append(aggregate_node(source, keys, others))
    if len(parts) == 1:
        return parts[0]
    types = {call.name: part.schema.field(call.name).type for call in calls for part in parts if _has(part, call)}
    together = union_node([_padded(part, keys, types) for part in parts])
    return aggregate_node(together, keys, tuple(AggregateCall("max", ColumnRef(name), name) for name in types))


def _count_of_different(
    source: LogicalNode, keys: tuple[str, ...], argument: Expression, calls: Sequence[AggregateCall]
) -> LogicalNode:
    """Return the counts of the different values of one argument, under the names of the calls."""
    data_type = infer_type(argument, source.schema)
    if not is_key_type(data_type):
        raise SchemaError(f"{aggregate_text(calls[0])}: values of {data_type} cannot be compared")
    value = "__distinct"
    while value in keys:
        value = f"_{value}"
    named = [*(NamedExpression(key, ColumnRef(key)) for key in keys), NamedExpression(value, argument)]
    pairs = aggregate_node(project_node(source, named, "agg"), (*keys, value), ())
    by = f" by {', '.join(keys)}" if keys else ""
    pairs = replace(pairs, name=f"distinct {expression_text(argument)}{by}")
    return aggregate_node(pairs, keys, tuple(AggregateCall("count", ColumnRef(value), call.name) for call in calls))


def _has(part: LogicalNode, call: AggregateCall) -> bool:
    """Whether a part computes a call (its name is no key: agg refuses names that occur twice)."""
    return call.name in part.schema.names


def _padded(part: LogicalNode, keys: tuple[str, ...], types: dict[str, pa.DataType]) -> LogicalNode:
    """Return a part with all columns of the result, null where another part computes them."""
    named = [NamedExpression(key, ColumnRef(key)) for key in keys]
    for name, data_type in types.items():
        there = name in part.schema.names
        named.append(NamedExpression(name, ColumnRef(name) if there else make_literal(None, data_type)))
    return project_node(part, named, "agg")
