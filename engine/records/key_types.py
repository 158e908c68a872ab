"""Types that keys may have: every plain type except nested values and opaque objects.

``check_key_columns`` is called once, where an operator or a selector is made; kernels trust it.

Held by: tests/records/test_comparator.py
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from engine.errors import SchemaError
from engine.records.plain_types import PLAIN_IDS


def is_key_type(data_type: pa.DataType) -> bool:
    """Return whether values of a type can be compared, sorted and hashed."""
    if data_type.id in PLAIN_IDS:
        return True
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return is_key_type(data_type.value_type)
    is_nested = pa.types.is_nested(data_type) or pa.types.is_interval(data_type)
    return not (is_nested or isinstance(data_type, pa.BaseExtensionType))


def key_remedy(data_type: pa.DataType) -> str:
    """Return the advice of an error about a column whose type cannot be a key."""
    if isinstance(data_type, pa.BaseExtensionType):
        return f"cast it to {data_type.storage_type}, which is what it stores"
    if pa.types.is_struct(data_type):
        return "take one of its fields, col(...).field(...)"
    if pa.types.is_map(data_type):
        return "take one of its values, col(...).map.get(...)"
    if pa.types.is_union(data_type) or pa.types.is_interval(data_type):
        return "leave it out"
    return "take one of its elements, col(...).list.get(0), or a text of all, col(...).list.join(',')"


def check_key_columns(schema: pa.Schema, columns: Iterable[int]) -> None:
    """Check that columns can be keys.

    Args:
        schema: of the rows or batches.
        columns: indexes of the key columns, 0 <= index < number of columns.

    Raises:
        SchemaError: a column does not exist, or its type cannot be a key.
    """
    for column in columns:
        if not 0 <= column < len(schema):
            raise SchemaError(f"key column {column} does not exist: the schema has {len(schema)} columns")
        field = schema.field(column)
        if not is_key_type(field.type):
            raise SchemaError(
                f"column '{field.name}' of type {field.type} cannot be a key; use a column of numbers, strings, dates "
                f"or bytes made from it: {key_remedy(field.type)}"
            )


def column_index(schema: pa.Schema, name: str) -> int:
    """Return the index of the only column of this name.

    Raises:
        SchemaError: there is none, or more than one.
    """
    indexes = schema.get_all_field_indices(name)
    if len(indexes) != 1:
        found = "is not there" if not indexes else f"is there {len(indexes)} times"
        raise SchemaError(f"column '{name}' {found}; the columns are {', '.join(schema.names)}")
    return int(indexes[0])
