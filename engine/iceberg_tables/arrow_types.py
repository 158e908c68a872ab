"""Types of Iceberg as types of Arrow. Ids of fields, at every depth, and initial defaults are metadata of Arrow fields.

    to_arrow(schema of pyiceberg, "read_iceberg") -> pa.Schema      what has no type here is refused by name

    string    string       time          time64[us]        uuid        fixed_size_binary[16]
    binary    binary       timestamp     timestamp[us]     fixed(n)    fixed_size_binary[n]
    date      date32       timestamptz   timestamp[us, UTC]

A task needs nothing of pyiceberg: it finds the columns of a file by these ids (``file_columns``).

Held by: tests/iceberg_tables/test_read_iceberg.py
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from engine.errors import NotYetSupportedError

#: key of a field's id in the metadata of an Arrow field, as Parquet's readers and writers of Arrow have it
FIELD_ID: Final = b"PARQUET:field_id"
#: key of the value that rows have which are older than the column, as JSON of the table's metadata
INITIAL_DEFAULT: Final = b"iceberg:initial-default"
_SIMPLE: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.binary(16),
}


def to_arrow(schema: Any, call: str) -> pa.Schema:
    """Return the Arrow schema of a table's schema. Raises: NotYetSupportedError."""
    return pa.schema([_field(each, each.name, call) for each in schema.fields])


def _field(field: Any, column: str, call: str) -> pa.Field:
    """Return the Arrow field of a field, which is nullable: files may be older than it."""
    from pyiceberg.conversions import to_json

    metadata = {FIELD_ID: str(field.field_id).encode()}
    if getattr(field, "initial_default", None) is not None:
        metadata[INITIAL_DEFAULT] = json.dumps(to_json(field.field_type, field.initial_default)).encode()
    return pa.field(field.name, _type(field.field_type, column, call), metadata=metadata)


def _type(data_type: Any, column: str, call: str) -> pa.DataType:
    from pyiceberg import types

    name = str(data_type)
    if name in _SIMPLE:
        return _SIMPLE[name]
    match data_type:
        case types.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case types.FixedType():
            return pa.binary(len(data_type))
        case types.StructType(fields=fields):
            return pa.struct([_field(each, column, call) for each in fields])
        case types.ListType():
            return pa.list_(_field(data_type.element_field, column, call))
        case types.MapType():
            key = _field(data_type.key_field, column, call).with_nullable(False)
            return pa.map_(key, _field(data_type.value_field, column, call))
    raise NotYetSupportedError(f"{call}: column {column!r} has the type {name}, which")


def field_id(field: pa.Field) -> int | None:
    """Return the id of a field, None where it has none."""
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None else int(found)
