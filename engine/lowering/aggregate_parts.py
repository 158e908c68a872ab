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

from engine.errors import SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.expressions.ordered_pairs import can_pair, head_of
from engine.expressions.text import expression_text
from engine.graph.expression import (
    AggregateCall,
    Aggregated,
    Call,
    ColumnRef,
    Expression,
    NamedExpression,
    OrderedBy,
    Over,
)
from engine.lowering.aggregate_nodes import Part, aggregate_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, fresh_name, project_node
from engine.lowering.sorted_parts import sorted_parts
from engine.lowering.terms import call, case, cast, is_there
from engine.lowering.window_nodes import windowed_filter, windowed_project
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


def _columns(source: LogicalNode, keys: tuple[str, ...], **columns: Expression) -> LogicalNode:
    """Return the keys, and columns under names that no key has."""
    named = [NamedExpression(fresh_name(name, keys), value) for name, value in columns.items()]
    return project_node(source, [*columns_as_they_are(keys), *named], "agg")


def _column(name: str, keys: tuple[str, ...]) -> ColumnRef:
    return ColumnRef(fresh_name(name, keys))


def _kept(one: Aggregated, value: Expression) -> Expression:
    """Return a value, null where the filter is not true."""
    return value if one.where is None else case((one.where, value))


def _counted(source: LogicalNode, keys: tuple[str, ...], value: Expression) -> LogicalNode:
    """Count each value of a group, by (keys, __value); null counts 0 times."""
    name, number = fresh_name(_VALUE, keys), fresh_name("__count", keys)
    rows = _columns(source, keys, __value=value)
    return aggregate_node(rows, (*keys, name), (AggregateCall("count", ColumnRef(name), number),))


def _first_rows(source: LogicalNode, keys: tuple[str, ...], order: Sequence[OrderedBy]) -> LogicalNode:
    """Return the first row of each group; of those that are equal in the order it is any."""
    number = Over("row_number", None, tuple(map(ColumnRef, keys)), tuple(order))
    return windowed_filter(source, call("less_equal", number, 1))


def _mode(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    _check_order(one, source, 0)
    value, number = _column(_VALUE, keys), _column("__count", keys)
    counted = _counted(source, keys, _kept(one, one.arguments[0]))
    pair = paired_extreme(counted, fresh_name("__most", keys), Aggregated("max_by", (value, number)))
    if pair is None:
        order = (OrderedBy(number, descending=True, nulls_last=True), OrderedBy(value, nulls_last=True))
        return [Part(_result(_first_rows(counted, keys, order), keys, name, value))]
    return [Part(_result(aggregate_node(counted, keys, (pair[0],)), keys, name, pair[1]))]


def _histogram(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    _check_order(one, source, 0)
    counted = _counted(source, keys, _kept(one, one.arguments[0]))
    value, number = _column(_VALUE, keys), _column("__count", keys)
    order = (OrderedBy(value),)
    lists = [
        (fresh_name(column, keys), Aggregated("list", (values,), is_there(value), order_by=order))
        for column, values in (("__values", value), ("__counts", number))
    ]
    (part,) = sorted_parts(counted, keys, lists)
    return [Part(_result(part.node, keys, name, call("map_from", *(ColumnRef(column) for column, _ in lists))))]


def _extreme_by(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    _check_order(one, source, 1)
    given, counts = one.arguments[0], is_there(one.arguments[0])
    counts = counts if one.where is None else Call("and", (counts, one.where))
    rows = _columns(source, keys, __value=given, __key=case((counts, one.arguments[1])))
    value, key = _column(_VALUE, keys), _column("__key", keys)
    order = [OrderedBy(key, one.function == "max_by", nulls_last=True)]
    if is_key_type(rows.schema.field(value.name).type):
        order.append(OrderedBy(value, nulls_last=True))
    return [Part(_result(_first_rows(rows, keys, order), keys, name, case((is_there(key), value))))]


def paired_extreme(source: LogicalNode, name: str, one: Aggregated) -> tuple[AggregateCall, Expression] | None:
    """Return a state for min_by or max_by, and the result out of its column; None where types make no pair."""
    value, key = one.arguments
    value_type, key_type = infer_type(value, source.schema), infer_type(key, source.schema)
    if not can_pair(key_type, value_type):
        return None
    pair = Call("ordered_pair", (key, value), {"inverted": one.function == "max_by"})
    result = Call("paired_value", (ColumnRef(name), make_literal(None, value_type)), {"head": head_of(key_type)})
    return AggregateCall("min", _kept(one, pair), name), result


def _result(node: LogicalNode, keys: tuple[str, ...], name: str, value: Expression) -> LogicalNode:
    return project_node(node, [*columns_as_they_are(keys), NamedExpression(name, value)], "agg")


def _check_order(one: Aggregated, source: LogicalNode, index: int) -> None:
    data_type = infer_type(one.arguments[index], source.schema)
    if not is_key_type(data_type):
        raise SchemaError(f"{expression_text(one)}: values of {data_type} have no order: {key_remedy(data_type)}")


def _approx_count_distinct(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    data_type = infer_type(one.arguments[0], source.schema)
    if not is_key_type(data_type):
        raise SchemaError(f"{expression_text(one)}: values of {data_type} cannot be compared: {key_remedy(data_type)}")
    value = _kept(one, one.arguments[0])
    if pa.types.is_decimal(data_type) and data_type.precision > _HASHED_DIGITS:
        value = cast(value, pa.string())
    hashed = _columns(source, keys, __value=value, __hash=call("hash64", value))
    number = case((is_there(_column(_VALUE, keys)), _column("__hash", keys)))
    # the bits behind the register: the first one that is set has the rank, and half a unit stands for none
    bits = call("bit_and", call("shift_right", number, _REGISTER_BITS), (1 << _RANK_BITS) - 1)
    rest = call("add", cast(bits, pa.float64()), 0.5)
    ranks = _columns(
        hashed,
        keys,
        __register=call("bit_and", number, _REGISTERS - 1),
        __rank=call("subtract", float(_RANK_BITS), call("floor", call("log2", rest))),
    )
    register, rank = fresh_name("__register", keys), _column("__rank", keys)
    registers = aggregate_node(ranks, (*keys, register), (AggregateCall("max", rank, rank.name),))
    power = call("power", 2.0, call("negate", rank))
    used, total = _column("__used", keys), _column("__total", keys)
    calls = (AggregateCall("count", rank, used.name), AggregateCall("sum", power, total.name))
    return [Part(_result(aggregate_node(registers, keys, calls), keys, name, _estimate(used, total)))]


def _estimate(used: Expression, total: Expression) -> Expression:
    """Return the estimate of registers that are used, and the sum of 2**-rank of these."""
    empty = cast(call("subtract", _REGISTERS, used), pa.float64())
    logarithm = call("ln", call("add", empty, 1.0))
    beta = call("multiply", empty, _BETA_OF_EMPTY)
    power = logarithm
    for factor in _BETA:
        beta = call("add", beta, call("multiply", power, factor))
        power = call("multiply", power, logarithm)
    alpha = 0.7213 / (1.0 + 1.079 / _REGISTERS)
    there = call("multiply", alpha * _REGISTERS, call("subtract", float(_REGISTERS), empty))
    found = call("divide", there, call("add", call("add", beta, empty), total))
    return case((call("equal", used, 0), 0), otherwise=cast(call("round", found, digits=0), pa.int64()))


def _approx_quantile(source: LogicalNode, keys: tuple[str, ...], name: str, one: Aggregated) -> list[Part]:
    data_type = infer_type(one.arguments[0], source.schema)
    is_number = pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
    if not is_number:
        raise SchemaError(f"{expression_text(one)}: approx_quantile takes numbers, the argument is {data_type}")
    exact = _columns(source, keys, __value=cast(_kept(one, one.arguments[0]), pa.float64(), widens=True))
    value = _column(_VALUE, keys)
    scaled = call("multiply", value, _SPLITTER)
    head = call("subtract", scaled, call("subtract", scaled, value))
    rounded = case((call("less", call("abs", value), _SPLIT_MAX), head), otherwise=value)
    counted = _counted(exact, keys, rounded)
    number, partition = _column("__count", keys), tuple(map(ColumnRef, keys))
    sums = windowed_project(
        counted,
        [
            *columns_as_they_are((*keys, value.name)),
            NamedExpression(fresh_name("__reached", keys), Over("sum", number, partition, (OrderedBy(value),))),
            NamedExpression(fresh_name("__total", keys), Over("sum", number, partition)),
        ],
        "agg",
    )
    share = one.options["q"]
    assert isinstance(share, float), "it is checked"
    reached, total = (cast(_column(column, keys), pa.float64()) for column in ("__reached", "__total"))
    wanted = call("greatest", call("ceil", call("multiply", total, share)), 1.0)
    kept = case((call("greater_equal", reached, wanted), value))
    return [Part(aggregate_node(sums, keys, (AggregateCall("min", kept, name),)))]


PARTS: Final[dict[str, Callable[[LogicalNode, tuple[str, ...], str, Aggregated], list[Part]]]] = {
    "mode": _mode,
    "histogram": _histogram,
    "min_by": _extreme_by,
    "max_by": _extreme_by,
    "approx_count_distinct": _approx_count_distinct,
    "approx_quantile": _approx_quantile,
}
