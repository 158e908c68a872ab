"""The calls of DataSet that make rows of lists and columns, and columns of rows.

    explode     a row for each element of a list            an operator of the plan
    unnest      the fields of a struct as columns           a projection
    unpivot     a row for each of some columns              explode of a list of (name, value)
    pivot       a column for each value of a column         without a list of values a first job finds them
    describe    a row about each column                     one aggregate over all columns, exploded

Held by: tests/integration/test_shapes.py
Held by: tests/integration/test_row_calls.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.group_calls import GroupCalls
from engine.api.other_options import with_other_options
from engine.api.projections import column_name, column_names
from engine.errors import PlanError, SchemaError
from engine.expressions.column_names import check_column_name
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.plan import Explode, Pivot
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import check_columns, free_name
from engine.lowering.said_nodes import lowered
from engine.records.key_types import is_key_type
from engine.shown_text import shown_line

if TYPE_CHECKING:
    from engine.api.aggregates import Aggregate


#: largest number of columns that a pivot finds by itself
FOUND_MAX: Final = 1_000
_ENDINGS: Final = ("", "_")


def element_field(field: pa.Field) -> pa.Field:
    """Return the field that exploding a column of lists or maps gives; SchemaError for other types."""
    data_type = field.type
    if pa.types.is_map(data_type):
        entry = [pa.field("key", data_type.key_type, nullable=False), data_type.item_field]
        return pa.field(field.name, pa.struct(entry))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.field(field.name, data_type.value_type)
    raise SchemaError(f"explode: column {field.name!r} is {data_type}, no list and no map")


@with_other_options
class ShapeCalls(GroupCalls):
    """Base of DataSet with the calls that change the shape of a table."""

    def explode(self, column: Any, position: str | None = None, keep_empty: bool = True) -> Self:
        """Return a row for each element of a list, in place of the list; of a map, for each entry (key, value).

        A null or empty list is one row with null, ``keep_empty=False`` leaves it out. ``position``: a column of that
        name, behind the others, has the place of the element in its list, from 0. Elements come in their order.

        >>> rows({"k": ["a", "b"], "x": [[1, 2], []]}).explode("x", position="i").to_arrow().to_pylist()
        [{'k': 'a', 'x': 1, 'i': 0}, {'k': 'a', 'x': 2, 'i': 1}, {'k': 'b', 'x': None, 'i': None}]
        """
        name = column_name(column, "explode")
        check_columns([name], self.schema)
        fields = [element_field(field) if field.name == name else field for field in self.schema]
        if position is not None:
            if check_column_name(position, "explode") in self.schema.names:
                raise SchemaError(f"explode(position={position!r}): there is a column of that name")
            fields.append(pa.field(position, pa.int64()))
        operator = Explode(name, position or "", bool(keep_empty))
        return self._with(LogicalNode(operator, (self._node,), pa.schema(fields)))

    def unnest(self, *columns: Any) -> Self:
        """Return the fields of structs as columns, in place of the structs; null where a struct is null.

        >>> rows({"k": [1], "s": [{"a": 2, "b": "c"}]}).unnest("s").to_arrow().to_pylist()
        [{'k': 1, 'a': 2, 'b': 'c'}]
        """
        from engine.api.expressions import col

        names = column_names(list(columns), "unnest")
        check_columns(names, self.schema)
        if not names:
            raise SchemaError("unnest: no column; name the structs whose fields are wanted")
        chosen: list[Any] = []
        for field in self.schema:
            if field.name not in names:
                chosen.append(field.name)
            elif pa.types.is_struct(field.type):
                chosen += [col(field.name).field(inner.name).alias(inner.name) for inner in field.type]
            else:
                raise SchemaError(f"unnest: column {field.name!r} is {field.type}, no struct")
        return self.select(*chosen)

    def unpivot(
        self, on: Any = None, index: Any = None, variable_name: str = "variable", value_name: str = "value"
    ) -> Self:
        """Return a row for each of the columns ``on``: those of ``index``, the column's name, and its value.

        Without ``on`` these are all others than ``index``, without ``index`` it is all others than ``on``. The values
        are of the columns' common type. Nulls are rows too.

        >>> rows({"id": [1], "a": [2], "b": [3.5]}).unpivot(index="id").to_arrow().to_pylist()
        [{'id': 1, 'variable': 'a', 'value': 2.0}, {'id': 1, 'variable': 'b', 'value': 3.5}]
        """
        from engine.api.expressions import col, lit
        from engine.api.row_functions import array, struct
        from engine.expressions.common_type import result_type_of

        names = self.schema.names
        given_on = None if on is None else column_names(on, "unpivot")
        given_index = None if index is None else column_names(index, "unpivot")
        check_columns([*(given_on or ()), *(given_index or ())], self.schema)
        kept = [name for name in names if name not in (given_on or ())] if given_index is None else given_index
        wanted = [name for name in names if name not in kept] if given_on is None else given_on
        if given_on is None and given_index is None:
            kept, wanted = [], names
        if not wanted:
            raise SchemaError("unpivot: no column is left to make rows of")
        types = [self.schema.field(name).type for name in wanted]
        shared = result_type_of(types)
        if shared is None:
            shown = ", ".join(f"{name} {data_type}" for name, data_type in zip(wanted, types, strict=True))
            raise SchemaError(f"unpivot: {shown}: no common type; cast them, or name fewer columns in on=")
        pairs = array(*(struct(**{variable_name: lit(name), value_name: col(name).cast(shared)}) for name in wanted))
        held = free_name("__unpivot", self.schema)
        return self.select(*kept, pairs.alias(held)).explode(held).unnest(held)

    def pivot(
        self,
        on: Any,
        values: Any,
        index: Any,
        agg: str | Callable[[Any], Aggregate],
        columns: Sequence[Any] | None = None,
    ) -> Self:
        """Return a row for each ``index`` and a column for each value of ``on``: the aggregate of its ``values``.

        ``agg`` is the name of an aggregate (sum, count, min, max, avg, first, last ...) or a function that gives one,
        such as ``sum_``. Columns are called after the values; with several ``values`` columns, after both:
        ``jan_price``. Where there is no row it is null, a count too. ``columns`` says which values, in which order;
        others are left out. Without it a first job finds them, in their order, at most 1,000; null is "null".

        >>> sales = rows({"shop": [1, 1, 2], "day": ["mon", "tue", "mon"], "sold": [5, 6, 7]})
        >>> sales.pivot("day", "sold", index="shop", agg="sum").sort("shop").to_arrow().to_pylist()
        [{'shop': 1, 'mon': 5, 'tue': 6}, {'shop': 2, 'mon': 7, 'tue': None}]
        """
        key, cells, lines = (
            column_name(on, "pivot on"),
            column_names(values, "pivot"),
            column_names(index, "pivot index"),
        )
        check_columns([key, *cells, *lines], self.schema)
        if not cells or not lines or key in lines:
            raise SchemaError(
                "pivot: name the column whose values become columns, the values, and another column as index"
            )
        function = _aggregate(agg)
        wanted = self.different_values(key) if columns is None else _given(columns, self.schema.field(key).type)
        held = tuple(NamedExpression(one, function(Expr(ColumnRef(one))).expression) for one in cells)
        made = tuple(NamedExpression(value_name(value), _is(key, value).expression) for value in wanted)
        return self._with(lowered(Pivot(key, tuple(lines), held, made), (self._node,)))

    def different_values(self, key: str) -> list[pa.Scalar]:
        """Return the different values of a column, in order, nulls last: of a job that runs now."""
        different = self.select(key).distinct().top(FOUND_MAX + 1, key, descending=False, nulls_last=True)
        values = self._environment.sample(different._node).column(0)
        if len(values) > FOUND_MAX:
            raise PlanError(
                f"pivot: {key!r} has more than {FOUND_MAX:,} different values, a column each; say columns=[...], or "
                "group_by both columns"
            )
        return list(values)

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


def value_name(value: pa.Scalar) -> str:
    """Return the name of a value's column."""
    if not value.is_valid:
        return "null"
    plain = value.as_py()
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def _is(key: str, value: pa.Scalar) -> Expr:
    from engine.api.expressions import col, lit

    return col(key) == lit(value) if value.is_valid else col(key).is_null()


def _aggregate(agg: str | Callable[[Any], Aggregate]) -> Callable[[Any], Aggregate]:
    """Return the function that gives an aggregate, by name (as it is, or with an underscore where Python's is)."""
    from engine.api import aggregates

    if isinstance(agg, str):
        for ending in _ENDINGS:
            function = getattr(aggregates, agg + ending, None)
            if callable(function) and not isinstance(function, type) and agg.isidentifier() and agg[0] != "_":
                found: Callable[[Any], Aggregate] = function
                return found
        raise SchemaError(f"pivot(agg={agg!r}): no such aggregate; sum, count, min, max, avg, first, last, ...")
    if not callable(agg):
        raise SchemaError(f"pivot(agg={agg!r}): the name of an aggregate, or a function such as sum_")
    return agg


def _given(columns: Sequence[Any], data_type: pa.DataType) -> list[pa.Scalar]:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise SchemaError(f"pivot(columns={columns!r}): a list of values")
    found = []
    for value in columns:
        try:
            found.append(pa.scalar(value, data_type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
            raise SchemaError(f"pivot(columns=...): {shown_line(repr(value))} is no {data_type}") from None
    return found


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
