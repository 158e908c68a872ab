"""Types on their way between Spark and a record data set: what one has and the other has not is widened or refused.

    Spark ─► data set    ``records_schema``: timestamps in UTC with microseconds, times with microseconds
    data set ─► Spark    ``sparks_schema``, by column:

        uint8 uint16 uint32     int16 int32 int64            float16    float32
        uint64                  decimal128(20, 0)            date64     date32
        timestamp, duration     microseconds                 time       microseconds, from Spark 4.1
        large, view, fixed      string, binary, list         dictionary  its values
        decimal256              decimal128 up to 38 digits, else refused

Held by: tests/spark/test_data_source.py
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from engine.errors import DataError, SchemaError
from engine.spark.exportable import check_types

_MOST_DIGITS = 38
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def records_schema(schema: T.StructType) -> pa.Schema:
    """Return the columns of a record data set that has rows of Spark.

    Raises: SchemaError that names the first column of a type that it cannot hold.
    """
    check_types(schema)
    arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)
    return pa.schema([pa.field(field.name, _stored(field.type)) for field in arrow])


def _stored(data_type: pa.DataType) -> pa.DataType:
    if kinds.is_time(data_type):
        return pa.time64("us")
    return _rebuilt(data_type, _stored)


def sparks_arrow_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as Spark takes them from Arrow.

    Raises: SchemaError that names the first column of a type that Spark has not.
    """
    return pa.schema([pa.field(field.name, _sparks(field.name, field.type)) for field in schema])


def sparks_schema(schema: pa.Schema) -> T.StructType:
    """Return the columns as types of Spark; as ``sparks_arrow_schema``."""
    found: T.StructType = from_arrow_schema(sparks_arrow_schema(schema), prefer_timestamp_ntz=True)
    return found


def fitted(rows: pa.RecordBatch | pa.Table, schema: pa.Schema, place: str) -> pa.RecordBatch | pa.Table:
    """Return rows with the types of a schema, column by column in its order.

    Raises: DataError that names place and column of the first value that its type cannot hold.
    """
    columns = []
    for field in schema:
        column = rows.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise DataError(f"{place}, column {field.name!r}: {error}: {field.type} cannot hold it") from None
    return type(rows).from_arrays(columns, schema=schema)


def _sparks(name: str, data_type: pa.DataType) -> pa.DataType:
    if kinds.is_dictionary(data_type):
        return _sparks(name, data_type.value_type)
    if data_type in _WIDER:
        return _WIDER[data_type]
    if kinds.is_large_string(data_type) or kinds.is_string_view(data_type):
        return pa.string()
    if kinds.is_large_binary(data_type) or kinds.is_fixed_size_binary(data_type) or kinds.is_binary_view(data_type):
        return pa.binary()
    if kinds.is_timestamp(data_type):
        return pa.timestamp("us", "UTC" if data_type.tz else None)
    if kinds.is_duration(data_type):
        return pa.duration("us")
    if kinds.is_time(data_type) and hasattr(T, "TimeType"):
        return pa.time64("ns")
    if kinds.is_decimal(data_type) and data_type.precision <= _MOST_DIGITS and data_type.scale >= 0:
        return pa.decimal128(data_type.precision, data_type.scale)
    if kinds.is_time(data_type) or kinds.is_decimal(data_type) or kinds.is_union(data_type):
        raise SchemaError(
            f"column {name!r} has the type {data_type}, which Spark has not; cast it before it is written"
        )
    return _rebuilt(data_type, lambda inner: _sparks(name, inner))


def _rebuilt(data_type: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with what it is made of changed."""
    if kinds.is_map(data_type):
        return pa.map_(change(data_type.key_type), change(data_type.item_type))
    if kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type):
        return pa.list_(change(data_type.value_type))
    if kinds.is_struct(data_type):
        return pa.struct([pa.field(field.name, change(field.type)) for field in data_type])
    return data_type
