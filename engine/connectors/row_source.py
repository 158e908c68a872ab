"""Python rows as an Arrow table: tuples, dicts or rows, with errors that name row and column.

rows_to_table(rows, schema) -> pa.Table
columns_to_table(columns, schema) -> pa.Table

Held by: tests/connectors/test_columnar_sources.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from engine.errors import DataError, SchemaError
from engine.records.plain_scalars import array_of
from engine.records.plain_types import nullable_schema
from engine.records.value_check import MisfitError, check_values, check_zeros

_TEXT_MAX = 100
#: values of an index that an error shows
_SHOWN_ROWS = 3
_CONVERSION_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
)


def _as_tuple(row: Any, names: Sequence[str], index: int, what: str) -> Sequence[Any]:
    if isinstance(row, Mapping):
        unknown = [key for key in row if key not in names]
        missing = [name for name in names if name not in row]
        if unknown or missing:
            fault = f"unknown {unknown}" if unknown else f"missing {missing}"
            raise DataError(f"{what}: row {index}: {fault}; the schema has {', '.join(names)}")
        return [row[name] for name in names]
    if isinstance(row, str | bytes) or not isinstance(row, Sequence):
        raise DataError(f"{what}: row {index} is a {type(row).__name__}; expected a tuple, a list or a dict")
    if len(row) != len(names):
        raise DataError(f"{what}: row {index} has {len(row)} values; the schema has {len(names)}: {', '.join(names)}")
    return row


def without_index(frame: Any) -> Any:
    """Return a frame of pandas. Raises: SchemaError: it is none, or has an index of names or values, no column."""
    if not hasattr(frame, "index") or not hasattr(frame, "columns"):
        advice = "write to_frame()" if hasattr(frame, "to_frame") else "from_polars and from_arrow take others"
        raise SchemaError(f"from_pandas: a {type(frame).__name__} is no DataFrame of pandas; {advice}")
    # Integers without a name number the rows, or those that a filter has left.
    is_numbered = not len(frame.index) or getattr(frame.index.dtype, "kind", "") in "iu"
    if any(name is not None for name in frame.index.names) or not is_numbered:
        names = list(frame.index.names) if any(frame.index.names) else list(frame.index[:_SHOWN_ROWS])
        raise SchemaError(
            f"from_pandas: the index {names} is no column; write reset_index(), or "
            "reset_index(drop=True) to leave it out"
        )
    return frame


def filled_dicts(rows: Iterable[Any], schema: pa.Schema | None) -> list[Any]:
    """Return dicts with a None for each column that they lack; columns are those of the schema, or of all dicts."""
    listed = list(rows)
    dicts = [row for row in listed if isinstance(row, Mapping)]
    names = schema.names if isinstance(schema, pa.Schema) else list(dict.fromkeys(chain.from_iterable(dicts)))
    absent = dict.fromkeys(names)
    return [{**absent, **row} if isinstance(row, Mapping) else row for row in listed]


def columns_to_table(columns: Any, schema: pa.Schema | None) -> pa.Table:
    """Return columns by name as a table. Raises: SchemaError."""
    try:
        types = {} if schema is None else {field.name: field.type for field in schema}
        # lists of simple values are read without a look whether they are of pandas, which imports it
        arrays = {
            name: array_of(values, types.get(name)) if isinstance(values, list | tuple) else values
            for name, values in dict(columns).items()
        }
        return pa.table(arrays, schema=schema)
    except (*_CONVERSION_ERRORS, KeyError) as error:
        raise SchemaError(
            f"from_dict: {str(error).strip(chr(39))}; pass columns of one length by name, such as {{'a': [1, 2]}}"
        ) from None


def rows_to_table(rows: Iterable[Any], schema: pa.Schema, what: str = "from_rows") -> pa.Table:
    """Return rows as a table of the schema; errors begin with ``what`` was called.

    Raises: SchemaError (no schema), DataError naming the row (0-based), the column and the value that does not fit.
    """
    if not isinstance(schema, pa.Schema) or not schema.names:
        raise SchemaError(f"{what}: schema must be a pyarrow.Schema with at least one column")
    tuples = [_as_tuple(row, schema.names, index, what) for index, row in enumerate(rows)]
    columns = list(zip(*tuples, strict=True)) if tuples else [()] * len(schema)
    arrays = [_to_array(values, field, what) for values, field in zip(columns, schema, strict=True)]
    nullable = nullable_schema(schema)
    return pa.Table.from_arrays(arrays, schema=nullable)


def _to_array(values: Sequence[Any], field: pa.Field, what: str) -> pa.Array:
    try:
        check_values(values, field.type)
        array = array_of(values, field.type)
        if pa.types.is_decimal(field.type):
            check_zeros(values, array)
    except _CONVERSION_ERRORS:
        raise _bad_value(values, field, what) from None
    if not field.nullable and array.null_count:
        raise DataError(f"{what}: row {values.index(None)}, column {field.name!r}: null, but it is not nullable")
    return array


def _bad_value(values: Sequence[Any], field: pa.Field, what: str) -> DataError:
    for index, value in enumerate(values):
        try:
            check_values([value], field.type)
            array = array_of([value], field.type)
            if pa.types.is_decimal(field.type):
                check_zeros([value], array)
        except _CONVERSION_ERRORS as error:
            text = repr(value)
            shown = text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
            reason = f": {error.reason}" if isinstance(error, MisfitError) else ""
            return DataError(
                f"{what}: row {index}, column {field.name!r}: {shown} ({type(value).__name__}) is not {field.type}"
                f"{reason}"
            )
    return DataError(f"{what}: column {field.name!r}: the values do not fit into {field.type}")
