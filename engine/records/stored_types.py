"""Extension types and what is stored of them: kernels that know the one work on the other.

    stored_type(list<uuid>)            list<fixed_size_binary[16]>, the type itself where there is no extension in it
    stored(datum)                      a scalar or an array as its stored type; ``datum.cast(type)`` leads back
    stored_array(values, list<uuid>)   an array of Python values, at any depth: pyarrow makes none within lists

Held by: tests/types_table/test_types_table.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import pyarrow as pa


@lru_cache(maxsize=1024)
def stored_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type with what is stored in place of each extension type; the type itself where there is none."""

    def child(field: pa.Field) -> pa.Field:
        return field.with_type(stored_type(field.type))

    if isinstance(data_type, pa.BaseExtensionType):
        return stored_type(data_type.storage_type)
    if pa.types.is_struct(data_type):
        found = pa.struct([child(field) for field in data_type])
    elif pa.types.is_map(data_type):
        found = pa.map_(child(data_type.key_field), child(data_type.item_field), data_type.keys_sorted)
    elif pa.types.is_fixed_size_list(data_type):
        found = pa.list_(child(data_type.value_field), data_type.list_size)
    elif pa.types.is_large_list(data_type):
        found = pa.large_list(child(data_type.value_field))
    elif pa.types.is_list(data_type):
        found = pa.list_(child(data_type.value_field))
    else:
        return data_type
    return data_type if found == data_type else found


def stored(datum: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return a scalar or an array as its stored type."""
    data_type = stored_type(datum.type)
    return datum if data_type == datum.type else datum.cast(data_type)


def stored_array(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Return Python values as an array of a type with extensions in it; raises what ``pa.array`` raises."""
    plain = [_stored_value(value, data_type) for value in values]
    return pa.array(plain, stored_type(data_type), from_pandas=False).cast(data_type)


def _stored_value(value: Any, data_type: pa.DataType) -> Any:
    """Return a value as its stored type takes it."""
    if value is None:
        return None
    if isinstance(data_type, pa.BaseExtensionType):
        if isinstance(value, UUID):
            return value.bytes
        is_flag = isinstance(data_type, pa.Bool8Type) and isinstance(value, bool)
        return int(value) if is_flag else _stored_value(value, data_type.storage_type)
    if stored_type(data_type) == data_type:
        return value
    if pa.types.is_struct(data_type) and isinstance(value, dict):
        types = {field.name: field.type for field in data_type}
        return {name: _stored_value(each, types.get(name, pa.null())) for name, each in value.items()}
    if pa.types.is_map(data_type):
        pairs = value.items() if isinstance(value, dict) else value
        return [(key, _stored_value(each, data_type.item_type)) for key, each in pairs]
    if hasattr(data_type, "value_type") and isinstance(value, list | tuple):
        return [_stored_value(each, data_type.value_type) for each in value]
    return value
