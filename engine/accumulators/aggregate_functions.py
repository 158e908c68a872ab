"""Aggregate functions as tables: what states each one keeps, of which types, and what its result is.

    function    argument                states                                  result
    count_all   none                    count int64                             int64
    count       any type                count int64                             int64
    sum         integers                sum int64                               int64, overflow is an error
                floats                  sum float64                             float64
                decimal128(p, s)        sum decimal128(38, s)                   decimal128(38, s)
                decimal256(p, s)        sum decimal256(76, s)                   decimal256(76, s)
    avg         integers                sum decimal128(38, 0), count int64      float64
                floats                  sum float64, count int64                float64
                decimal128(p, s)        sum decimal128(38, s), count int64      float64, rounded once
                decimal256(p, s)        sum decimal256(76, s), count int64      float64, rounded once
    min, max    every key type T        value T                                 T
    first, last every key type T        value T                                 T
    stddev,     numbers                 moments: 24 bytes                       float64
    variance
    skewness,   numbers                 higher moments: 40 bytes                float64
    kurtosis
    covar_samp, struct of two float64   comoments: 48 bytes                     float64
    covar_pop,
    corr
    product     numbers                 product float64                         float64
    bit_and,    every integer type T    value T                                 T
    bit_or,
    bit_xor

    input of partial and single   key columns, then __arg{i} for every call i that has an argument
    output of partial,            key columns, then __state{i}_{k} for every call i and its k-th state
    input of final
    output of final and single    key columns, then the calls by their names

Without input (no rows, or only nulls) sum, avg, min and max are null, counts are 0. The sum of integers under avg is
exact: int64 values add up in 128 bits. An average of integers or decimals is the float64 nearest to the exact one: the
quotient of the whole sum is rounded, once. stddev and variance are those of a sample (n - 1) and null below two
values; they compute in float64, decimals and integers are rounded to it first. What moments are: ``moment_kernels``. A
pair with a null does not count.

first and last take the value of the first and last row that arrives, null if that is null, in the order of the input
of the subtask; of several subtasks that of whichever arrives first, or last. One subtask over ordered input (after a
sort) always gives the same. NaN is the largest number for min and max, strings compare by bytes.

Dictionary, run-end and view types are taken as their plain types; so are the keys in every schema made here.
Nothing here touches data. ``StateSpec.operation`` names the kernel: sum, count (non-nulls), count_rows, min, max,
first, last, product, bit_and, bit_or, bit_xor, moments, higher_moments, comoments.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
from pyarrow import types

from engine.errors import NotYetSupportedError, SchemaError
from engine.graph.expression import AggregateCall, ColumnRef
from engine.records.key_types import is_key_type, key_remedy
from engine.records.plain_types import plain_type, span_remedy

#: functions whose states are moments: which, and their bytes
_MOMENTS = {
    "stddev": ("moments", 24),
    "variance": ("moments", 24),
    "skewness": ("higher_moments", 40),
    "kurtosis": ("higher_moments", 40),
    "covar_samp": ("comoments", 48),
    "covar_pop": ("comoments", 48),
    "corr": ("comoments", 48),
}
OF_MOMENTS = frozenset(operation for operation, _ in _MOMENTS.values())
_OF_BITS = ("bit_and", "bit_or", "bit_xor")
FUNCTIONS = ("count", "sum", "avg", "min", "max", "first", "last", "product", *_OF_BITS, *_MOMENTS)

DECIMAL_DIGITS_MAX = 38
WIDE_DECIMAL_DIGITS_MAX = 76
#: the most digits behind the point, or zeros before it, for which means.pxd has room
MEAN_SCALE_MAX = 150


class StateSpec(msgspec.Struct, frozen=True):
    """One state column of an aggregate: how rows change it, and the type in which it travels."""

    operation: str
    type: pa.DataType


def argument_column(index: int) -> str:
    """Return the name of the input column with the argument of call `index`."""
    return f"__arg{index}"


def state_column(call_index: int, state_index: int) -> str:
    """Return the name of a call's state column in partial output."""
    return f"__state{call_index}_{state_index}"


def call_text(call: AggregateCall) -> str:
    """Return a call as a person wrote it, as far as it is known: sum(price), or sum(total) by its output name."""
    argument = call.argument.name if isinstance(call.argument, ColumnRef) else call.name
    return f"{call.function}({argument})"


def _is_key_type(data_type: pa.DataType) -> bool:
    """Whether values of the type have an order that rows and normalized keys know."""
    return is_key_type(data_type) and not types.is_null(data_type)


def sum_type(data_type: pa.DataType, integer_type: pa.DataType | None = None) -> pa.DataType | None:
    """Return the type of a sum, that of integers int64 or another; None: values of the type are not added up."""
    if types.is_integer(data_type):
        return integer_type or pa.int64()
    if types.is_floating(data_type):
        return pa.float64()
    if types.is_decimal256(data_type):
        return pa.decimal256(WIDE_DECIMAL_DIGITS_MAX, data_type.scale)
    return pa.decimal128(DECIMAL_DIGITS_MAX, data_type.scale) if types.is_decimal(data_type) else None


def _sum_state(call: AggregateCall, data_type: pa.DataType, integer_type: pa.DataType | None = None) -> StateSpec:
    found = sum_type(data_type, integer_type)
    if found is None:
        raise SchemaError(f"{call_text(call)}: {call.function} {takes_numbers(data_type)}")
    if types.is_decimal(data_type) and not (types.is_decimal128(data_type) or types.is_decimal256(data_type)):
        raise NotYetSupportedError(f"{call.function} of {data_type} ({call.name})")
    return StateSpec("sum", found)


def takes_numbers(data_type: pa.DataType) -> str:
    """Return the error text about an argument that is not a number, with advice where one is likely."""
    remedy = ": count_if counts where it is true, cast(pa.int64()) makes 1 and 0 of it"
    if types.is_string(data_type) or types.is_large_string(data_type):
        remedy = ": cast it, or make numbers of texts with .str.to_number()"
    elif not types.is_boolean(data_type):
        remedy = (span := span_remedy(data_type)) and f": {span}"
    return f"takes numbers, the argument is {data_type}{remedy}"


def _state_of_numbers(call: AggregateCall, data_type: pa.DataType) -> StateSpec:
    function = call.function
    operation, width = _MOMENTS.get(function, ("product", 0))
    is_pair = types.is_struct(data_type) and [field.type for field in data_type] == [pa.float64()] * 2
    is_number = types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type)
    if not (is_pair if operation == "comoments" else is_number):
        what = (
            f"takes two float64, the argument is {data_type}" if operation == "comoments" else takes_numbers(data_type)
        )
        raise SchemaError(f"{call_text(call)}: {function} {what}")
    return StateSpec(operation, pa.binary(width) if width else pa.float64())


def state_specs(call: AggregateCall, argument_type: pa.DataType | None) -> tuple[StateSpec, ...]:
    """Return the states of a call over an argument of that type (None: it has no argument).

    Raises:
        NotYetSupportedError: the function is not built for the type.
        SchemaError: no such function, or it does not take the type.
    """
    function = call.function
    argument_type = None if argument_type is None else plain_type(argument_type)
    if function == "count_distinct":
        raise SchemaError(f"count_distinct() ({call.name}) is no state of a group: count the rows of a distinct")
    if function == "count_all":
        return (StateSpec("count_rows", pa.int64()),)
    if function not in FUNCTIONS:
        raise SchemaError(f"no aggregate function {function!r} ({call.name}); there are: {', '.join(FUNCTIONS)}")
    if argument_type is None:
        raise SchemaError(f"{function}() ({call.name}) needs an argument")
    if function == "count":
        return (StateSpec("count", pa.int64()),)
    if function == "sum":
        return (_sum_state(call, argument_type),)
    if function == "avg":
        exact = pa.decimal128(DECIMAL_DIGITS_MAX, 0)
        if types.is_decimal(argument_type) and abs(argument_type.scale) > MEAN_SCALE_MAX:
            raise NotYetSupportedError(f"{call_text(call)} of {argument_type}: cast it to fewer digits first")
        return (_sum_state(call, argument_type, exact), StateSpec("count", pa.int64()))
    if function in _MOMENTS or function == "product":
        return (_state_of_numbers(call, argument_type),)
    if function in _OF_BITS:
        if not types.is_integer(argument_type):
            raise SchemaError(f"{call_text(call)}: {function} takes integers, the argument is {argument_type}")
        return (StateSpec(function, argument_type),)
    if function in ("first", "last") and not _is_key_type(argument_type):
        other = "max_by" if function == "last" else "min_by"
        raise NotYetSupportedError(f"{call_text(call)} of {argument_type}; {other}(value, order) takes it")
    if not _is_key_type(argument_type):
        raise SchemaError(f"{call_text(call)}: values of {argument_type} have no order: {key_remedy(argument_type)}")
    return (StateSpec(function, argument_type),)


def result_type(call: AggregateCall, argument_type: pa.DataType | None) -> pa.DataType:
    """Return the type of a call's result.

    Raises:
        as state_specs.
    """
    specs = state_specs(call, argument_type)
    if call.function == "avg" or specs[0].operation in OF_MOMENTS:
        return pa.float64()
    return specs[0].type


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def state_schema(
    key_fields: Sequence[pa.Field], calls: Sequence[AggregateCall], argument_types: Sequence[pa.DataType | None]
) -> pa.Schema:
    """Return the schema between the two phases: key columns, then each call's state columns."""
    fields = [_plain_field(field) for field in key_fields]
    for index, (call, argument_type) in enumerate(zip(calls, argument_types, strict=True)):
        for state_index, spec in enumerate(state_specs(call, argument_type)):
            fields.append(pa.field(state_column(index, state_index), spec.type))
    return pa.schema(fields)


def result_schema(
    key_fields: Sequence[pa.Field], calls: Sequence[AggregateCall], argument_types: Sequence[pa.DataType | None]
) -> pa.Schema:
    """Return the schema of the result: key columns, then the calls by their names."""
    pairs = zip(calls, argument_types, strict=True)
    keys = [_plain_field(field) for field in key_fields]
    return pa.schema([*keys, *(pa.field(call.name, result_type(call, argument)) for call, argument in pairs)])


def specs_of_states(call: AggregateCall, call_index: int, schema: pa.Schema) -> tuple[StateSpec, ...]:
    """Return the states of a call as the input of a final phase carries them.

    Raises:
        SchemaError: a state column is missing.
    """
    operations = {
        "count_all": ("count_rows",),
        "count": ("count",),
        "sum": ("sum",),
        "avg": ("sum", "count"),
        "min": ("min",),
        "max": ("max",),
        "first": ("first",),
        "last": ("last",),
        "product": ("product",),
        **{function: (function,) for function in _OF_BITS},
        **{function: (operation,) for function, (operation, _) in _MOMENTS.items()},
    }
    if call.function not in operations:
        state_specs(call, None)
    specs = []
    for state_index, operation in enumerate(operations[call.function]):
        name = state_column(call_index, state_index)
        if schema.get_field_index(name) < 0:
            raise SchemaError(f"the input of a final aggregate has no column {name} for {call_text(call)}")
        specs.append(StateSpec(operation, schema.field(name).type))
    return tuple(specs)
