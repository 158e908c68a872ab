"""Types of Delta as types of Arrow. What files call a column, at every depth, is metadata of Arrow fields.

    to_arrow(text of a Delta schema, "read_delta") -> pa.Schema      what has no type here is refused by name

    byte short integer long     int8 int16 int32 int64        date             date32
    float double                float32 float64               timestamp        timestamp[us, UTC]
    string binary boolean       string binary bool            timestamp_ntz    timestamp[us]
    decimal(p,s)                decimal128(p, s)              array map struct list map struct

A task needs nothing of the library: it finds the columns of a file by these names, or ids (``file_columns``).

Source: the Delta transaction log protocol, "Schema Serialization Format" and "Column Mapping".
Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pyarrow as pa

from engine.errors import NotYetSupportedError, SchemaError

#: key of a column's name in files, in the metadata of an Arrow field
PHYSICAL_NAME: Final = b"delta:physical-name"
#: key of its id in files, as Parquet's readers of Arrow have it
FIELD_ID: Final = b"PARQUET:field_id"
_SIMPLE: Final = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)\Z")


def to_arrow(text: str, call: str) -> pa.Schema:
    """Return the Arrow schema of a table's schema. Raises: NotYetSupportedError."""
    return pa.schema([_field(each, each["name"], call) for each in json.loads(text)["fields"]])


def _field(field: dict[str, Any], column: str, call: str) -> pa.Field:
    """Return a nullable Arrow field: files may be older than it."""
    known, metadata = field.get("metadata") or {}, {}
    if "delta.columnMapping.physicalName" in known:
        metadata[PHYSICAL_NAME] = str(known["delta.columnMapping.physicalName"]).encode()
    if "delta.columnMapping.id" in known:
        metadata[FIELD_ID] = str(int(known["delta.columnMapping.id"])).encode()
    return pa.field(field["name"], _type(field["type"], column, call), metadata=metadata or None)


def _type(found: Any, column: str, call: str) -> pa.DataType:
    if isinstance(found, str):
        decimal = _DECIMAL.match(found)
        if decimal is not None:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        if found in _SIMPLE:
            return _SIMPLE[found]
    elif found["type"] == "struct":
        return pa.struct([_field(each, column, call) for each in found["fields"]])
    elif found["type"] == "array":
        return pa.list_(_type(found["elementType"], column, call))
    elif found["type"] == "map":
        return pa.map_(_type(found["keyType"], column, call), _type(found["valueType"], column, call))
    name = found if isinstance(found, str) else found["type"]
    raise NotYetSupportedError(f"{call}: column {column!r} has the type {name}, which")


def physical_name(field: pa.Field) -> str:
    """Return the name that files have for a column."""
    found: bytes = (field.metadata or {}).get(PHYSICAL_NAME) or field.name.encode()
    return found.decode()


def field_id(field: pa.Field) -> int | None:
    """Return the id of a field, None where it has none."""
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None else int(found)


#: types of Arrow that are written as another one
_STORED: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}
_NAMES: Final = {data_type: name for name, data_type in _SIMPLE.items()}


def stored_schema(schema: pa.Schema, call: str) -> pa.Schema:
    """Return the types that rows have in a table. Raises: SchemaError for a type that Delta has not."""
    return pa.schema([pa.field(each.name, _stored(each.type, each, call)) for each in schema])


def _stored(data_type: pa.DataType, column: pa.Field, call: str) -> pa.DataType:
    if data_type in _STORED:
        return _STORED[data_type]
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us") if data_type.tz is None else pa.timestamp("us", "UTC")
    if pa.types.is_decimal(data_type) and data_type.precision <= 38 and data_type.scale >= 0:
        return pa.decimal128(data_type.precision, data_type.scale)
    if pa.types.is_struct(data_type):
        fields = [data_type.field(index) for index in range(data_type.num_fields)]
        return pa.struct([pa.field(each.name, _stored(each.type, column, call)) for each in fields])
    if pa.types.is_map(data_type):
        return pa.map_(_stored(data_type.key_type, column, call), _stored(data_type.item_type, column, call))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.list_(_stored(data_type.value_type, column, call))
    if data_type in _NAMES:
        return data_type
    raise SchemaError(f"{call}: column {column.name!r} is {column.type}, which Delta has not; cast it or leave it out")


def to_delta(schema: pa.Schema) -> dict[str, Any]:
    """Return the schema of Delta, as its JSON, of types that ``stored_schema`` has returned."""
    fields = [{"name": each.name, "type": _name(each.type), "nullable": True, "metadata": {}} for each in schema]
    return {"type": "struct", "fields": fields}


def _name(data_type: pa.DataType) -> Any:
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_struct(data_type):
        return to_delta(pa.schema([data_type.field(index) for index in range(data_type.num_fields)]))
    if pa.types.is_map(data_type):
        key, value = _name(data_type.key_type), _name(data_type.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_list(data_type):
        return {"type": "array", "elementType": _name(data_type.value_type), "containsNull": True}
    return _NAMES[data_type]
