"""What functions over batches see and return: Arrow batches, pandas frames or dicts of numpy arrays.

An Arrow table may be returned for a batch.

    to_format(batch, "numpy") -> dict        from_format(value, "numpy", schema) -> batch of exactly that schema
    column_to_format(column, "numpy")        column_from_format(value, "numpy", field, size): the same of one column

numpy and pandas are the user's: imported here when asked for, in the process that runs the function. Values are cast
only where nothing is lost.

Held by: tests/integration/test_functional.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_types import nullable_schema, plain_array, plain_type
from engine.records.value_writer import described

FORMATS = ("arrow", "pandas", "numpy")


def to_format(batch: pa.RecordBatch, kind: str) -> Any:
    """Return a batch as the function wants it."""
    if kind == "arrow":
        return batch
    if kind == "pandas":
        return batch.to_pandas()
    names = batch.schema.names
    return {name: column.to_numpy(zero_copy_only=False) for name, column in zip(names, batch.columns, strict=True)}


def is_of_format(value: Any, kind: str) -> bool:
    """Return whether a value is one batch of the format."""
    if kind == "arrow":
        return isinstance(value, pa.RecordBatch | pa.Table)
    if kind == "numpy":
        return isinstance(value, dict)
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    return isinstance(value, pd.DataFrame)


def from_format(value: Any, kind: str, schema: pa.Schema) -> pa.RecordBatch:
    """Return what a function gave as a batch of the schema; raises TypeError or ArrowInvalid if it does not fit.

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
    names = list(value.schema.names) if kind == "arrow" else list(value)
    if sorted(map(str, names)) != sorted(schema.names):
        raise TypeError(f"columns {names}, the schema has {schema.names}")
    if kind == "pandas":
        return pa.RecordBatch.from_pandas(value, schema=schema, preserve_index=False)
    if kind == "numpy":
        arrays = [_of_field(field, partial(pa.array, value[field.name], field.type)) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # An array over buffers that do not fit would take the process down that works on it next, and that is not ours.
    value.validate(full=True)
    columns = [_of_field(field, partial(_cast, _one_array(value.column(field.name)), field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _one_array(column: Any) -> pa.Array:
    """Return the values of a batch's or a table's column."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values as another type, whatever form they came in: dictionaries, runs, views."""
    return pc.cast(plain_array(column, plain_type(column.type)), target)


def _of_field(field: pa.Field, make: Callable[[], Any]) -> Any:
    """Return values of a field's type; what cannot be is said with the column."""
    try:
        return make()
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise TypeError(f"a column {field.name!r} that is not {field.type}: {reason}") from error


def column_to_format(column: pa.Array, kind: str) -> Any:
    """Return a column as a function of columns wants it: pyarrow.Array, pandas.Series or numpy.ndarray."""
    if kind == "arrow":
        return column
    return column.to_pandas() if kind == "pandas" else column.to_numpy(zero_copy_only=False)


def column_from_format(value: Any, kind: str, field: pa.Field, size: int) -> pa.Array:
    """Return what a function of columns gave, ``size`` values of the field's type; raises where it does not fit."""
    if isinstance(value, pa.ChunkedArray):
        value.validate(full=True)
        value = _one_array(value)
    if isinstance(value, pa.Array):
        value.validate(full=True)
        column = _cast(value, field.type)
    elif kind == "arrow" or isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        expected = {"arrow": "a pyarrow.Array", "pandas": "a pandas.Series", "numpy": "a numpy.ndarray"}[kind]
        raise TypeError(f"{type(value).__name__}, expected {expected}")
    else:
        column = pa.array(value, field.type)
    if len(column) != size:
        raise ValueError(f"{len(column)} values for {size} rows")
    return column
