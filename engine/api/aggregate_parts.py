"""Aggregates that are no state of a group, made of operators that spill: aggregates, windows, filters.

    PARTS[function](source, keys, name, one)      the parts that have the result, under that name

    mode                    values counted by (keys, value) ──► ``max_by`` of value and count, or the first row by these
    min_by, max_by          the least pair of key and value, a state like any other (``paired_extreme``). Of types that
                            make no pair the first row of each group by the key: the sort keeps no other rows
    histogram               the same counts ──► two lists of a group: its values, and how often each is there
    approx_count_distinct   greatest rank by (keys, register) ──► sum of 2**-rank and registers by keys ──► estimate
    approx_quantile         rounded values counted by (keys, value) ──► running sum of counts, and their sum
                            ──► by keys the least value that the share reaches

The registers of an estimate are rows here, where others have a block of bytes for each group: a group of few values has
few of them, and what does not fit in memory spills as any aggregate does.

Source: Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog" (2007); Qin, Kim, Tung, "LogLog-Beta and more" (2016), whose
one formula serves small and large numbers. Masson, Rim, Lee, "DDSketch" (2019), on counts of rounded values. Veltkamp's
splitting rounds without a look at bits.

Held by: tests/integration/test_aggregate_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.api.aggregate_nodes import Part, aggregate_node, columns_as_they_are, fresh_name
from engine.api.aggregates import Aggregate
from engine.api.expression import Expr
from engine.api.expressions import col, lit, when
from engine.api.logical_node import LogicalNode
from engine.api.projections import project_node
from engine.api.row_functions import greatest, hash64, map_from
from engine.api.sorted_parts import sorted_parts
from engine.api.window_nodes import windowed_filter, windowed_project
from engine.api.windows import row_number
from engine.errors import SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.expressions.ordered_pairs import can_pair, head_of
from engine.expressions.schema_bridge import type_to_ipc
from engine.expressions.text import expression_text
from engine.graph.expression import (
    AggregateCall,
    Aggregated,
    Call,
    Cast,
    ColumnRef,
    Expression,
    NamedExpression,
    OrderedBy,
)
from engine.records.key_types import is_key_type, key_remedy

#: bits of the number of registers of an estimate: 2**14
_REGISTER_BITS: Final = 14
_REGISTERS: Final = 1 << _REGISTER_BITS
#: bits of a hash behind those of the register number
_RANK_BITS: Final = 64 - _REGISTER_BITS
#: coefficients of LogLog-Beta with 2**14 registers: of the empty ones, and of the powers of their logarithm
_BETA_OF_EMPTY: Final = -0.370393911
_BETA: Final = (0.070471823, 0.17393686, 0.16339839, -0.09237745, 0.03738027, -0.005384159, 0.00042419)
#: precision above which decimals have no hash of their own
_HASHED_DIGITS: Final = 18
#: factor that rounds a float to 53 - 40 = 13 binary digits
_SPLITTER: Final = float((1 << 40) + 1)
#: limit beyond which numbers are not split: the product with the splitter would be infinite
_SPLIT_MAX: Final = 1e290

_VALUE: Final = "__value"


def _columns(source: LogicalNode, keys: tuple[str, ...], **columns: Expr) -> LogicalNode:
    """Return the keys, and columns under names that no key has."""
    named = [NamedExpression(fresh_name(name, keys), value.expression) for name, value in columns.items()]
    return project_node(source, [*columns_as_they_are(keys), *named], "agg")


def _column(name: str, keys: tuple[str, ...]) -> Expr:
    return col(fresh_name(name, keys))


def _kept(one: Aggregated, value: Expr) -> Expr:
    """Return a value, null where the filter is not true."""
    return value if one.where is None else when(Expr(one.where)).then(value)


def _counted(source: LogicalNode, keys: tuple[str, ...], value: Expr) -> LogicalNode:
    """Count each value of a group, by (keys, __value); null counts 0 times."""
    name, number = fresh_name(_VALUE, keys), fresh_name("__count", keys)
    rows = _columns(source, keys, __value=value)
    return aggregate_node(rows, (*keys, name), (AggregateCall("count", ColumnRef(name), number),))


def _first_rows(
    source: LogicalNode, keys: tuple[str, ...], order: Sequence[Expr], descending: Sequence[bool]
) -> LogicalNode:
    """Return the first row of each group; of those that are equal in the order it is any."""
    number = row_number().over(list(keys), order_by=list(order), descending=list(descending), nulls_last=True)
    return windowed_filter(source, (number <= 1).expression)


def _mode(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    _check_order(one, source, 0)
    value, number = _column(_VALUE, keys), _column("__count", keys)
    counted = _counted(source, keys, _kept(one, Expr(one.arguments[0])))
    most = Aggregated("max_by", (value.expression, number.expression))
    pair = paired_extreme(counted, fresh_name("__most", keys), most)
    if pair is None:
        return [Part(_result(_first_rows(counted, keys, [number, value], [True, False]), keys, name, value))]
    return [Part(_result(aggregate_node(counted, keys, (pair[0],)), keys, name, Expr(pair[1])))]


def _histogram(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    _check_order(one, source, 0)
    counted = _counted(source, keys, _kept(one, Expr(one.arguments[0])))
    value, number = _column(_VALUE, keys), _column("__count", keys)
    order, is_there = (OrderedBy(value.expression),), value.is_not_null()
    lists = [
        (fresh_name(column, keys), Aggregated("list", (values.expression,), is_there.expression, order_by=order))
        for column, values in (("__values", value), ("__counts", number))
    ]
    (part,) = sorted_parts(counted, keys, lists)
    return [Part(_result(part.node, keys, name, map_from(*(col(column) for column, _ in lists))))]


def _extreme_by(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    _check_order(one, source, 1)
    value, key = Expr(one.arguments[0]), Expr(one.arguments[1])
    rows = _columns(source, keys, __value=value, __key=when(_counts(one, value)).then(key))
    value, key = _column(_VALUE, keys), _column("__key", keys)
    order, descending = [key], [one.function == "max_by"]
    if is_key_type(rows.schema.field(fresh_name(_VALUE, keys)).type):
        order, descending = [key, value], [*descending, False]
    first = _first_rows(rows, keys, order, descending)
    return [Part(_result(first, keys, name, when(key.is_not_null()).then(value)))]


def paired_extreme(source: LogicalNode, name: str, one: Aggregated) -> tuple[AggregateCall, Expression] | None:
    """Return a state for min_by or max_by, and the result out of its column; None where types make no pair."""
    value, key = one.arguments
    value_type, key_type = infer_type(value, source.schema), infer_type(key, source.schema)
    if not can_pair(key_type, value_type):
        return None
    pair = Call("ordered_pair", (key, value), {"inverted": one.function == "max_by"})
    kept = _kept(one, Expr(pair)).expression
    result = Call("paired_value", (ColumnRef(name), make_literal(None, value_type)), {"head": head_of(key_type)})
    return AggregateCall("min", kept, name), result


def _counts(one: Aggregated, value: Expr) -> Expr:
    is_there = value.is_not_null()
    return is_there if one.where is None else is_there & Expr(one.where)


def _result(node: LogicalNode, keys: tuple[str, ...], name: str, value: Expr) -> LogicalNode:
    return project_node(node, [*columns_as_they_are(keys), NamedExpression(name, value.expression)], "agg")


def _check_order(one: Aggregated, source: LogicalNode, index: int) -> None:
    data_type = infer_type(one.arguments[index], source.schema)
    if not is_key_type(data_type):
        raise SchemaError(f"{expression_text(one)}: values of {data_type} have no order: {key_remedy(data_type)}")


def _approx_count_distinct(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    data_type = infer_type(one.arguments[0], source.schema)
    if not is_key_type(data_type):
        raise SchemaError(f"{expression_text(one)}: values of {data_type} cannot be compared: {key_remedy(data_type)}")
    value = _kept(one, Expr(one.arguments[0]))
    if pa.types.is_decimal(data_type) and data_type.precision > _HASHED_DIGITS:
        value = value.cast(pa.string())
    hashed = _columns(source, keys, __value=value, __hash=hash64(value))
    number = when(_column(_VALUE, keys).is_not_null()).then(_column("__hash", keys))
    # the bits behind the register: the first one that is set has the rank, and half a unit stands for none
    rest = number.shift_right(_REGISTER_BITS).bit_and((1 << _RANK_BITS) - 1).cast(pa.float64()) + 0.5
    ranks = _columns(
        hashed,
        keys,
        __register=number.bit_and(_REGISTERS - 1),
        __rank=lit(float(_RANK_BITS)) - rest.log2().floor(),
    )
    register, rank_name = fresh_name("__register", keys), fresh_name("__rank", keys)
    registers = aggregate_node(ranks, (*keys, register), (AggregateCall("max", ColumnRef(rank_name), rank_name),))
    power = lit(2.0) ** -col(rank_name)
    used, total = fresh_name("__used", keys), fresh_name("__total", keys)
    sums = aggregate_node(
        registers,
        keys,
        (
            AggregateCall("count", ColumnRef(rank_name), used),
            AggregateCall("sum", power.expression, total),
        ),
    )
    return [Part(_result(sums, keys, name, _estimate(col(used), col(total))))]


def _estimate(used: Expr, total: Expr) -> Expr:
    """Return the estimate of registers that are used, and the sum of 2**-rank of these."""
    empty = (lit(_REGISTERS) - used).cast(pa.float64())
    logarithm = (empty + 1.0).ln()
    beta = empty * _BETA_OF_EMPTY
    power = logarithm
    for factor in _BETA:
        beta = beta + power * factor
        power = power * logarithm
    alpha = 0.7213 / (1.0 + 1.079 / _REGISTERS)
    found = lit(alpha * _REGISTERS) * (lit(float(_REGISTERS)) - empty) / (beta + empty + total)
    return when(used == 0).then(0).otherwise(found.round().cast(pa.int64()))


def _approx_quantile(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    data_type = infer_type(one.arguments[0], source.schema)
    is_number = pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
    if not is_number:
        raise SchemaError(f"{expression_text(one)}: approx_quantile takes numbers, the argument is {data_type}")
    nearest = Cast(_kept(one, Expr(one.arguments[0])).expression, type_to_ipc(pa.float64()), "double", widens=True)
    exact = _columns(source, keys, __value=Expr(nearest))
    value = _column(_VALUE, keys)
    scaled = value * _SPLITTER
    rounded = when(value.abs() < _SPLIT_MAX).then(scaled - (scaled - value)).otherwise(value)
    counted = _counted(exact, keys, rounded)
    number = fresh_name("__count", keys)
    total = Aggregate(Aggregated("sum", (ColumnRef(number),)))
    sums = windowed_project(
        counted,
        [
            *columns_as_they_are((*keys, fresh_name(_VALUE, keys))),
            NamedExpression(fresh_name("__reached", keys), total.over(list(keys), order_by=value).expression),
            NamedExpression(fresh_name("__total", keys), total.over(list(keys)).expression),
        ],
        "agg",
    )
    share = one.options["q"]
    assert isinstance(share, float), "it is checked"
    wanted = greatest((_column("__total", keys).cast(pa.float64()) * share).ceil(), 1.0)
    reached = when(_column("__reached", keys).cast(pa.float64()) >= wanted).then(value)
    return [Part(aggregate_node(sums, keys, (AggregateCall("min", reached.expression, name),)))]


PARTS: Final[dict[str, Callable[[LogicalNode, tuple[str, ...], str, Aggregated], list[Part]]]] = {
    "mode": _mode,
    "histogram": _histogram,
    "min_by": _extreme_by,
    "max_by": _extreme_by,
    "approx_count_distinct": _approx_count_distinct,
    "approx_quantile": _approx_quantile,
}
