"""Columns of aggregates: one operator of the plan for those with states, others beside it.

    aggregates_node(source, keys, outputs)      what agg() says: expressions of aggregates of all kinds

    agg(total=sum_("x"), share=sum_("x") / count(), kinds=count_distinct("y"), latest=max_by("z", "day"))

    source ──┬─► Aggregate: sum(x), count()                      all that have states, min_by, too
             ├─► keys, y ──► distinct ──► Aggregate: count(y)    ``distinct=True``
             ├─► rows by keys, in the order of z ──► median(z)   ``sorted_parts``: quantiles, lists
             └─► counted values, windows over these              ``aggregate_parts``: what needs more
                     │
                     ▼
             union ──► any value of each column by keys ──► project: total, share, kinds, latest

Parts are put together by a union, in which each row has nulls for what the others compute: a group's columns then have
one value each at most. Null keys stay one group, which a join of the parts would lose; without keys each part is one
row at most, and the result is one row, also over no rows. A filter becomes a part of the argument, which is null where
the filter is not true, for all that pass over nulls.

Different values are two aggregates, which spill like any other: first the different pairs of keys and value, then the
aggregate of these. NaN is one value there, -0.0 is 0.0, as in keys everywhere.

Held by: tests/column_expressions/test_aggregates.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from msgspec.structs import replace

from engine.errors import SchemaError
from engine.expressions.infer import check_depth, check_predicate, infer_type
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import type_to_ipc
from engine.expressions.text import expression_text
from engine.graph.expression import (
    EXTREMES_OF_CONDITIONS,
    ORDER_DEPENDENT_AGGREGATES,
    AggregateCall,
    Aggregated,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    NamedExpression,
    columns_of,
    replaced,
)
from engine.graph.plan import Aggregate as AggregateOperator
from engine.graph.plan import Filter, SortedAggregate
from engine.lowering.aggregate_nodes import Part, aggregate_node
from engine.lowering.aggregate_parts import PARTS, paired_extreme
from engine.lowering.joins import union_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, fresh_name, project_node
from engine.lowering.shared_sums import shared_sums
from engine.lowering.sorted_parts import SORTED, any_values_node, sorted_parts
from engine.lowering.span_aggregates import of_spans
from engine.records.key_types import is_key_type, key_remedy
from engine.records.plain_types import is_foreign

Named = tuple[str, Aggregated]

_OF_PAIRS = frozenset({"covar_samp", "covar_pop", "corr"})
#: aggregates that take values without a type, or values other than numbers
_OF_ANY_TYPE = frozenset({"count", "count_all", "list", "string_agg", *EXTREMES_OF_CONDITIONS})


def aggregates_node(source: LogicalNode, keys: tuple[str, ...], outputs: Sequence[NamedExpression]) -> LogicalNode:
    """Return a node with the keys, then expressions of aggregates under their names.

    Raises:
        SchemaError: an aggregate does not take its arguments, or a column stands outside of aggregates.
    """
    for one in outputs:
        check_depth(one.expression)
    outputs = [replace(one, expression=of_spans(one.expression, source.schema)) for one in outputs]
    outputs = shared_sums(outputs, source.schema)
    if all(isinstance(one.expression, Aggregated) for one in outputs):
        return _groups(source, keys, [(one.name, one.expression) for one in outputs])  # type: ignore[misc]
    leaves: list[Named] = []

    def column(part: Expression) -> Expression | None:
        if not isinstance(part, Aggregated):
            return None
        known = next((name for name, leaf in leaves if leaf == part), None)
        if known is None:
            known = fresh_name(f"__aggregate{len(leaves)}", keys)
            leaves.append((known, part))
        return ColumnRef(known)

    results = [NamedExpression(one.name, replaced(one.expression, column)) for one in outputs]
    names = {*keys, *(name for name, _ in leaves)}
    for one, result in zip(outputs, results, strict=True):
        outside = next((name for name in columns_of(result.expression) if name not in names), None)
        if outside is not None:
            raise SchemaError(
                f"agg({one.name}={expression_text(one.expression)}): column {outside!r} is neither a key nor in "
                "an aggregate; use an aggregate of it, such as max_ or first"
            )
    groups = _groups(source, keys, leaves)
    return project_node(groups, [*columns_as_they_are(keys), *results], "agg")


def _groups(source: LogicalNode, keys: tuple[str, ...], named: Sequence[Named]) -> LogicalNode:
    """Return a node that has the aggregates as columns, in one operator where all have states."""
    plain: list[AggregateCall] = []
    parts: list[Part] = []
    ordered: list[Named] = []
    different: list[tuple[tuple[Expression, ...], list[Named]]] = []
    late: list[tuple[Expression, list[AggregateCall]]] = []
    paired: dict[str, Expression] = {}
    for name, given in named:
        _check(given, source.schema)
        one = _typed(given, source.schema)
        if one.distinct and one.function == "list":
            pairs, kept = _different_pairs(source, keys, one)
            parts += sorted_parts(pairs, keys, [(name, kept)])
        elif one.distinct:
            values = tuple(_where(each, one.where) for each in one.arguments)
            _append(different, values, (name, one))
        elif one.function in SORTED:
            ordered.append((name, one))
        elif one.function in ("min_by", "max_by") and (pair := paired_extreme(source, name, one)) is not None:
            plain.append(pair[0])
            paired[name] = pair[1]
        elif one.function in PARTS:
            parts += PARTS[one.function](source, keys, name, one)
        elif one.where is not None and one.function in ORDER_DEPENDENT_AGGREGATES:
            _append(late, one.where, AggregateCall(one.function, one.arguments[0], name))
        else:
            plain.append(_plain_call(name, one))
    parts += sorted_parts(source, keys, ordered)
    parts += [Part(_of_different(source, keys, values, same)) for values, same in different]
    parts += [Part(_of_kept(source, keys, where, calls), has_all_groups=False) for where, calls in late]
    if plain or not any(part.has_all_groups for part in parts):
        parts.append(Part(_values_of_pairs(aggregate_node(source, keys, tuple(plain)), paired)))
    if len(parts) == 1 and keys:
        return _in_order(parts[0].node, keys, named)
    if len(parts) == 1 and isinstance(parts[0].node.operator, AggregateOperator | SortedAggregate):
        return _in_order(parts[0].node, keys, named)
    return _together([part.node for part in parts], keys, [name for name, _ in named])


def _values_of_pairs(states: LogicalNode, paired: dict[str, Expression]) -> LogicalNode:
    """Return the columns of an aggregate with the values of pairs in their place."""
    if not paired:
        return states
    columns = [NamedExpression(name, paired.get(name, ColumnRef(name))) for name in states.schema.names]
    return project_node(states, columns, "agg")


def _append(lists: list, key: object, value: object) -> None:  # type: ignore[type-arg]
    """Put a value to those of equal expressions (which have no hash)."""
    same = next((values for one, values in lists if one == key), None)
    if same is None:
        lists.append((key, [value]))
    else:
        same.append(value)


def _check(one: Aggregated, schema: pa.Schema) -> None:
    """Raise SchemaError for a filter that is no condition, or arguments that are none."""
    for argument in one.arguments:
        data_type = infer_type(argument, schema)
        if is_foreign(data_type):
            raise SchemaError(f"{expression_text(one)}: of {data_type} no values are made; leave it out")
    if one.where is not None:
        check_predicate(one.where, schema)
    if one.function in EXTREMES_OF_CONDITIONS:
        check_predicate(one.arguments[0], schema)
    if one.function in _OF_PAIRS:
        for argument in one.arguments:
            data_type = infer_type(argument, schema)
            if not (
                pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
            ):
                raise SchemaError(f"{expression_text(one)} takes numbers, {expression_text(argument)} is {data_type}")
    for argument in one.arguments if one.distinct else ():
        data_type = infer_type(argument, schema)
        if not is_key_type(data_type):
            raise SchemaError(
                f"{expression_text(one)}: values of {data_type} cannot be compared: {key_remedy(data_type)}"
            )


def _typed(one: Aggregated, schema: pa.Schema) -> Aggregated:
    """Return an aggregate whose arguments have types that states have.

    Columns of nothing but nulls are numbers; decimals of 32 and 64 bits are added up in 128.
    """
    if one.function in _OF_ANY_TYPE:
        return one
    return replace(one, arguments=tuple(_typed_argument(each, one.function, schema) for each in one.arguments))


def _typed_argument(argument: Expression, function: str, schema: pa.Schema) -> Expression:
    data_type = infer_type(argument, schema)
    wanted = data_type
    if pa.types.is_null(data_type):
        wanted = pa.int64()
    elif function in ("sum", "avg") and pa.types.is_decimal(data_type) and data_type.bit_width < 128:
        wanted = pa.decimal128(data_type.precision, data_type.scale)
    return argument if wanted == data_type else Cast(argument, type_to_ipc(wanted), str(wanted))


def _kept(one: Aggregated) -> Expression:
    """Return the argument, a pair of two, null where the filter is not true."""
    argument = one.arguments[0] if one.arguments else make_literal(1)
    if len(one.arguments) == 2:
        numbers = tuple(Cast(each, type_to_ipc(pa.float64()), "double", widens=True) for each in one.arguments)
        argument = Call("struct", numbers, {"0": "x", "1": "y"})
    return _where(argument, one.where)


def _where(value: Expression, condition: Expression | None) -> Expression:
    """Return a value, null where a condition is not true."""
    return value if condition is None else Case(((condition, value),))


def _plain_call(name: str, one: Aggregated) -> AggregateCall:
    function = EXTREMES_OF_CONDITIONS.get(one.function, one.function)
    if not one.arguments and one.where is None:
        return AggregateCall(function, None, name)
    return AggregateCall("count" if function == "count_all" else function, _kept(one), name)


def _of_different(
    source: LogicalNode, keys: tuple[str, ...], values: Sequence[Expression], named: Sequence[Named]
) -> LogicalNode:
    """Return aggregates of the different values of one argument, or the number of those of several without a null."""
    names = [fresh_name(f"__distinct{place or ''}", keys) for place in range(len(values))]
    columns = [NamedExpression(name, value) for name, value in zip(names, values, strict=True)]
    rows = project_node(source, [*columns_as_they_are(keys), *columns], "agg")
    by = f" by {', '.join(keys)}" if keys else ""
    text = f"distinct {', '.join(map(expression_text, values))}{by}"
    pairs = replace(aggregate_node(rows, (*keys, *names), ()), name=text)
    argument: Expression = ColumnRef(names[0])
    for name in names[1:]:
        argument = _where(argument, Call("is_not_null", (ColumnRef(name),)))
    return _groups(
        pairs, keys, [(name, replace(one, arguments=(argument,), where=None, distinct=False)) for name, one in named]
    )


def _different_pairs(source: LogicalNode, keys: tuple[str, ...], one: Aggregated) -> tuple[LogicalNode, Aggregated]:
    """Return the different values of a list, and the list of these: nulls count there, so the filter is a key."""
    value, kept = fresh_name("__distinct", keys), fresh_name("__kept", keys)
    where = make_literal(True) if one.where is None else Call("coalesce", (one.where, make_literal(False)))
    columns = [NamedExpression(value, one.arguments[0]), NamedExpression(kept, where)]
    rows = project_node(source, [*columns_as_they_are(keys), *columns], "agg")
    pairs = replace(
        aggregate_node(rows, (*keys, value, kept), ()), name=f"distinct {expression_text(one.arguments[0])}"
    )
    order = tuple(replace(key, expression=ColumnRef(value)) for key in one.order_by)
    return pairs, replace(one, arguments=(ColumnRef(value),), where=ColumnRef(kept), order_by=order, distinct=False)


def _of_kept(
    source: LogicalNode, keys: tuple[str, ...], where: Expression, calls: Sequence[AggregateCall]
) -> LogicalNode:
    """Return aggregates of the rows for which a condition is true."""
    return aggregate_node(LogicalNode(Filter(where), (source,), source.schema), keys, tuple(calls))


def _in_order(node: LogicalNode, keys: tuple[str, ...], named: Sequence[Named]) -> LogicalNode:
    names = [*keys, *(name for name, _ in named)]
    if node.schema.names == names:
        return node
    return project_node(node, columns_as_they_are(names), "agg")


def _together(parts: Sequence[LogicalNode], keys: tuple[str, ...], names: Sequence[str]) -> LogicalNode:
    """Return the columns of all parts in one row for each group."""
    types = {name: part.schema.field(name).type for name in names for part in parts if name in part.schema.names}
    together = union_node([_padded(part, keys, types) for part in parts]) if len(parts) > 1 else parts[0]
    if not all(map(is_key_type, types.values())):
        return any_values_node(together, keys, list(types))
    return aggregate_node(together, keys, tuple(AggregateCall("max", ColumnRef(name), name) for name in types))


def _padded(part: LogicalNode, keys: tuple[str, ...], types: dict[str, pa.DataType]) -> LogicalNode:
    """Return a part with all columns of the result, null where another part computes them."""
    named = columns_as_they_are(keys)
    for name, data_type in types.items():
        there = name in part.schema.names
        named.append(NamedExpression(name, ColumnRef(name) if there else make_literal(None, data_type)))
    return project_node(part, named, "agg")
