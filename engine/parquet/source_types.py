"""Columns of a file as those of its source: in the order asked for, of the source's types, or compact.

    converted(array, type)                  plain, and as wide as the widest of all files
    comes_as(found, wanted, compact)        whether there is nothing to be done
    arranged(batch, schema, compact)        columns of a batch as a schema has them

Columns in ``compact`` stay as the file had them, where that is numbers of texts, or decimals in 64 bits
(``Output.compact_columns``).

Held by: tests/parquet/test_narrow_columns.py
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.narrow_decimals import is_narrow
from engine.records.plain_types import plain_array, plain_type
from engine.records.text_gather import check_codes


def converted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return an array as one of the source's type: plain, and as wide as the widest of all files."""
    plain = plain_array(array, plain_type(array.type))
    return plain if plain.type == wanted else pc.cast(plain, wanted)


def comes_as(found: pa.DataType, wanted: pa.Field, compact: Collection[str]) -> bool:
    """Whether a column of a type, decoded here, needs no conversion: it is as wanted, or may be compact and is."""
    if found == wanted.type:
        return True
    if wanted.name not in compact:
        return False
    is_coded = pa.types.is_dictionary(found) and found.value_type == wanted.type
    return is_coded or is_narrow(found, wanted.type)


def arranged(batch: pa.RecordBatch, schema: pa.Schema, compact: Collection[str]) -> pa.RecordBatch:
    """Return the columns of a schema, in its order and of its types, but for what may be compact and is."""
    if batch.schema.equals(schema):
        return batch
    arrays, fields = [], []
    for field in schema:
        array = batch.column(field.name)
        if field.name in compact and pa.types.is_dictionary(array.type):
            arrays.append(_coded(array, field.type))
        elif array.type == field.type or (field.name in compact and is_narrow(array.type, field.type)):
            arrays.append(array)
        else:
            arrays.append(converted(array, field.type))
        fields.append(field.with_type(arrays[-1].type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields) if compact else schema)


def _coded(array: pa.DictionaryArray, wanted: pa.DataType) -> pa.DictionaryArray:
    """Return numbers of texts as such of texts of the source's type; ArrowInvalid where they are none."""
    check_codes(array)
    if array.type.value_type == wanted:
        return array
    texts = converted(array.dictionary, wanted)
    return pa.DictionaryArray.from_arrays(array.indices, texts, safe=False)
