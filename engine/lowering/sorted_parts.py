"""Aggregates of groups that look at all of their values: quantiles and lists, one pass over the rows for each order.

    sorted_parts(source, keys, named)          the parts that have them
    any_values_node(source, keys, columns)     of each column any value that is not null, whatever its type

    median(x), quantile(z, 0.9), list(y order by t)
        ──► keys, x, z ──► grouped, in any order ──► both quantiles         integers as int64, dates as timestamps
        ──► keys, t, y ──► grouped, in the order of t ──► the list

Held by: tests/integration/test_aggregate_functions.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyarrow import types

from engine.errors import SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.schema_bridge import type_to_ipc
from engine.expressions.text import expression_text
from engine.graph.expression import Aggregated, Case, Cast, Expression, NamedExpression, OrderedBy
from engine.graph.plan import SortedAggregate
from engine.graph.sort_key import SortKey
from engine.graph.window import SortedCall
from engine.lowering.aggregate_nodes import Part
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, fresh_name, project_node
from engine.records.key_types import is_key_type, key_remedy
from engine.window.sorted_groups import sorted_schema

#: functions that are computed from sorted rows
SORTED: Final = frozenset({"quantile", "list"})


class _Pass:
    """One sort of the rows, and what is computed from it."""

    def __init__(self, order: tuple[OrderedBy, ...], keys: tuple[str, ...]) -> None:
        self.order = order
        self._keys = keys
        self._columns: list[NamedExpression] = []
        self._calls: list[SortedCall] = []

    def add(self, name: str, one: Aggregated, value: Expression) -> None:
        """Add an aggregate of a value."""
        share = one.options.get("q")
        where = None if one.where is None or one.function == "quantile" else self._column(one.where)
        share = share if isinstance(share, float) else 0.0
        self._calls.append(SortedCall(one.function, self._column(value), name, where, share))

    def _column(self, expression: Expression) -> str:
        known = next((one.name for one in self._columns if one.expression == expression), None)
        if known is None:
            known = fresh_name(f"__sorted{len(self._columns)}", self._keys)
            self._columns.append(NamedExpression(known, expression))
        return known

    def node(self, source: LogicalNode) -> LogicalNode:
        """Return the aggregate over a source."""
        order = tuple(SortKey(self._column(key.expression), key.descending, key.nulls_last) for key in self.order)
        rows = project_node(source, [*columns_as_they_are(self._keys), *self._columns], "agg")
        return _node(rows, self._keys, order, self._calls)


def _node(
    rows: LogicalNode, keys: tuple[str, ...], order: tuple[SortKey, ...], calls: Sequence[SortedCall]
) -> LogicalNode:
    return LogicalNode(SortedAggregate(keys, order, tuple(calls)), (rows,), sorted_schema(rows.schema, keys, calls))


def sorted_parts(source: LogicalNode, keys: tuple[str, ...], named: Sequence[tuple[str, Aggregated]]) -> list[Part]:
    """Return a part for each order that aggregates want.

    Raises: SchemaError: a quantile of what is no number and no time, or an order of values that have none.
    """
    passes: list[_Pass] = []
    for name, one in named:
        value = one.arguments[0]
        order = one.order_by
        if one.function == "quantile":
            value, order = _ordered_value(one, source.schema), ()
        for key in order:
            data_type = infer_type(key.expression, source.schema)
            if not is_key_type(data_type):
                raise SchemaError(
                    f"{expression_text(one)}: values of {data_type} have no order: {key_remedy(data_type)}"
                )
        found = next((each for each in passes if each.order == order), None)
        if found is None:
            found = _Pass(order, keys)
            passes.append(found)
        found.add(name, one, value)
    return [Part(each.node(source)) for each in passes]


def _ordered_value(one: Aggregated, schema: pa.Schema) -> Expression:
    """Return the value of a quantile as what it is computed in, null where a filter is not true."""
    value = one.arguments[0]
    data_type = infer_type(value, schema)
    try:
        wanted = quantile_argument(data_type)
    except SchemaError as error:
        raise SchemaError(f"{expression_text(one)}: {error}") from None
    if wanted != data_type:
        value = Cast(value, type_to_ipc(wanted), str(wanted), widens=True)
    return value if one.where is None else Case(((one.where, value),))


def quantile_argument(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which a quantile of values of a type is computed. Raises: SchemaError."""
    if types.is_uint64(data_type):
        return pa.decimal128(20, 0)
    if types.is_integer(data_type):
        return pa.int64()
    if types.is_floating(data_type):
        return pa.float64()
    if types.is_date32(data_type):
        return pa.timestamp("us")
    if types.is_date64(data_type):
        return pa.timestamp("ms")
    if types.is_time32(data_type):
        return pa.time64("us")
    is_time = types.is_time(data_type) or types.is_timestamp(data_type) or types.is_duration(data_type)
    if types.is_decimal(data_type) or is_time:
        return data_type
    raise SchemaError(f"quantile takes numbers and times, the argument is {data_type}")


def any_values_node(source: LogicalNode, keys: tuple[str, ...], columns: Sequence[str]) -> LogicalNode:
    """Return a row for each group with any value of each column that is not null."""
    return _node(source, keys, (), [SortedCall("only", name, name) for name in columns])
