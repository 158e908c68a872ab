"""Schemas between the two worlds: ``pyarrow.Schema`` (users, operators) and ``PlanSchema`` (plans, JobMaster).

    to_plan_schema(pa.Schema) -> PlanSchema       to_arrow_schema(PlanSchema) -> pa.Schema
    type_to_ipc(pa.DataType) -> bytes             type_from_ipc(bytes) -> pa.DataType

A column's exact type travels as the Arrow IPC schema message of one field whose name is empty and which is nullable:
so equal types have equal bytes, and a column is renamed without touching them. Names of list items and map entries
do not count, as they do not in Arrow, and are the usual ones there (Parquet's lists have elements, Python's items).
Beside it stands what planning needs to know without Arrow. Widths of fixed types are exact (a bool counts as one byte,
as it does in a row); those of variable types are documented guesses, which statistics of a source replace.

Invariant: ``to_arrow_schema(to_plan_schema(schema))`` equals ``schema`` (metadata of the whole schema is dropped).

Held by: tests/expressions/test_compile.py
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
import pyarrow as pa

from engine.errors import SchemaError
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.records.key_types import is_key_type

#: estimated bytes of a string: a short word; a list or struct costs the sum of its children
STRING_WIDTH_BYTES = 16
LIST_LENGTH = 4
#: limit of a nested type's estimated width: lists in lists in lists are mostly empty
NESTED_WIDTH_BYTES_MAX = 1 << 20
#: part of the message of a schema that has an extension type
_EXTENSION = b"ARROW:extension"
#: limit of the message of a schema that is kept: a hundred columns and more
_MESSAGE_BYTES_MAX = 1 << 14


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type with the usual names for list items and map entries, which equal types may differ in."""

    def child(field: pa.Field, name: str) -> pa.Field:
        return field.with_name(name).with_type(_plain_type(field.type))

    if pa.types.is_list(data_type):
        return pa.list_(child(data_type.value_field, "item"))
    if pa.types.is_large_list(data_type):
        return pa.large_list(child(data_type.value_field, "item"))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(child(data_type.value_field, "item"), data_type.list_size)
    if pa.types.is_map(data_type):
        key, value = child(data_type.key_field, "key"), child(data_type.item_field, "value")
        return pa.map_(key, value, data_type.keys_sorted)
    if pa.types.is_struct(data_type):
        return pa.struct([child(field, field.name) for field in data_type])
    return data_type


@lru_cache(maxsize=1024)
def _type_to_ipc(data_type: pa.DataType) -> bytes:
    return bytes(pa.schema([pa.field("", _plain_type(data_type))]).serialize())


def _has_metadata(data_type: pa.DataType) -> bool:
    """Return whether a field within a type has metadata, by which equal types may differ."""
    children = [data_type.field(index) for index in range(data_type.num_fields)]
    return any(child.metadata or _has_metadata(child.type) for child in children)


def type_to_ipc(data_type: pa.DataType) -> bytes:
    """Return the IPC schema message of a single nameless, nullable field of that type."""
    return _type_to_ipc.__wrapped__(data_type) if _has_metadata(data_type) else _type_to_ipc(data_type)


@lru_cache(maxsize=1024)
def field_from_ipc(ipc: bytes) -> pa.Field:
    """Return the single field of an IPC schema message."""
    schema = pa.ipc.read_schema(pa.py_buffer(ipc))
    if len(schema) != 1:
        raise SchemaError(f"a column's type has {len(schema)} fields, expected one")
    return schema.field(0)


def type_from_ipc(ipc: bytes) -> pa.DataType:
    """Return the type in an IPC schema message of one field."""
    return field_from_ipc(ipc).type


def value_width(data_type: pa.DataType) -> tuple[int, bool]:
    """Return (bytes of one value, whether that is exact)."""
    if pa.types.is_null(data_type) or pa.types.is_boolean(data_type):
        return 1, True
    if pa.types.is_fixed_size_binary(data_type):
        return data_type.byte_width, True
    if isinstance(data_type, pa.ExtensionType):
        return value_width(data_type.storage_type)
    if pa.types.is_nested(data_type):
        children = [data_type.field(index).type for index in range(data_type.num_fields)]
        total = sum(value_width(child)[0] for child in children)
        width = (total if pa.types.is_struct(data_type) else LIST_LENGTH * total) or 1
        return min(width, NESTED_WIDTH_BYTES_MAX), False
    try:
        return max(1, data_type.bit_width // 8), True
    except ValueError:
        return STRING_WIDTH_BYTES, False


def to_column_info(field: pa.Field) -> ColumnInfo:
    """Return the properties of a field that planning uses."""
    data_type = field.type
    if field.metadata or (data_type.num_fields and _has_metadata(data_type)):
        plain = pa.field("", _plain_type(data_type), metadata=field.metadata)
        ipc = pa.schema([plain]).serialize().to_pybytes()
        plain_info = _plain_info.__wrapped__(field.name, data_type, field.nullable)
        return msgspec.structs.replace(plain_info, ipc=ipc)
    return _plain_info(field.name, data_type, field.nullable)


@lru_cache(maxsize=4096)
def _plain_info(name: str, data_type: pa.DataType, nullable: bool) -> ColumnInfo:
    width, exact = value_width(data_type)
    text, is_key = str(_plain_type(data_type)), is_key_type(data_type)
    return ColumnInfo(name, text, width, exact, nullable, is_key, type_to_ipc(data_type))


def to_plan_schema(schema: pa.Schema) -> PlanSchema:
    """Return the plan's form of a schema; a name that occurs twice raises SchemaError.

    Equal schemas share one form, with what it keeps: plans have the same ones again and again.
    """
    plain = schema if schema.metadata is None else schema.remove_metadata()
    message = bytes(plain.serialize())
    # What the bytes of an extension type mean changes when it is registered.
    is_kept = len(message) <= _MESSAGE_BYTES_MAX and _EXTENSION not in message
    return _of_message(message) if is_kept else _to_plan_schema(plain)


@lru_cache(maxsize=2048)
def _of_message(message: bytes) -> PlanSchema:
    return _to_plan_schema(pa.ipc.read_schema(pa.py_buffer(message)))


def _to_plan_schema(schema: pa.Schema) -> PlanSchema:
    names = schema.names
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise SchemaError(f"column {name!r} is there twice: {', '.join(names)}")
    return PlanSchema(tuple(map(to_column_info, schema)))


@lru_cache(maxsize=4096)
def _field_of(ipc: bytes, name: str, nullable: bool) -> pa.Field:
    return field_from_ipc(ipc).with_name(name).with_nullable(nullable)


def to_arrow_schema(schema: PlanSchema) -> pa.Schema:
    """Return the Arrow form of a plan's schema, which keeps it: each of its operators asks in each task."""
    kept = vars(schema)
    if "_arrow" not in kept:
        kept["_arrow"] = pa.schema([_field_of(column.ipc, column.name, column.nullable) for column in schema.columns])
    arrow: pa.Schema = kept["_arrow"]
    return arrow
