"""Arguments of the calls that change the shape of a table, checked, and the columns made of them.

    element_field                                   the column that explode makes of lists and maps
    aggregate_function values_given value_name      of a pivot: its aggregate, its columns
    summary                                         what describe says of a column

Held by: tests/integration/test_shapes.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

import pyarrow as pa

from engine.choices import PivotAggregate
from engine.column_expressions.expression import Expr
from engine.errors import SchemaError
from engine.records.key_types import is_key_type
from engine.shown_text import shown_line

if TYPE_CHECKING:
    from engine.column_expressions.aggregates import Aggregate

#: names of aggregates of one column
_AGGREGATES: Final = get_args(PivotAggregate)


def element_field(field: pa.Field) -> pa.Field:
    """Return the field that exploding a column of lists or maps gives; SchemaError for other types."""
    data_type = field.type
    if pa.types.is_map(data_type):
        entry = [pa.field("key", data_type.key_type, nullable=False), data_type.item_field]
        return pa.field(field.name, pa.struct(entry))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.field(field.name, data_type.value_type)
    raise SchemaError(f"explode: column {field.name!r} is {data_type}, no list and no map")


def value_name(value: pa.Scalar) -> str:
    """Return the name of a value's column."""
    if not value.is_valid:
        return "null"
    plain = value.as_py()
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def is_value(key: str, value: pa.Scalar) -> Expr:
    """Return whether a column has a value, null among them."""
    from engine.column_expressions.expressions import col, lit

    return col(key) == lit(value) if value.is_valid else col(key).is_null()


def aggregate_function(agg: str | Callable[[Any], Aggregate]) -> Callable[[Any], Aggregate]:
    """Return the function that gives an aggregate, by name, which may end with the underscore of the function's."""
    from engine.column_expressions import expressions

    if isinstance(agg, str):
        name = agg.removesuffix("_")
        if name not in _AGGREGATES:
            raise SchemaError(f"pivot(agg={agg!r}): choose one of {', '.join(_AGGREGATES)}, or pass a function as sum_")
        found: Callable[[Any], Aggregate] = getattr(expressions, name, None) or getattr(expressions, f"{name}_")
        return found
    if not callable(agg):
        raise SchemaError(f"pivot(agg={agg!r}): the name of an aggregate, or a function such as sum_")
    return agg


def values_given(columns: Sequence[Any], data_type: pa.DataType) -> list[pa.Scalar]:
    """Return the values whose columns a user wants, as values of a type."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise SchemaError(f"pivot(columns={columns!r}): a list of values")
    found = []
    for value in columns:
        try:
            found.append(pa.scalar(value, data_type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
            raise SchemaError(f"pivot(columns=...): {shown_line(repr(value))} is no {data_type}") from None
    return found


def summary(number: int, field: pa.Field, aggregates: dict[str, Aggregate], quantiles: Sequence[float] = ()) -> Expr:
    """Return the description of a column, as a struct over aggregates, which are added."""
    from engine.column_expressions.aggregates import avg, count, max_, min_, stddev
    from engine.column_expressions.expressions import col, lit
    from engine.column_expressions.row_functions import struct
    from engine.expressions.common_type import is_number

    def computed(function: Any, text: str) -> Expr:
        name = f"{text}{number}"
        aggregates[name] = function(field.name)
        return col(name)

    data_type = field.type
    has_numbers, has_order = is_number(data_type), is_key_type(data_type) and not _is_bytes(data_type)
    no_number, no_text = lit(None, pa.float64()), lit(None, pa.string())
    values = computed(count, "count")
    return struct(
        column=lit(field.name),
        type=lit(str(data_type)),
        count=values,
        nulls=col("rows") - values,
        mean=computed(avg, "mean") if has_numbers else no_number,
        stddev=computed(stddev, "stddev") if has_numbers else no_number,
        min=computed(min_, "min").cast(pa.string()) if has_order else no_text,
        max=computed(max_, "max").cast(pa.string()) if has_order else no_text,
        **{
            f"{100 * share:g}%": computed(partial(_share_of, share), f"q{place}_").cast(pa.float64())
            if has_numbers
            else no_number
            for place, share in enumerate(quantiles)
        },
    )


def _share_of(share: float, name: str) -> Aggregate:
    from engine.column_expressions.value_aggregates import quantile

    return quantile(name, share)


def _is_bytes(data_type: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(is_kind(data_type) for is_kind in kinds)
