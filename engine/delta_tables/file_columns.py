"""Columns of a table in one of its files: under which names they lie there, and how their values become the table's.

    columns = FileColumns(schema, footer's schema, names)
    columns.stored     column of the table -> column of the file
    columns.types      of those, by their names in the file: the table's, where reading may convert to them
    columns.column(name, array)      an array of the table's type

A column that the file does not have is null there: it is older than the column. So are members of structs. Columns are
found by their ids where the file has ids, as tables with column mapping write them, and by names otherwise.

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from engine.delta_tables.table_types import FIELD_ID, field_id, physical_name
from engine.parquet.source import plain_file_schema
from engine.parquet.source_types import converted


class FileColumns:
    """The columns of a table in a file."""

    def __init__(self, schema: pa.Schema, found: pa.Schema, names: Iterable[str]) -> None:
        #: The types that the file's own columns have when they are read as they are.
        self._found = plain_file_schema(found)
        self._schema = schema
        self.stored: dict[str, str] = {}
        self._nested: dict[str, pa.Field] = {}
        types: list[pa.Field] = []
        for name in names:
            field = schema.field(name)
            index = _place_of(field, list(found))
            if index is None:
                continue
            inside = found.field(index)
            self.stored[name] = inside.name
            is_nested = pa.types.is_nested(field.type)
            if is_nested:
                self._nested[name] = inside
            types.append(pa.field(inside.name, self._found.field(index).type if is_nested else field.type))
        self.types = pa.schema(types)

    def column(self, name: str, array: pa.Array) -> pa.Array:
        """Return the values of a column as the table has them."""
        if name not in self._nested:
            return array
        return _as_field(array, self._nested[name], self._schema.field(name))

    def simple(self, names: Collection[str]) -> bool:
        """Return whether columns are in the file, and no nested ones."""
        return all(name in self.stored and name not in self._nested for name in names)


def _place_of(field: pa.Field, found: list[pa.Field]) -> int | None:
    """Return the place of a field among those of a file, None where it has none."""
    wanted = field_id(field)
    if wanted is not None and any(FIELD_ID in (each.metadata or {}) for each in found):
        return next((index for index, each in enumerate(found) if field_id(each) == wanted), None)
    name = physical_name(field)
    return next((index for index, each in enumerate(found) if each.name == name), None)


def _as_field(array: pa.Array, found: pa.Field, wanted: pa.Field) -> pa.Array:
    """Return an array of the wanted field's type. ``found``: the file's field, with the ids of its members."""
    if array.type == wanted.type and not _is_renamed(wanted.type):
        return array
    data_type = wanted.type
    if pa.types.is_struct(data_type) and pa.types.is_struct(array.type):
        inside = [found.type.field(index) for index in range(found.type.num_fields)]
        children = []
        for index in range(data_type.num_fields):
            field = data_type.field(index)
            place = _place_of(field, inside)
            if place is None:
                children.append(pa.nulls(len(array), field.type))
            else:
                # Members without the nulls of their struct: these are put back below.
                children.append(_as_field(array.field(place), inside[place], field))
        fields = [data_type.field(index) for index in range(data_type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    if pa.types.is_map(data_type) and pa.types.is_map(array.type):
        keys = _as_field(array.keys, found.type.key_field, data_type.key_field)
        items = _as_field(array.items, found.type.item_field, data_type.item_field)
        return pa.MapArray.from_arrays(array.offsets, keys, items, data_type, mask=_mask(array))
    if pa.types.is_list(data_type) and pa.types.is_list(array.type):
        values = _as_field(array.values, found.type.value_field, data_type.value_field)
        return pa.ListArray.from_arrays(array.offsets, values, data_type, mask=_mask(array))
    return converted(array, data_type)


def _mask(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None


def _is_renamed(data_type: pa.DataType) -> bool:
    """Return whether files may have other names for members of a type, so that equal names say nothing."""
    if not pa.types.is_nested(data_type):
        return False
    fields = [data_type.field(index) for index in range(data_type.num_fields)]
    return any(physical_name(field) != field.name or _is_renamed(field.type) for field in fields)
