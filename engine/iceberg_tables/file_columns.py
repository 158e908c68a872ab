"""The columns of one Parquet file as those of its table, found by the ids of fields.

    columns = FileColumns(schema of the file, wanted fields of the table, constants of the file)
    columns.request(path, names, predicate) -> ScanRequest       what its reader is to read
    columns.arranged(batch, names)          -> the wanted columns, of the table's types

    table       1 id long │ 2 city string │ 3 place struct<5 x, 6 y, 7 z> │ 8 since date     9 region (partition)
    file        1 id int  │ 2 town string │ 3 place struct<6 b, 5 a>      │ -                -
                cast        renamed         z null, the others by id        null, or initial     the partition's value

Ids are in the file, or a name mapping of the table has them. A column that a file has not is the value of its
partition, else the column's initial default, else null.

Source: Iceberg's specification, "Column Projection" and "Schema Evolution".
Held by: tests/iceberg_tables/test_schema_evolution.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.errors import DataError
from engine.graph.expression import ColumnRef, Expression, replaced
from engine.iceberg_tables.arrow_types import FIELD_ID, INITIAL_DEFAULT, field_id, to_arrow
from engine.parquet.scan_request import ScanRequest
from engine.parquet.source_types import converted
from engine.records.arrow_functions import pc
from engine.records.plain_types import plain_type


class FileColumns:
    """See the module's text.

    Args:
        found: the schema in the file's footer, with ids, or without for ``mapping``.
        wanted: fields of the table, with ids.
        constants: texts of values by the table's names, None for null, of columns that a file may lack.
        mapping: the table's name mapping as JSON, "" for none.
    """

    def __init__(
        self, found: pa.Schema, wanted: Sequence[pa.Field], constants: Mapping[str, str | None], mapping: str, path: str
    ) -> None:
        self._wanted = list(wanted)
        self._constants = constants
        fields = list(found)
        if all(field_id(field) is None for field in fields) and any(map(field_id, wanted)):
            if not mapping:
                raise DataError(
                    f"file {path}: its columns have no field ids, and the table has no name mapping"
                    " (schema.name-mapping.default); set that property"
                )
            fields = _mapped(fields, json.loads(mapping))
        by_id = {field_id(field): field for field in fields if field_id(field) is not None}
        #: The fields of the file, by the table's names.
        self._fields = {field.name: by_id[field_id(field)] for field in wanted if field_id(field) in by_id}
        #: The table's names of columns that need no more than a cast, in which its reader may filter.
        self.simple = frozenset(
            field.name for field in wanted if field.name in self._fields and _is_simple(self._fields[field.name], field)
        )

    def request(self, path: str, names: Sequence[str], predicate: Expression | None) -> ScanRequest:
        """Return the request of some columns of a file; ``predicate``: over simple columns, by the table's names."""
        types = []
        for field in self._wanted:
            if field.name in self._fields:
                own = self._fields[field.name]
                types.append(pa.field(own.name, field.type if field.name in self.simple else plain_type(own.type)))
        read = [self._fields[name].name for name in names if name in self._fields]
        if predicate is not None:
            predicate = replaced(predicate, self._renamed)
        return ScanRequest.of_file(path, read, pa.schema(types), predicate)

    def _renamed(self, part: Expression) -> Expression | None:
        return ColumnRef(self._fields[part.name].name) if isinstance(part, ColumnRef) else None

    def arranged(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return some of the wanted columns of rows of the file."""
        if not names:
            return batch.select([])
        fields = {field.name: field for field in self._wanted}
        arrays = []
        for name in names:
            field = fields[name]
            if name in self._fields:
                own = self._fields[name]
                array = batch.column(own.name)
                arrays.append(array if name in self.simple else evolved(array, own, field))
            elif name in self._constants:
                arrays.append(_repeated(self._constants[name], field.type, batch.num_rows))
            else:
                arrays.append(_default(field, batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _mapped(fields: Sequence[pa.Field], mapping: Sequence[Mapping[str, Any]]) -> list[pa.Field]:
    """Return fields with the ids that a name mapping gives their names; those it does not name have none."""
    found = []
    for field in fields:
        one = next((each for each in mapping if field.name in each["names"]), None)
        if one is not None and "field-id" in one:
            inner = _mapped_type(field.type, one.get("fields", []))
            found.append(pa.field(field.name, inner, field.nullable, {FIELD_ID: str(one["field-id"]).encode()}))
    return found


def _mapped_type(data_type: pa.DataType, mapping: Sequence[Mapping[str, Any]]) -> pa.DataType:
    if pa.types.is_struct(data_type):
        mapped = {field.name: field for field in _mapped(list(data_type), mapping)}
        return pa.struct([mapped.get(field.name, field) for field in data_type])
    if pa.types.is_list(data_type):
        (element,) = _mapped([data_type.value_field.with_name("element")], mapping) or [data_type.value_field]
        return pa.list_(element)
    if pa.types.is_map(data_type):
        names = {field.name: field for field in _mapped([data_type.key_field, data_type.item_field], mapping)}
        key, value = (names.get(each.name, each) for each in (data_type.key_field, data_type.item_field))
        return pa.map_(key.with_nullable(False), value)
    return data_type


def _is_simple(own: pa.Field, field: pa.Field) -> bool:
    """Return whether a column of a file is that of the table, but for its name and the width of its values."""
    if not pa.types.is_nested(field.type):
        return not pa.types.is_nested(own.type)
    return plain_type(own.type) == field.type and _ids(own.type) == _ids(field.type)


def _ids(data_type: pa.DataType) -> list[int | None]:
    """Return the ids of all fields within a type."""
    fields = [data_type.field(index) for index in range(data_type.num_fields)]
    return [each for field in fields for each in (field_id(field), *_ids(field.type))]


def evolved(array: pa.Array, own: pa.Field, field: pa.Field) -> pa.Array:
    """Return values as a field of the table has them, from what a file's field has; fields within by their ids."""
    if not pa.types.is_nested(field.type):
        return converted(array, field.type)
    if pa.types.is_struct(field.type):
        places = {field_id(own.type.field(index)): index for index in range(own.type.num_fields)}
        children = []
        for inner in field.type:
            place = places.get(field_id(inner))
            if place is None:
                children.append(_default(inner, len(array)))
            else:
                children.append(evolved(array.field(place), own.type.field(place), inner))
        if not children:
            return pa.nulls(len(array), field.type) if array.null_count else array
        return pa.StructArray.from_arrays(children, fields=list(field.type), mask=pc.is_null(array))
    if pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        array = pc.cast(array, pa.list_(array.type.value_field))  # whose offsets are those of the table's lists
    buffers = array.buffers()[:2]
    if pa.types.is_map(field.type):
        key_field, item_field = own.type.key_field, own.type.item_field
        keys = evolved(array.keys, key_field, field.type.key_field)
        items = evolved(array.items, item_field, field.type.item_field)
        entries = pa.StructArray.from_arrays([keys, items], fields=[field.type.key_field, field.type.item_field])
        children = [entries]
    else:
        children = [evolved(array.values, own.type.value_field, field.type.value_field)]
    return pa.Array.from_buffers(field.type, len(array), buffers, offset=array.offset, children=children)


def _default(field: pa.Field, rows: int) -> pa.Array:
    """Return a field's initial default in some rows, or nulls."""
    text = (field.metadata or {}).get(INITIAL_DEFAULT)
    value = None if text is None else json.loads(text)
    if value is None or pa.types.is_nested(field.type):
        return pa.nulls(rows, field.type)
    return _repeated(_text(value), field.type, rows)


def write_default(field: Any, call: str) -> pa.Scalar | None:
    """Return the value that writers give rows without a column of a table, None: null."""
    from pyiceberg.conversions import to_json
    from pyiceberg.schema import Schema

    if getattr(field, "write_default", None) is None:
        return None
    data_type = to_arrow(Schema(field), call).field(0).type
    return _repeated(_text(to_json(field.field_type, field.write_default)), data_type, 1)[0]


def _text(value: Any) -> str:
    """Return the text of a value of JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _repeated(text: str | None, data_type: pa.DataType, rows: int) -> pa.Array:
    """Return the value that a text stands for in some rows; bytes are written in hexadecimal digits."""
    if text is None:
        return pa.nulls(rows, data_type)
    if pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        value = pa.array([bytes.fromhex(text.replace("-", ""))], data_type)
    else:
        value = pc.cast(pa.array([text], pa.string()), data_type)
    return pa.repeat(value[0], rows)
