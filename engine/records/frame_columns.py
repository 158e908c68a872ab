"""Columns of pandas, numpy and Polars with the values that Arrow has, where the usual way there would lose some.

    pandas_frame(batch or table) -> DataFrame     pandas_column(column) -> Series      numpy_column(column) -> ndarray
    check_polars(schema, what), polars_table(table)

    what the usual way makes of it                          what is made here
    int64 with nulls: doubles, which have 53 bits           where a value has more: Int64 of pandas, objects of numpy
    lists of extension types, unions: errors                Python's values
    Polars: other bits for decimals of 32 and 64 bits       decimals of 128 bits
    within structs, panics for decimals of 256 bits,        where they have at most 38 digits, else a SchemaError,
    for offsets in place of zones, intervals and unions     UTC, a SchemaError

Held by: tests/types_table/test_types_table.py
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from engine.errors import ConfigurationError, SchemaError
from engine.records.arrow_functions import pc
from engine.records.plain_types import is_foreign
from engine.records.stored_types import stored_type

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

Column: TypeAlias = Any  # pa.Array, pa.ChunkedArray

#: beyond it doubles do not have every whole number
_EXACT_MAX: Final = 2**53
_DIGITS_MAX: Final = 38


def frame_library(name: str, what: str) -> ModuleType:
    """Return the module of pandas, numpy or Polars. Raises: ConfigurationError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ConfigurationError(f"{what} needs the package {name}; install it: pip install {name}") from None


def _loses_digits(column: Column) -> bool:
    """Whether a column of integers becomes doubles, since it has nulls, which are not all of its numbers."""
    if not column.null_count or not (pa.types.is_int64(column.type) or pa.types.is_uint64(column.type)):
        return False
    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is not None and (low < -_EXACT_MAX or high > _EXACT_MAX)


def _is_of_python(data_type: pa.DataType) -> bool:
    """Whether values become Python's, since pyarrow makes nothing else of them."""
    return is_foreign(data_type) or (pa.types.is_nested(data_type) and stored_type(data_type) != data_type)


def pandas_frame(data: pa.RecordBatch | pa.Table) -> pd.DataFrame:
    """Return rows as a frame of pandas."""
    names = data.schema.names
    others = [index for index, column in enumerate(data.columns) if _is_special(column)]
    if not others:
        return data.to_pandas()
    plain = data.select([index for index in range(len(names)) if index not in others])
    frame = plain.to_pandas()
    for index in others:  # ascending, so that each goes to its place
        frame.insert(index, names[index], pandas_column(data.column(index)))
    return frame


def _is_special(column: Column) -> bool:
    return _is_of_python(column.type) or _loses_digits(column)


def pandas_column(column: Column) -> pd.Series:
    """Return a column as a series of pandas."""
    import pandas as pd

    if _is_of_python(column.type):
        return pd.Series(column.to_pylist(), dtype=object)
    if _loses_digits(column):
        return column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}.get)
    return column.to_pandas()


def numpy_column(column: pa.Array) -> Any:
    """Return a column as an array of numpy."""
    if not _is_special(column) and not (pa.types.is_nested(column.type) and "date64" in str(column.type)):
        return column.to_numpy(zero_copy_only=False)
    found = pa.nulls(len(column), pa.string()).to_numpy(zero_copy_only=False)  # objects
    found[:] = column.to_pylist()
    return found


def check_polars(schema: pa.Schema, what: str) -> None:
    """Raise SchemaError for a column that Polars cannot hold."""
    for field in schema:
        if _for_polars(field.type) is None:
            remedy = "cast it" if pa.types.is_decimal(field.type) else "leave it out, or cast what is in it"
            raise SchemaError(
                f"{what}: column {field.name!r} is {field.type}, which Polars cannot hold; {remedy}, or take to_arrow()"
            )


def polars_table(table: pa.Table) -> pa.Table:
    """Return a table of which Polars takes all values, of a schema that was checked."""
    fields = [field.with_type(_for_polars(field.type)) for field in table.schema]
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for field, column in zip(fields, table.columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _for_polars(data_type: pa.DataType) -> pa.DataType | None:
    """Return the type as which Polars takes values of a plain type; None: it takes none."""
    types = pa.types
    if types.is_decimal(data_type):
        fits = data_type.precision <= _DIGITS_MAX
        return pa.decimal128(data_type.precision, data_type.scale) if fits else None
    if types.is_timestamp(data_type) and data_type.tz is not None and data_type.tz[:1] in "+-":
        return pa.timestamp(data_type.unit, "UTC")
    if types.is_interval(data_type) or types.is_union(data_type):
        return None
    if types.is_nested(data_type):
        return _with_children(data_type, _for_polars)
    return data_type


def _with_children(data_type: Any, change: Callable[[pa.DataType], pa.DataType | None]) -> pa.DataType | None:
    """Return a nested type with other children; None where one of them has none."""
    children = []
    for index in range(data_type.num_fields):
        field = data_type.field(index)
        changed = change(field.type)
        if changed is None:
            return None
        children.append(field.with_type(changed))
    if pa.types.is_struct(data_type):
        return pa.struct(children)
    if pa.types.is_map(data_type):
        entries = children[0].type
        return pa.map_(entries.field(0), entries.field(1), data_type.keys_sorted)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(children[0], data_type.list_size)
    return pa.large_list(children[0]) if pa.types.is_large_list(data_type) else pa.list_(children[0])
