"""Formats of functions over batches: Arrow batches, frames of pandas or Polars, or dicts of numpy arrays.

An Arrow table may be returned for a batch.

    to_format(batch, "numpy") -> dict        from_format(value, "numpy", schema) -> batch of exactly that schema
    column_to_format(column, "numpy")        column_from_format(value, "numpy", field, size): the same of one column

numpy, pandas and Polars are the user's: imported here when asked for, in the process that runs the function. Values
become those of another type only where nothing is lost: arrays as array_fit.py says, objects as value_check.pyx does.

Held by: tests/integration/test_functional.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from engine.functions.function_error import describe_row
from engine.records.array_fit import fitted
from engine.records.frame_columns import frame_library, numpy_column, pandas_column, pandas_frame
from engine.records.plain_scalars import array_of
from engine.records.plain_types import nullable_schema, plain_array, plain_type
from engine.records.stored_types import stored_array, stored_type
from engine.records.value_check import MisfitError, check_values, may_lose
from engine.records.value_writer import described

FORMATS = ("arrow", "pandas", "numpy", "polars")
_COLUMNS = {
    "arrow": "a pyarrow.Array",
    "pandas": "a pandas.Series",
    "numpy": "a numpy.ndarray",
    "polars": "a polars.Series",
}


def to_format(batch: pa.RecordBatch, kind: str) -> Any:
    """Return a batch as the function wants it."""
    if kind == "arrow":
        return batch
    _library(kind)
    if kind == "pandas":
        return pandas_frame(batch)
    if kind == "polars":
        return _library(kind).from_arrow(batch)
    names = batch.schema.names
    return {name: numpy_column(column) for name, column in zip(names, batch.columns, strict=True)}


def is_of_format(value: Any, kind: str) -> bool:
    """Return whether a value is one batch of the format."""
    if kind == "arrow":
        return isinstance(value, pa.RecordBatch | pa.Table)
    if kind == "numpy":
        return isinstance(value, dict)
    return isinstance(value, _library(kind).DataFrame)


def _library(kind: str) -> Any:
    return frame_library(kind, f"a function over batches of {kind}")


def from_format(value: Any, kind: str, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a function's result to a batch of the schema; raises TypeError or ArrowInvalid if it does not fit.

    Columns that are not nullable have no null in it, and are nullable, as the engine's all are.
    """
    plain = nullable_schema(schema)
    batch = _typed(value, kind, plain)
    for field, column in zip(schema, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise TypeError(f"a null for {described(field)}")
    return batch


def _typed(value: Any, kind: str, schema: pa.Schema) -> pa.RecordBatch:
    if not is_of_format(value, kind):
        raise TypeError(f"{type(value).__name__}, which is no batch of format {kind}")
    if kind == "polars":
        value, kind = value.to_arrow(), "arrow"
    names = list(value.schema.names) if kind == "arrow" else list(value)
    if sorted(map(str, names)) != sorted(schema.names):
        raise TypeError(f"columns {names}, the schema has {schema.names}")
    if kind == "arrow":
        # An array over buffers that do not fit would take the process down that works on it next: that is not ours.
        value.validate(full=True)
    columns = [_of_field(field, value.column(field.name) if kind == "arrow" else value[field.name]) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _of_field(field: pa.Field, value: Any) -> pa.Array:
    """Return values of a field's type; what cannot be is said with the column, and with the row among them."""
    try:
        return _as_array(value, field.type)
    except MisfitError as error:
        place = "" if error.index < 0 else f", in row {error.index} of it"
        reason = f"{error.reason}{place}"
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
    name = f" {field.name!r}" if field.name else ""
    raise TypeError(f"a column{name} that is not {field.type}: {reason}")


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values of a batch's or a table's column."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _as_array(value: Any, data_type: pa.DataType) -> pa.Array:
    """Return values of Arrow, numpy, pandas or Python as an array; MisfitError where one would lose something."""
    if str(getattr(value, "dtype", "object")) != "object":
        value = _of_numbers(value, data_type)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        column = _one_array(value)
        is_plain = column.type == data_type
        return column if is_plain else fitted(plain_array(column, plain_type(column.type)), data_type)
    try:
        if may_lose(data_type):
            check_values(_given(value), data_type)
        if stored_type(data_type) != data_type:
            return stored_array(_given(value), data_type)
        try:
            return pa.array(value, data_type)
        except (pa.ArrowException, ValueError, TypeError):
            return pa.array(value, data_type, from_pandas=True)  # NaN within lists of integers
    except Exception as error:
        raise _first_unfit(_given(value), data_type) or error from error


def _of_numbers(value: Any, data_type: pa.DataType) -> Any:
    """Convert values that numpy or pandas have a type for: NaN is null except in floats, timestamps are in UTC."""
    array = pa.array(value, from_pandas=not pa.types.is_floating(data_type) or None)
    is_moment = pa.types.is_timestamp(array.type) and pa.types.is_timestamp(data_type)
    if is_moment and data_type.tz is not None and array.type.tz is None and not hasattr(value, "isna"):
        return array.cast(pa.timestamp(array.type.unit, "UTC"))  # numpy has no zones, and is given moments of UTC
    return array


def _given(value: Any) -> list[Any]:
    """Return objects as a list, what pandas calls missing as None."""
    missing = value.isna() if hasattr(value, "isna") else [False] * len(value)
    return [None if is_missing else each for each, is_missing in zip(value, missing, strict=True)]


def _first_unfit(given: Sequence[Any], data_type: pa.DataType) -> MisfitError | None:
    """Return the error of the first object that does not fit."""
    for index, each in enumerate(given):
        try:
            check_values([each], data_type)
            array_of([each], data_type)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            return MisfitError(f"{describe_row(each)} ({type(each).__name__}): {reason}", index)
    return None


def column_to_format(column: pa.Array, kind: str) -> Any:
    """Return a column as a function of columns wants it: pyarrow.Array, a Series of pandas or Polars, numpy.ndarray."""
    if kind == "arrow":
        return column
    library = _library(kind)
    if kind == "polars":
        return library.from_arrow(column)
    return pandas_column(column) if kind == "pandas" else numpy_column(column)


def column_from_format(value: Any, kind: str, field: pa.Field, size: int) -> pa.Array:
    """Convert the result of a function of columns to ``size`` values of the field's type; raises if it does not fit."""
    if kind == "polars" and isinstance(value, _library(kind).Series):
        value = value.to_arrow()
    if isinstance(value, pa.Array | pa.ChunkedArray):
        value.validate(full=True)
    elif kind == "arrow" or isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        expected = _COLUMNS[kind]
        raise TypeError(f"{type(value).__name__}, expected {expected}")
    column = _of_field(field.with_name(""), value)
    if len(column) != size:
        raise ValueError(f"{len(column)} values for {size} rows")
    return column
