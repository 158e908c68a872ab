"""Plain types: what Arrow encodes cleverly (dictionaries, runs, views) as the ordinary type of the same values.

    dictionary<V>            V                  list_view<T>        list<T>
    run_end_encoded<V>       V                  large_list_view<T>  large_list<T>
    string_view              string             extension<S>        stays, when S is plain
    binary_view              binary             nested types        their children plain

Rows, hashes and comparisons know plain types only. ``plain_schema`` says what a schema becomes, ``plain_batch``
converts one batch; both return their argument itself where nothing is to do. Extension types stay in the schema,
kernels see their storage; a storage that is not plain makes the extension unsupported.

Cost: one cast per column that is not plain. Limits: types nested deeper than 64 are refused.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.records.arrow_functions import pc
from engine.records.text_gather import gathered_texts

#: limit of nesting; kernels recurse over the type
NESTING_MAX = 64
#: types that are plain with any parameters: most batches have no others, and need no further check
PLAIN_IDS = frozenset(
    data_type.id
    for data_type in (
        *(pa.null(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(1)),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)),
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.duration("us")),
    )
)
_ID: Final = attrgetter("id")

_TEXT_TYPES = frozenset({pa.string(), pa.large_string(), pa.binary(), pa.large_binary()})


def _plain_children(data_type: pa.DataType, depth: int) -> pa.DataType:
    """Return a nested type with plain children."""

    def child(field: pa.Field) -> pa.Field:
        return field.with_type(plain_type(field.type, depth + 1))

    if pa.types.is_struct(data_type):
        return pa.struct([child(data_type.field(index)) for index in range(data_type.num_fields)])
    if pa.types.is_map(data_type):
        return pa.map_(child(data_type.key_field), child(data_type.item_field), keys_sorted=data_type.keys_sorted)
    value = child(data_type.value_field)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(value, data_type.list_size)
    if pa.types.is_large_list(data_type) or pa.types.is_large_list_view(data_type):
        return pa.large_list(value)
    return pa.list_(value)


def plain_type(data_type: pa.DataType, depth: int = 0) -> pa.DataType:
    """Return the plain type of the same values; the type itself when it is plain.

    Raises:
        SchemaError: the type is nested deeper than 64.
    """
    if depth > NESTING_MAX:
        raise SchemaError(f"a type is nested deeper than {NESTING_MAX}")
    if data_type.id in PLAIN_IDS:
        return data_type
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return plain_type(data_type.value_type, depth + 1)
    if pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    if isinstance(data_type, pa.BaseExtensionType) or not pa.types.is_nested(data_type):
        return data_type
    if pa.types.is_union(data_type):
        return data_type
    plain = _plain_children(data_type, depth)
    return data_type if plain.equals(data_type) else plain


@lru_cache(maxsize=1024)
def is_foreign(data_type: pa.DataType) -> bool:
    """Whether there is a union in the type, of which there are no rows."""
    if pa.types.is_union(data_type):
        return True
    return any(is_foreign(data_type.field(index).type) for index in range(data_type.num_fields))


def _has_plain_types(schema: pa.Schema) -> bool:
    """Whether all types are plain with any parameters."""
    return PLAIN_IDS.issuperset(map(_ID, schema.types))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types, itself when all are; names, nullability and metadata stay."""
    if _has_plain_types(schema):
        return schema
    fields = []
    for field in schema:
        try:
            fields.append(field.with_type(plain_type(field.type)))
        except SchemaError as error:
            raise SchemaError(f"column '{field.name}': {error}") from None
    return pa.schema(fields, metadata=schema.metadata)


def nullable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with all columns nullable, itself when all are."""
    if all(field.nullable for field in schema):
        return schema
    return pa.schema([field.with_nullable(True) for field in schema], metadata=schema.metadata)


def _plain_list_view(array: Any, target: pa.DataType) -> Any:
    """Return a list view as a list, its elements packed (pyarrow's own cast makes wrong offsets of nulls)."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(array), 0))
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    form = pa.LargeListArray if pa.types.is_large_list(target) else pa.ListArray
    return form.from_arrays(offsets, plain_array(array.flatten(), target.value_type), target, mask=pc.is_null(array))


def _plain_nested(array: Any, target: pa.DataType) -> Any:
    """Return a nested array whose children are converted one by one."""
    if pa.types.is_struct(target):
        fields = [target.field(index) for index in range(target.num_fields)]
        children = [plain_array(array.field(index), field.type) for index, field in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(array))
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        return _plain_list_view(array, target)
    if pa.types.is_map(target):
        entry_type = pa.struct([target.key_field, target.item_field])
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[array.type.key_field, array.type.item_field]
        )
        children = [plain_array(entries, entry_type)]
    else:
        children = [plain_array(array.values, target.value_type)]
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(target) else 2]
    return pa.Array.from_buffers(target, len(array), buffers, offset=array.offset, children=children)


def plain_array(array: Any, target: pa.DataType) -> Any:
    """Return the array converted to target, which is ``plain_type(array.type)``."""
    if array.type.equals(target):
        return array
    if pa.types.is_dictionary(array.type):
        texts = plain_array(array.dictionary, plain_type(array.dictionary.type))  # Arrow's take knows no views
        values = gathered_texts(texts, array.indices)
        return plain_array(pc.take(texts, array.indices) if values is None else values, target)
    if pa.types.is_run_end_encoded(array.type):
        return plain_array(pc.run_end_decode(array), target)
    if pa.types.is_nested(array.type):
        return _plain_nested(array, target)
    return pc.cast(array, target)


def is_coded(data_type: pa.DataType) -> bool:
    """Whether a type is of texts that come as codes, as consumers of codes take them (``Output.compact_columns``)."""
    return bool(
        pa.types.is_dictionary(data_type) and data_type.index_type == pa.int32() and data_type.value_type in _TEXT_TYPES
    )


def plain_batch(batch: pa.RecordBatch, coded: Collection[str] = ()) -> pa.RecordBatch:
    """Return the batch with every column in its plain type, but for some that may be codes; itself when all are."""
    if _has_plain_types(batch.schema):
        return batch
    schema = plain_schema(batch.schema)
    if coded:
        kept = [field if field.name in coded and is_coded(field.type) else None for field in batch.schema]
        schema = pa.schema([one or other for one, other in zip(kept, schema, strict=True)], metadata=schema.metadata)
    if schema.equals(batch.schema):
        return batch
    columns = [plain_array(batch.column(index), field.type) for index, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def span_remedy(*types: pa.DataType) -> str:
    """Return the advice of an error about durations where numbers or moments are taken; "" for other types."""
    span = next(filter(pa.types.is_duration, types), None)
    if span is None:
        return ""
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[span.unit]
    seconds = "x.cast(int)" if per == 1 else f"x.cast(int) / {per}"
    return f"of a duration x, {seconds} is the number of its seconds"
