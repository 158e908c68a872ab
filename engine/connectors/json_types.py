"""Values as JSON has them, and as columns have them: what is read as what, and how it becomes the other.

    readable(type) -> type                     as which JSON is read: texts for dates, times and timestamps, numbers for
                                               durations, lists of keys and values for maps; wherever they are
    values_of(column, type) -> column          of the type; pa.ArrowInvalid: a value is none

    list<struct<at: timestamp[us]>>   ──readable──►   list<struct<at: string>>   ──read──►   values_of

Held by: tests/integration/test_json_types.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from engine.csv.written_numbers import WHOLE, has_negative_scale
from engine.records.array_fit import fitted
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


def readable(data_type: pa.DataType) -> pa.DataType:
    """Return the type as which JSON is read that becomes a type."""
    types = pa.types
    if types.is_date(data_type) or types.is_time(data_type) or types.is_timestamp(data_type):
        return pa.string()
    if types.is_duration(data_type):
        return pa.int64()
    if types.is_float16(data_type):
        return pa.float64()
    if has_negative_scale(data_type):
        return WHOLE
    if types.is_fixed_size_binary(data_type):
        return pa.binary()
    if types.is_map(data_type) and types.is_string(data_type.key_type):
        return pa.list_(pa.struct([("key", pa.string()), ("value", readable(data_type.item_type))]))
    if types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type):
        return pa.list_(readable(data_type.value_type))
    if types.is_struct(data_type):
        return pa.struct([pa.field(each.name, readable(each.type)) for each in data_type])
    return data_type


def values_of(column: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    """Return a column that was read as ``readable`` says as one of the type."""
    if column.type == data_type:
        return column
    return pa.chunked_array([_of_chunk(chunk, data_type) for chunk in column.chunks], data_type)


def _of_chunk(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    if values.type == data_type:
        return values
    types = pa.types
    if types.is_time(data_type):
        # A time of day is that of a moment, which Arrow reads.
        moments = pc.binary_join_element_wise(scalar_of("1970-01-01"), values, scalar_of(" "))
        return pc.cast(pc.cast(moments, pa.timestamp(data_type.unit)), data_type)
    if types.is_float16(data_type):
        return fitted(values, data_type)
    if types.is_struct(data_type):
        return _with_children(values, data_type, _struct_of)
    if types.is_map(data_type):
        return _with_children(values, data_type, _map_of)
    if types.is_nested(data_type):
        return _with_children(values, data_type, _list_of)
    return pc.cast(values, data_type)


def _with_children(values: pa.Array, data_type: pa.DataType, make: Callable[[Any, pa.DataType, Any], Any]) -> pa.Array:
    """Return nested values made of others, whose buffers begin at their first value."""
    whole = pa.concat_arrays([values, values.slice(0, 0)]) if values.offset else values
    return make(whole, data_type, pc.is_null(whole) if whole.null_count else None)


def _struct_of(values: pa.StructArray, data_type: pa.StructType, mask: Any) -> pa.Array:
    children = [_of_chunk(values.field(each.name), each.type) for each in data_type]
    return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)


def _map_of(values: pa.ListArray, data_type: pa.MapType, mask: Any) -> pa.Array:
    keys, items = values.values.field("key"), _of_chunk(values.values.field("value"), data_type.item_type)
    return pa.MapArray.from_arrays(values.offsets, keys, items, data_type, mask=mask)


def _list_of(values: pa.ListArray, data_type: Any, mask: Any) -> pa.Array:
    elements = _of_chunk(values.values, data_type.value_type)
    if pa.types.is_fixed_size_list(data_type) and pa.types.is_null(data_type.value_type):
        # Arrow's cast knows no fixed-size lists of nulls
        if not pc.all(pc.equal(pc.list_value_length(values), data_type.list_size), min_count=0).as_py():
            raise pa.ArrowInvalid(f"a list that is not {data_type}")
        nulls = pa.nulls(len(values) * data_type.list_size)
        return pa.FixedSizeListArray.from_arrays(nulls, type=data_type, mask=mask)
    lists = pa.ListArray.from_arrays(values.offsets, elements, mask=mask)
    return lists if lists.type == data_type else pc.cast(lists, data_type)
