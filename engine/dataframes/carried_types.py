"""Types on their way through Spark: which type of Spark carries the values of ours, exactly and in their order.

    ours                                        carried as
    bool, integers, floats, string, binary,     themselves
    date32, decimal128, timestamp[us]
    uint8 uint16 uint32; uint64                 int16 int32 int64; decimal128(20, 0)
    float16                                     float32
    timestamp[ns], time, duration, date64       int64: their ticks
    other timestamps                            timestamp[us]
    large, view, fixed, dictionary              string, binary, list; values
    decimals of more than 38 digits             decimal128(38): a value that needs more is an error
    null                                        bool
    list, map, struct                           of what their parts are carried as; time32 inside as int32

``is_plain``: Spark's own functions know the type as we do. Equality and order are kept for all of them, so keys, sorts,
joins, minimum and maximum need no more than the carried value.

Held by: tests/dataframes/test_carried_types.py
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from engine.errors import DataError, SchemaError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import array_of
from engine.records.python_values import shown_value

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.null(): pa.bool_(),
}
_PLAIN = frozenset(
    {
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
    }
)
_MOST_DIGITS = 38


def is_plain(data_type: pa.DataType) -> bool:
    """Whether Spark's functions know the type as the engine does."""
    return data_type in _PLAIN or (kinds.is_decimal128(data_type) and data_type.scale >= 0)


def is_text(data_type: pa.DataType) -> bool:
    """Whether values are texts, in whichever layout."""
    return any(is_kind(data_type) for is_kind in (kinds.is_string, kinds.is_large_string, kinds.is_string_view))


def carried_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns c0, c1 ... that carry those of a schema; SchemaError names a column that has none."""
    return pa.schema([pa.field(f"c{index}", _carried(each.name, each.type)) for index, each in enumerate(schema)])


def _carried(name: str, data_type: pa.DataType) -> pa.DataType:
    if is_plain(data_type):
        return data_type
    if data_type in _WIDER:
        return _WIDER[data_type]
    if kinds.is_dictionary(data_type):
        return _carried(name, data_type.value_type)
    if kinds.is_large_string(data_type) or kinds.is_string_view(data_type):
        return pa.string()
    if kinds.is_large_binary(data_type) or kinds.is_fixed_size_binary(data_type) or kinds.is_binary_view(data_type):
        return pa.binary()
    if kinds.is_timestamp(data_type) and data_type.unit != "ns":
        return pa.timestamp("us", "UTC" if data_type.tz else None)
    if kinds.is_temporal(data_type) and not kinds.is_interval(data_type):
        return pa.int64()
    if kinds.is_decimal(data_type) and 0 <= data_type.scale <= _MOST_DIGITS:
        return pa.decimal128(min(_MOST_DIGITS, data_type.precision), data_type.scale)
    if kinds.is_map(data_type):
        return pa.map_(_part(name, data_type.key_type), _part(name, data_type.item_type))
    if kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type):
        return pa.list_(_part(name, data_type.value_type))
    if kinds.is_struct(data_type) and data_type.num_fields:
        return pa.struct([pa.field(field.name, _part(name, field.type)) for field in data_type])
    raise SchemaError(
        f"column {name!r} has the type {data_type}, which Spark cannot carry; cast or drop it, or run the job on the "
        "cluster (-t cluster)"
    )


def _part(name: str, data_type: pa.DataType) -> pa.DataType:
    """Return the type that carries a part of a nested type; Arrow casts it back."""
    # Arrow casts the seconds and milliseconds of a day to no other integer than one of 32 bits.
    return pa.int32() if kinds.is_time32(data_type) else _carried(name, data_type)


def to_carried(batch: pa.RecordBatch, carried: pa.Schema) -> pa.RecordBatch:
    """Return rows as Spark takes them; DataError names a column with a value that it cannot hold."""
    columns = [
        _carried_column(name, column, field.type)
        for name, column, field in zip(batch.schema.names, batch.columns, carried, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=carried)


def _carried_column(name: str, column: pa.Array, data_type: pa.DataType) -> pa.Array:
    try:
        return _cast(column, data_type)
    except pa.ArrowInvalid:
        rows = (pc.take(column, array_of([row])) for row in range(len(column)))
        unfit = next(row for row in rows if not _can_be(row, data_type))
        raise DataError(
            f"column {name!r}: {shown_value(unfit[0])} of type {column.type} has more digits than Spark can hold, "
            f"which are {_MOST_DIGITS}; cast it, to float64 for one, or run the job on the cluster (-t cluster)"
        ) from None


def _can_be(value: pa.Array, data_type: pa.DataType) -> bool:
    try:
        _cast(value, data_type)
    except pa.ArrowInvalid:
        return False
    return True


def from_carried(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of Spark as those of a schema."""
    columns = [_cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))


def _cast(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if column.type == data_type:
        return column
    if data_type == pa.null():
        return pa.nulls(len(column))
    if kinds.is_nested(column.type) and _has_null_inside(data_type):
        return _cast_parts(column, data_type)
    if kinds.is_time32(column.type) and data_type == pa.int64():
        return column.cast(pa.int32()).cast(pa.int64())
    if kinds.is_time32(data_type) and column.type == pa.int64():
        return column.cast(pa.int32()).cast(data_type)
    return column.cast(data_type)


def _has_null_inside(data_type: pa.DataType) -> bool:
    parts = [data_type.field(place).type for place in range(data_type.num_fields)]
    return any(part == pa.null() or _has_null_inside(part) for part in parts)


def _cast_parts(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return nested values with their parts cast, each by itself: Arrow casts nothing to null."""
    if kinds.is_struct(data_type):
        parts = [_cast(part, field.type) for part, field in zip(column.flatten(), data_type, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(data_type), mask=column.is_null())
    if kinds.is_map(data_type):
        pairs = [_cast(column.keys, data_type.key_type), _cast(column.items, data_type.item_type)]
        parts = [pa.StructArray.from_arrays(pairs, fields=[data_type.key_field, data_type.item_field])]
        return pa.Array.from_buffers(data_type, len(column), column.buffers()[:2], offset=column.offset, children=parts)
    as_list = pa.list_(data_type.value_type)
    parts = [_cast(column.values, data_type.value_type)]
    made = pa.Array.from_buffers(as_list, len(column), column.buffers()[:2], offset=column.offset, children=parts)
    return made if data_type == as_list else made.cast(data_type)
