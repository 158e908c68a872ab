"""Types of Arrow as types of Iceberg, for a table that is made from rows.

    iceberg_schema(pa.Schema, "write_iceberg") -> Schema of pyiceberg, whose ids are to be assigned

    int8 … int32, uint8, uint16    int        date32, date64    date          string, binary, bool, float, double
    int64, uint32                  long       time              time          list, struct, map
    decimal(p, s) to 38 digits     decimal    timestamp         timestamp     with a zone: timestamptz

Nanoseconds are refused in tables of the second version: the program casts them to microseconds where these are enough.

Held by: tests/iceberg_tables/test_write_iceberg.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from engine.errors import SchemaError


def iceberg_schema(schema: pa.Schema, call: str) -> Any:
    """Return the schema of a table for rows. Raises: SchemaError."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    numbers = iter(range(1, 1 << 30))
    fields = []
    for field in schema:
        try:
            fields.append(NestedField(next(numbers), field.name, _type(field.type, numbers), required=False))
        except TypeError as error:
            raise SchemaError(f"{call}: column {field.name!r} is {error}") from None
    return Schema(*fields)


def _type(data_type: pa.DataType, numbers: Iterator[int]) -> Any:
    """Return a type; a TypeError says why there is none."""
    from pyiceberg import types as iceberg

    types = pa.types
    if types.is_boolean(data_type):
        return iceberg.BooleanType()
    if types.is_integer(data_type):
        is_unsigned = types.is_unsigned_integer(data_type)
        if is_unsigned and data_type.bit_width == 64:
            raise TypeError("uint64, which Iceberg has not; cast it to int64 or decimal(20, 0)")
        is_int = data_type.bit_width < 32 or (data_type.bit_width == 32 and not is_unsigned)
        return iceberg.IntegerType() if is_int else iceberg.LongType()
    if types.is_floating(data_type):
        return iceberg.DoubleType() if data_type.bit_width == 64 else iceberg.FloatType()
    if types.is_decimal(data_type):
        if data_type.precision > 38:
            raise TypeError(f"{data_type}, and Iceberg's decimals have at most 38 digits; cast it")
        return iceberg.DecimalType(data_type.precision, data_type.scale)
    if types.is_date(data_type):
        return iceberg.DateType()
    if types.is_time(data_type) and data_type.unit != "ns":
        return iceberg.TimeType()
    if types.is_timestamp(data_type) and data_type.unit != "ns":
        return iceberg.TimestampType() if data_type.tz is None else iceberg.TimestamptzType()
    if types.is_string(data_type) or types.is_large_string(data_type):
        return iceberg.StringType()
    if types.is_fixed_size_binary(data_type):
        return iceberg.FixedType(data_type.byte_width)
    if types.is_binary(data_type) or types.is_large_binary(data_type):
        return iceberg.BinaryType()
    return _nested(data_type, numbers)


def _nested(data_type: pa.DataType, numbers: Iterator[int]) -> Any:
    from pyiceberg import types as iceberg

    if pa.types.is_struct(data_type):
        fields = [
            iceberg.NestedField(next(numbers), each.name, _type(each.type, numbers), required=False)
            for each in data_type
        ]
        return iceberg.StructType(*fields)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        number = next(numbers)
        return iceberg.ListType(number, _type(data_type.value_type, numbers), element_required=False)
    if pa.types.is_map(data_type):
        key, value = next(numbers), next(numbers)
        key_type, value_type = _type(data_type.key_type, numbers), _type(data_type.item_type, numbers)
        return iceberg.MapType(key, key_type, value, value_type, value_required=False)
    advice = "; cast it to timestamp[us]" if pa.types.is_timestamp(data_type) else "; cast or drop it"
    raise TypeError(f"{data_type}, which Iceberg has not{advice}")
