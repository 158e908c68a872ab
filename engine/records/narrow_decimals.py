"""Narrow decimals: decimals in 64 bits between parts that agree on it, whatever digits their type has.

    decimal128(15, 2)   ──► decimal64(15, 2)      an int64 of cents, as Parquet stores it
    decimal256(61, 6)   ──► decimal64(18, 6)      what was computed, where all of a batch fits into an int64

    narrow_type(type)                   of values of a type of decimals
    is_narrow(found, type)              whether what was found is that
    wide_batch(batch, schema)           the batch in the types that it is known by

Half the bytes of 128 bits, a quarter of 256, and sums of whole words. The type of a column stays what it was: a kernel
that takes narrow decimals says so before the first batch (``Output.compact_columns``), and each batch may come so or
not. Nothing else ever sees one: neither an exchange nor a sink nor a function.

Limits: columns, not what is nested. Values may have more digits than decimal64 promises; no function looks at that when
it makes them wider.

Held by: tests/records/test_narrow_decimals.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.records.arrow_functions import pc

#: precision up to which every number fits into int64
NARROW_DIGITS_MAX: Final = 18
_NARROW_ID: Final = pa.decimal64(1).id
_WIDE_IDS: Final = frozenset({pa.decimal128(1).id, pa.decimal256(1).id})


def narrow_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type that values of a type of decimals have in 64 bits."""
    return pa.decimal64(min(data_type.precision, NARROW_DIGITS_MAX), data_type.scale)


def is_wide_decimal(data_type: pa.DataType) -> bool:
    """Whether a type is one of decimals that may be narrow."""
    return data_type.id in _WIDE_IDS


def is_narrow(found: pa.DataType, data_type: pa.DataType) -> bool:
    """Whether what was found are values of a type in 64 bits."""
    return bool(found.id == _NARROW_ID and is_wide_decimal(data_type) and found == narrow_type(data_type))


def wide_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the decimals that are narrow as the columns of these names in a schema, itself without."""
    if all(data_type.id != _NARROW_ID for data_type in batch.schema.types):
        return batch
    fields, arrays = list(batch.schema), list(batch.columns)
    for index, field in enumerate(fields):
        data_type = schema.field(field.name).type
        if is_narrow(field.type, data_type):
            fields[index], arrays[index] = field.with_type(data_type), pc.cast(arrays[index], data_type)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=batch.schema.metadata))
