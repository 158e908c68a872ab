"""Window functions as columns of Spark: those that give the same value there for every input, else None.

    native_window(over, schema, columns) -> (Column, type) | None

    row_number rank dense_rank percent_rank cume_dist ntile        without an order, numbers of rows in any
    lag lead                                                       without a default
    first_value last_value nth_value                               in an order
    aggregates                                                     those of ``native_aggregates``

Frames are in rows, or in a range without distances. What the place of a row decides (``row_place``) has no column, and
where rows are in the order of a sort, which equal rows keep, functions of their order are the engine's.

Held by: tests/dataframes/test_said_nodes.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name

from engine.dataframes.native_aggregates import Aggregating, native_aggregate
from engine.dataframes.native_expressions import native_column
from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.infer import infer_type
from engine.graph.expression import OrderedBy, Over, children_of, has_window
from engine.graph.window import (
    FRAME_VALUE_FUNCTIONS,
    RANKING_FUNCTIONS,
    RUNNING_FUNCTIONS,
    SHIFT_FUNCTIONS,
    WindowFrame,
)
from engine.window.functions import AGGREGATES, OF_ALL_VALUES, result_type

#: limit of Spark's offsets
_OFFSET_MAX: Final = 2**31 - 1
_RENAMED: Final = {"first": "first_value", "last": "last_value"}
_RANKINGS: Final[Mapping[str, Callable[[], Column]]] = {
    "row_number": F.row_number,
    "rank": F.rank,
    "dense_rank": F.dense_rank,
    "percent_rank": F.percent_rank,
    "cume_dist": F.cume_dist,
}
#: functions whose result depends on the order of rows with equal keys
_OF_PLACES: Final = frozenset({"row_number", "ntile", *SHIFT_FUNCTIONS, *FRAME_VALUE_FUNCTIONS})


def native_window(
    over: Over, schema: pa.Schema, columns: Mapping[str, Column], *, is_ordered: bool = False
) -> tuple[Column, pa.DataType] | None:
    """Return the column that Spark computes for a window function, and its type; None where results would differ.

    is_ordered: rows are in the order of a sort.
    """
    function = _RENAMED.get(over.function, over.function)
    if function in RUNNING_FUNCTIONS | OF_ALL_VALUES or over.distinct or over.ignore_nulls or over.default is not None:
        return None
    if any(map(has_window, children_of(over))):
        return None
    if is_ordered and function in _OF_PLACES:
        return None
    window = _window(over, schema, columns)
    argument = None if over.argument is None else native_column(over.argument, schema, columns)
    if window is None or (over.argument is not None and argument is None):
        return None
    try:
        data_type = None if over.argument is None else infer_type(over.argument, schema)
        result = result_type(function, data_type)
    except (SchemaError, NotYetSupportedError):
        return None
    column = _column(function, over, argument, data_type, window, result)
    return None if column is None else (column, result)


def _column(
    function: str,
    over: Over,
    argument: Column | None,
    data_type: pa.DataType | None,
    window: WindowSpec,
    result: pa.DataType,
) -> Column | None:
    if over.count > _OFFSET_MAX:
        return None
    if function in RANKING_FUNCTIONS:
        ranking = F.ntile(over.count) if function == "ntile" else _RANKINGS[function]()
        found = ranking.over(window if over.order_by else window.orderBy(F.lit(1)))
        return found.cast(T.LongType()) if pa.types.is_integer(result) else found
    if function in AGGREGATES or function == "count_all":
        return native_aggregate(function, argument, data_type, result, Aggregating(each=lambda one: one.over(window)))
    if argument is None or not over.order_by:
        return None
    if function in SHIFT_FUNCTIONS:
        return (F.lag if function == "lag" else F.lead)(argument, over.count).over(window)
    if function == "nth_value":
        return F.nth_value(argument, over.count).over(window)
    return (F.first if function == "first_value" else F.last)(argument).over(window)


def _window(over: Over, schema: pa.Schema, columns: Mapping[str, Column]) -> WindowSpec | None:
    keys = [native_column(key, schema, columns) for key in over.partition_by]
    order = [native_column(key.expression, schema, columns) for key in over.order_by]
    window = Window.partitionBy(*(key for key in keys if key is not None))
    if any(each is None for each in (*keys, *order)):
        return None
    if order:
        pairs = zip(order, over.order_by, strict=True)
        window = window.orderBy(*(_ordered(column, key) for column, key in pairs if column is not None))
    frame = over.frame
    if frame is None or (frame.is_whole and not order):
        return window
    return _framed(window, frame)


def _framed(window: WindowSpec, frame: WindowFrame) -> WindowSpec | None:
    """Return a window with a frame; None where it has distances, or offsets that Spark has not."""
    offsets = [bound for bound in (frame.start, frame.end) if bound is not None]
    if not all(isinstance(bound, int) and abs(bound) <= _OFFSET_MAX for bound in offsets):
        return None
    start = Window.unboundedPreceding if frame.start is None else int(frame.start)
    end = Window.unboundedFollowing if frame.end is None else int(frame.end)
    if frame.kind == "rows":
        return window.rowsBetween(start, end)
    return None if any(offsets) else window.rangeBetween(start, end)


def _ordered(column: Column, key: OrderedBy) -> Column:
    if key.descending:
        return column.desc_nulls_last() if key.nulls_last else column.desc_nulls_first()
    return column.asc_nulls_last() if key.nulls_last else column.asc_nulls_first()
