"""Window functions as a table: which arguments they take, what type their result has, and the form kernels read.

    function                                       argument             result
    row_number rank dense_rank ntile               none                 int64
    percent_rank cume_dist                         none                 float64
    running_product ewm_mean                       float64              float64
    lag lead first_value last_value nth_value      any type T           T
    count_all                                      none                 int64
    count                                          any type             int64
    sum    integers                                                     int64, overflow is an error
           floats                                                       float64
           decimal(p, s) up to 38 digits                                decimal128(38, s)
    avg stddev variance                            numbers              float64
    min max                                        every key type T     T
    quantile                                       numbers, times       float64, times as they are
    list                                           any type T           list of T

    kernel form    bool, integers, dates, times, durations: int64     floats: float64
                   uint64, decimals: decimal128                       text and bytes: with 64-bit offsets

Aggregates are those of group_by; ``first`` and ``last`` are first_value and last_value.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import types

from engine.accumulators.aggregate_functions import sum_type, takes_numbers
from engine.errors import DataError, NotYetSupportedError, SchemaError
from engine.graph.window import FRAME_VALUE_FUNCTIONS, RANKING_FUNCTIONS, RUNNING_FUNCTIONS, SHIFT_FUNCTIONS
from engine.records.arrow_functions import pc
from engine.records.key_types import key_remedy
from engine.records.plain_types import plain_type
from engine.window.quantiles import quantile_type

#: aggregates that windows have, beside count_all
AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max", "stddev", "variance"})
#: aggregates of all values of a frame
OF_ALL_VALUES: Final = frozenset({"quantile", "list"})
_FLOAT_RANKINGS: Final = frozenset({"percent_rank", "cume_dist"})
_UINT64_FORM: Final = pa.decimal128(20, 0)


def result_type(function: str, argument_type: pa.DataType | None) -> pa.DataType:
    """Return the type of a function's result.

    Raises: SchemaError when the function does not take the type; NotYetSupportedError when it is not implemented.
    """
    if function in RANKING_FUNCTIONS:
        return pa.float64() if function in _FLOAT_RANKINGS else pa.int64()
    if function in ("count", "count_all"):
        return pa.int64()
    assert argument_type is not None, f"{function} has an argument"
    data_type = plain_type(argument_type)
    if function in SHIFT_FUNCTIONS or function in FRAME_VALUE_FUNCTIONS:
        return data_type
    if function in RUNNING_FUNCTIONS:
        return pa.float64()
    if function in OF_ALL_VALUES:
        return pa.list_(data_type) if function == "list" else quantile_type(data_type)
    if function not in AGGREGATES:
        raise NotYetSupportedError(f"{function} over a window")
    if types.is_decimal256(data_type):
        raise NotYetSupportedError(f"{function} of {data_type} over a window")
    if function in ("min", "max"):
        if kernel_type(data_type) is None:
            raise SchemaError(f"{function}: values of {data_type} have no order: {key_remedy(data_type)}")
        return data_type
    total = sum_type(data_type)
    if total is None:
        raise SchemaError(f"{function} {takes_numbers(data_type)}")
    return total if function == "sum" else pa.float64()


def kernel_type(data_type: pa.DataType) -> pa.DataType | None:
    """Return the form in which kernels read values of a plain type; None: they do not."""
    if types.is_uint64(data_type):
        return _UINT64_FORM
    if types.is_boolean(data_type) or types.is_integer(data_type) or types.is_temporal(data_type):
        return None if types.is_interval(data_type) else pa.int64()
    if types.is_floating(data_type):
        return pa.float64()
    if types.is_decimal256(data_type):
        return None
    if types.is_decimal(data_type):
        return pa.decimal128(38, data_type.scale)
    if types.is_string(data_type) or types.is_large_string(data_type):
        return pa.large_string()
    if types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_fixed_size_binary(data_type):
        return pa.large_binary()
    return None


def to_kernel(array: pa.Array, form: pa.DataType) -> pa.Array:
    """Return values in the form that kernels read."""
    data_type = array.type
    if data_type == form:
        return array
    if types.is_temporal(data_type):
        width = data_type.bit_width
        return pc.cast(array.view(pa.int32() if width == 32 else pa.int64()), form)
    if types.is_decimal128(data_type):
        return array  # the same integers, whatever their precision
    return pc.cast(array, form)


def from_kernel(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return results in their type."""
    if array.type == data_type:
        return array
    if types.is_temporal(data_type):
        return pc.cast(array, pa.int32() if data_type.bit_width == 32 else pa.int64()).view(data_type)
    if types.is_fixed_size_binary(data_type) and not types.is_decimal(data_type):
        return pc.cast(pc.cast(array, pa.binary()), data_type)
    try:
        return pc.cast(array, data_type)
    except pa.ArrowInvalid:
        raise DataError(
            f"a sum over a window is beyond the range of {data_type}; cast the values to a decimal"
        ) from None
