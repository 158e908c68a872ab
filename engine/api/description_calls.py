"""describe: one aggregate over all columns, whose only row becomes a row for each column.

    column  type    count  nulls  mean  stddev  min  max
    x       int64       2      1   2.0    1.41  1    3

Held by: tests/integration/test_row_calls.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.shape_calls import ShapeCalls
from engine.records.key_types import is_key_type

if TYPE_CHECKING:
    from engine.api.aggregates import Aggregate


class DescriptionCalls(ShapeCalls):
    """Base of DataSet with what tells of its columns."""

    def describe(self) -> Self:
        """Return a row about each column: its type, values, nulls, mean, standard deviation, least and greatest value.

        ``min`` and ``max`` are texts, null of columns without an order; mean and deviation are of numbers only.

        >>> rows({"x": [1, 3, None]}).describe().to_arrow().to_pylist()[0]["mean"]
        2.0
        """
        from engine.api.aggregates import count
        from engine.api.row_functions import array

        aggregates: dict[str, Aggregate] = {"rows": count()}
        columns = [_about(number, field, aggregates) for number, field in enumerate(self.schema)]
        numbers = self.group_by().agg(**aggregates)
        return numbers.select(array(*columns).alias("column")).explode("column").unnest("column")


def _about(number: int, field: pa.Field, aggregates: dict[str, Aggregate]) -> Expr:
    """Return the description of a column, as a struct over aggregates, which are added."""
    from engine.api.aggregates import avg, count, max_, min_, stddev
    from engine.api.expressions import col, lit
    from engine.api.row_functions import struct
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
    )


def _is_bytes(data_type: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(is_kind(data_type) for is_kind in kinds)
