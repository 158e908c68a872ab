"""The tables of aggregate functions."""

import pyarrow as pa
import pytest

from engine.accumulators.aggregate_functions import (
    argument_column,
    call_text,
    result_schema,
    result_type,
    state_column,
    state_schema,
    state_specs,
)
from engine.errors import NotYetSupportedError, SchemaError
from engine.graph.expression import AggregateCall, Call, ColumnRef

PAIR = pa.struct([("x", pa.float64()), ("y", pa.float64())])


def call(function, name="out"):
    return AggregateCall(function, None if function == "count_all" else ColumnRef("x"), name)


@pytest.mark.parametrize(
    ("function", "argument", "states", "result"),
    [
        ("count_all", None, [pa.int64()], pa.int64()),
        ("count", pa.list_(pa.int8()), [pa.int64()], pa.int64()),
        ("sum", pa.int8(), [pa.int64()], pa.int64()),
        ("sum", pa.uint64(), [pa.int64()], pa.int64()),
        ("sum", pa.float32(), [pa.float64()], pa.float64()),
        ("sum", pa.decimal128(9, 3), [pa.decimal128(38, 3)], pa.decimal128(38, 3)),
        ("avg", pa.int32(), [pa.decimal128(38, 0), pa.int64()], pa.float64()),
        ("avg", pa.float64(), [pa.float64(), pa.int64()], pa.float64()),
        ("avg", pa.decimal128(9, 3), [pa.decimal128(38, 3), pa.int64()], pa.float64()),
        ("sum", pa.decimal256(60, 2), [pa.decimal256(76, 2)], pa.decimal256(76, 2)),
        ("avg", pa.decimal256(60, 2), [pa.decimal256(76, 2), pa.int64()], pa.float64()),
        ("min", pa.string(), [pa.string()], pa.string()),
        ("max", pa.timestamp("us", "UTC"), [pa.timestamp("us", "UTC")], pa.timestamp("us", "UTC")),
        ("max", pa.binary(7), [pa.binary(7)], pa.binary(7)),
        ("first", pa.string(), [pa.string()], pa.string()),
        ("last", pa.decimal256(60, 2), [pa.decimal256(60, 2)], pa.decimal256(60, 2)),
        ("stddev", pa.int8(), [pa.binary(24)], pa.float64()),
        ("variance", pa.decimal128(9, 3), [pa.binary(24)], pa.float64()),
        ("kurtosis", pa.int8(), [pa.binary(40)], pa.float64()),
        ("corr", PAIR, [pa.binary(48)], pa.float64()),
        ("product", pa.decimal128(9, 3), [pa.float64()], pa.float64()),
        ("bit_and", pa.uint16(), [pa.uint16()], pa.uint16()),
    ],
)
def test_states_and_results_have_their_types(function, argument, states, result):
    assert [spec.type for spec in state_specs(call(function), argument)] == states
    assert result_type(call(function), argument) == result


@pytest.mark.parametrize("function", ["first", "last"])
def test_nested_values_in_order_are_not_built(function):
    with pytest.raises(NotYetSupportedError, match=rf"{function}\(x\) of list"):
        state_specs(call(function), pa.list_(pa.int64()))


@pytest.mark.parametrize(
    ("function", "argument", "text"),
    [
        ("sum", pa.string(), r"sum takes numbers, the argument is string: .*to_number"),
        ("avg", pa.bool_(), "avg takes numbers, the argument is bool: count_if counts"),
        ("stddev", pa.string(), "stddev takes numbers"),
        ("variance", pa.date32(), "variance takes numbers"),
        ("sum", pa.duration("s"), "sum takes numbers"),
        ("min", pa.list_(pa.int64()), "no order"),
        ("max", pa.struct([("a", pa.int64())]), "no order"),
        ("corr", pa.float64(), "corr takes two float64"),
        ("product", pa.string(), "product takes numbers"),
        ("bit_or", pa.float64(), "bit_or takes integers"),
        ("median", pa.int64(), "no aggregate function 'median'"),
        ("sum", None, "needs an argument"),
        ("count_distinct", pa.int64(), "count the rows of a distinct"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(function, argument, text):
    with pytest.raises(SchemaError, match=text):
        state_specs(call(function), argument)


def test_wide_decimals_stay_wide():
    assert state_specs(call("min"), pa.decimal256(60, 2))[0].type == pa.decimal256(60, 2)


def test_schemas_name_keys_states_and_results():
    calls = (call("avg", "mean"), call("count_all", "rows"))
    keys = [pa.field("k", pa.string())]
    assert state_schema(keys, calls, [pa.int64(), None]).names == ["k", "__state0_0", "__state0_1", "__state1_0"]
    assert result_schema(keys, calls, [pa.int64(), None]) == pa.schema(
        [("k", pa.string()), ("mean", pa.float64()), ("rows", pa.int64())]
    )
    assert (argument_column(3), state_column(1, 0)) == ("__arg3", "__state1_0")


def test_a_call_is_named_as_it_was_written():
    assert call_text(call("sum")) == "sum(x)"
    assert call_text(AggregateCall("sum", Call("add", (ColumnRef("a"), ColumnRef("b"))), "total")) == "sum(total)"


def test_dictionaries_become_their_values():
    coded = pa.dictionary(pa.int8(), pa.string())
    schema = result_schema([pa.field("k", coded, nullable=False)], (call("min"), call("count")), [coded, coded])
    assert schema.types == [pa.string(), pa.string(), pa.int64()]
    assert not schema.field("k").nullable
