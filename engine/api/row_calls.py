"""The calls of DataSet that choose rows or number them, make rows of columns and columns of rows.

    head tail sample             some of the rows
    drop_nulls fill_null cast    nulls, types
    drop_duplicates              one row of those that are equal in some columns
    with_row_index               a number for each row
    pipe transform               functions of data sets, in a chain of calls
    explode                      a row for each element of a list: an operator of the plan
    unnest                       the fields of a struct as columns: a projection
    unpivot                      a row for each of some columns: explode of a list of (name, value)
    pivot                        a column for each value of a column; without a list of values a first job finds them
    describe                     a row about each column: one aggregate over all columns, exploded

Most of them are made of other operators. The order of a data set, which some of these speak of, is the order in which
``collect()`` gives its rows: that of a sort, else that of the source as its splits are read, else any.

Held by: tests/integration/test_row_calls.py
Held by: tests/integration/test_shapes.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

import pyarrow as pa

from engine.api.calls import row_count
from engine.api.other_options import with_other_options
from engine.api.relational_calls import RelationalCalls
from engine.api.shapes import aggregate_function, element_field, is_value, summary, value_name, values_given
from engine.column_expressions.expression import Expr
from engine.column_expressions.named_columns import column_name, column_names, flattened
from engine.errors import PlanError, SchemaError
from engine.expressions.column_names import check_column_name, check_columns
from engine.graph.expression import ROW_PLACE, ColumnRef, NamedExpression, OrderedBy
from engine.graph.plan import Explode
from engine.graph.said_operators import Pivot
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import free_name
from engine.lowering.said_nodes import lowered

if TYPE_CHECKING:
    from engine.choices import KeepRow, PivotAggregate
    from engine.column_expressions.aggregates import Aggregate

P = ParamSpec("P")
R = TypeVar("R")

#: largest number of columns that a pivot finds by itself
FOUND_MAX: Final = 1_000
_KEEP: Final = ("first", "last", "any")


@with_other_options
class RowCalls(RelationalCalls):
    """Base of DataSet with the calls that choose rows, and those that change the shape of a table."""

    def head(self, count: int = 5) -> Self:
        """Return the first rows in the order of the data set, as ``limit`` does.

        >>> rows({"x": [1, 2, 3]}).head(2).to_arrow().to_pylist()
        [{'x': 1}, {'x': 2}]
        """
        return self.limit(row_count(count, "head"))

    def tail(self, count: int = 5) -> Self:
        """Return the last rows in the order of the data set. All rows are read, so many are kept.

        >>> rows({"x": [1, 2, 3]}).tail(2).to_arrow().to_pylist()
        [{'x': 2}, {'x': 3}]
        """
        from engine.column_expressions.row_functions import row_place

        place = free_name("__place", self.schema)
        last = self.with_columns(**{place: row_place()}).top(row_count(count, "tail"), place)
        return last.sort(place).drop(place)

    def with_row_index(self, name: str = "index", offset: int = 0) -> Self:
        """Return all columns behind one with the number of each row, from ``offset`` on and without gaps.

        Numbers follow the order of the data set; the rows are sorted by their places to be counted.

        >>> rows({"x": ["a", "b"]}).with_row_index("n", offset=1).to_arrow().to_pylist()
        [{'n': 1, 'x': 'a'}, {'n': 2, 'x': 'b'}]
        """
        from engine.column_expressions.row_functions import row_place
        from engine.column_expressions.windows import row_number

        if check_column_name(name, "with_row_index") in self.schema.names:
            raise SchemaError(f"with_row_index({name!r}): there is a column of that name")
        if isinstance(offset, bool) or not isinstance(offset, int) or not abs(offset) <= 2**62:
            raise PlanError(f"with_row_index(offset={offset!r}): a whole number")
        number = row_number().over(order_by=row_place()) + (offset - 1)
        return self.select(number.alias(name), *self.schema.names)

    def sample(self, fraction: float, seed: int | None = None) -> Self:
        """Return each row with a probability, independent of the others.

        A seed gives the same rows again behind a source that is read in the same splits by as many subtasks; behind
        an exchange, such as a join's, rows come in another order each time, and others are drawn.

        >>> rows({"x": [1, 2, 3]}).sample(1.0, seed=7).count()
        3
        """
        from engine.column_expressions.expressions import col
        from engine.column_expressions.row_functions import rand

        if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            raise PlanError(f"sample({fraction!r}): a share of the rows, 0 to 1")
        drawn = free_name("__drawn", self.schema)
        chosen = rand(seed)
        return self.with_columns(**{drawn: chosen}).filter(col(drawn) < float(fraction)).drop(drawn)

    def drop_nulls(self, subset: Any = None) -> Self:
        """Return the rows without a null in any column, or in those of ``subset``. NaN is no null.

        >>> rows({"x": [1, None], "y": [None, 2]}).drop_nulls("x").to_arrow().to_pylist()
        [{'x': 1, 'y': None}]
        """
        from engine.column_expressions.expressions import col

        names = self.schema.names if subset is None else self._names(subset, "drop_nulls")
        found = self
        for name in names:
            found = found.filter(col(name).is_not_null())
        return found

    def cast(self, types: Any, strict: bool = True) -> Self:
        """Return the rows with columns of other types: by name or selector, or one type for all columns.

        A type is pyarrow's, its name, or ``int``, ``float``, ``str`` or ``bool``. A value that the type has not fails
        the job; without ``strict`` it is null.

        >>> rows({"x": ["1", "2"], "y": [3, 4]}).cast({"x": "int64", "y": float}).to_arrow().to_pylist()
        [{'x': 1, 'y': 3.0}, {'x': 2, 'y': 4.0}]
        """
        from engine.column_expressions.expressions import col

        wanted = types if isinstance(types, Mapping) else {tuple(self.schema.names): types}
        cast: dict[str, Expr] = {}
        for columns, data_type in wanted.items():
            for name in self._names(list(columns) if isinstance(columns, tuple) else columns, "cast"):
                if name in cast:
                    raise SchemaError(f"cast: column {name!r} has two types")
                cast[name] = col(name).cast(data_type) if strict else col(name).try_cast(data_type)
        return self.with_columns(**cast) if cast else self

    def fill_null(self, values: Any, columns: Any = None) -> Self:
        """Return the rows with values in place of nulls: by name of the column, or one for all columns of its kind.

        ``columns`` are those that one value goes to, each of which has to hold it; without it, all that can hold it.
        A value may be an expression. One value for all goes to the columns that can hold it. A constant gets the type
        of its column; one that does not fit, such as 0.5 for integers, is an error: cast the column first.

        >>> rows({"x": [1, None], "y": ["a", None]}).fill_null({"x": 0}).to_arrow().to_pylist()
        [{'x': 1, 'y': 'a'}, {'x': 0, 'y': None}]
        """
        from engine.column_expressions.expressions import col

        if columns is not None:
            if isinstance(values, Mapping):
                raise SchemaError("fill_null: values by name say their columns, so there is no columns= beside them")
            values = dict.fromkeys(self._names(columns, "fill_null"), values)
        if not isinstance(values, Mapping):
            values = {name: values for name in self.schema.names if self._can_hold(name, values)}
            if not values:
                raise SchemaError("fill_null: no column can hold the value")
        check_columns(values, self.schema)
        filled = {name: col(name).fill_null(self._constant_of(name, value)) for name, value in values.items()}
        return self.with_columns(**filled)

    def _constant_of(self, name: str, value: Any) -> Any:
        """Return a value for a column; what tells too little of itself, as one of the type of the column."""
        from engine.column_expressions.expressions import lit

        data_type = self.schema.field(name).type
        is_nested = pa.types.is_nested(data_type) and isinstance(value, list | tuple | dict)
        return lit(value, data_type) if is_nested or isinstance(data_type, pa.BaseExtensionType) else value

    def _can_hold(self, name: str, value: Any) -> bool:
        """Whether a column keeps its type with a value in place of nulls."""
        from engine.column_expressions.expressions import col
        from engine.expressions.infer import infer_type

        try:
            filled = infer_type(col(name).fill_null(self._constant_of(name, value)).expression, self.schema)
        except SchemaError:
            return False
        return bool(filled == self.schema.field(name).type)

    def drop_duplicates(
        self, subset: Any = None, keep: KeepRow = "first", order_by: Any = None, nulls_last: bool | list[bool] = False
    ) -> Self:
        """Return one row of those that are equal in the columns of ``subset``, or in all; null equals null.

        keep: "first" or "last" of ``sort(order_by, nulls_last=...)`` (names or expressions), without ``order_by`` in
        the order of the data set, in which rows are that are equal in ``order_by``, too; "any" is cheapest.

        >>> rows({"k": [1, 1], "day": [3, 4]}).drop_duplicates("k", keep="last", order_by="day").collect()
        [Row(k=1, day=4)]
        """
        from engine.column_expressions.windows import order_keys

        names = self.schema.names if subset is None else self._names(subset, "drop_duplicates")
        if keep not in _KEEP:
            raise PlanError(f"drop_duplicates(keep={keep!r}): choose one of {', '.join(_KEEP)}")
        if keep == "any":
            return self.distinct() if subset is None else self._one_of_each(names)
        if order_by is None and subset is None:
            return self.distinct()
        order = [*order_keys(order_by, descending=False, nulls_last=nulls_last), OrderedBy(ROW_PLACE)]
        if keep == "last":
            # The last row of an order is the first one of the same order read backwards, nulls included.
            order = [OrderedBy(key.expression, not key.descending, not key.nulls_last) for key in order]
        return self._one_of_each(names, order)

    def pipe(self, function: Callable[Concatenate[Self, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Apply a function to this data set: ``data.pipe(f, 1)`` is ``f(data, 1)``.

        >>> rows({"x": [1, 2]}).pipe(lambda data, n: data.limit(n), 1).to_arrow().to_pylist()
        [{'x': 1}]
        """
        return function(self, *args, **kwargs)

    def transform(self, *functions: Callable[[Self], Self]) -> Self:
        """Return the data set that functions make of it, one after another, each a data set of a data set.

        >>> rows({"x": [1, None]}).transform(lambda data: data.drop_nulls()).to_arrow().to_pylist()
        [{'x': 1}]
        """
        found = self
        for function in flattened(functions):
            made = function(found)
            if not isinstance(made, type(self)):
                name = getattr(function, "__name__", repr(function))
                raise SchemaError(f"transform: {name} returned a {type(made).__name__}, no DataSet")
            found = made
        return found

    def explode(self, column: Any, position: str | None = None, keep_empty: bool = True) -> Self:
        """Return a row for each element of a list, in place of the list; of a map, for each entry (key, value).

        Several lists, ``explode(["a", "b"])``, are opened side by side; they are as long as each other in every row.

        A null or empty list is one row with null, ``keep_empty=False`` leaves it out. ``position``: a column of that
        name, behind the others, has the place of the element in its list, from 0. Elements come in their order.

        >>> rows({"k": ["a", "b"], "x": [[1, 2], []]}).explode("x", position="i").to_arrow().to_pylist()
        [{'k': 'a', 'x': 1, 'i': 0}, {'k': 'a', 'x': 2, 'i': 1}, {'k': 'b', 'x': None, 'i': None}]
        """
        if isinstance(column, list | tuple):
            return self._explode_together(self._names(column_names(column, "explode"), "explode"), position, keep_empty)
        (name,) = self._names(column_name(column, "explode"), "explode")
        fields = [element_field(field) if field.name == name else field for field in self.schema]
        if position is not None:
            if check_column_name(position, "explode") in self.schema.names:
                raise SchemaError(
                    f"explode(position={position!r}): there is a column of that name; lists of several columns are"
                    f" opened together by explode([{column!r}, {position!r}])"
                )
            fields.append(pa.field(position, pa.int64()))
        operator = Explode(name, position or "", bool(keep_empty))
        return self._with(LogicalNode(operator, (self._node,), pa.schema(fields)))

    def _explode_together(self, names: list[str], position: str | None, keep_empty: bool) -> Self:
        """Return a row for each place in some lists of one length."""
        from engine.column_expressions.expressions import col

        if len(set(names)) < len(names) or not names:
            raise SchemaError(f"explode({names!r}): name columns, each once")
        if len(names) == 1:
            return self.explode(names[0], position, keep_empty)
        first, *others = (col(name) for name in names)
        for other in others:
            as_long = first.list.length().if_null(0) == other.list.length().if_null(0)
            first = first.require(as_long, f"explode: the lists of {', '.join(names)} have other lengths in a row")
        whole = self.with_columns(**{names[0]: first.list.zip(*others, names=names)}).drop(*names[1:])
        opened = whole.explode(names[0], position, keep_empty)
        parts = {name: col(names[0]).field(name) for name in names}
        found = opened.with_columns(*(parts[name].alias(name) for name in names[1:]), parts[names[0]].alias(names[0]))
        return found.select(*self.schema.names, *([] if position is None else [position]))

    def unnest(self, *columns: Any) -> Self:
        """Return the fields of structs as columns, in place of the structs; null where a struct is null.

        >>> rows({"k": [1], "s": [{"a": 2, "b": "c"}]}).unnest("s").to_arrow().to_pylist()
        [{'k': 1, 'a': 2, 'b': 'c'}]
        """
        from engine.column_expressions.expressions import col

        names = self._names(list(columns), "unnest")
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
        from engine.column_expressions.expressions import col, lit
        from engine.column_expressions.row_functions import array, struct
        from engine.expressions.common_type import result_type_of

        names = self.schema.names
        given_on = None if on is None else self._names(on, "unpivot")
        given_index = None if index is None else self._names(index, "unpivot")
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
        index: Any = None,
        agg: PivotAggregate | Callable[[Any], Aggregate] | None = None,
        columns: Sequence[Any] | None = None,
    ) -> Self:
        """Return a row for each ``index`` and a column for each value of ``on``: the aggregate of its ``values``.

        ``index`` are the columns of each line; without it, all columns that are neither ``on`` nor ``values``.
        ``agg`` is the name of an aggregate (sum, count, min, max, avg, first, median ...) or a function that gives one,
        such as ``sum_``. Columns are called after the values; with several ``values`` columns, after both:
        ``jan_price``. Where there is no row it is null, a count too. ``columns`` says which values, in which order;
        others are left out. Without it a first job finds them, in their order, at most 1,000; null is "null".

        >>> sales = rows({"shop": [1, 1, 2], "day": ["mon", "tue", "mon"], "sold": [5, 6, 7]})
        >>> sales.pivot("day", "sold", index="shop", agg="sum").sort("shop").to_arrow().to_pylist()
        [{'shop': 1, 'mon': 5, 'tue': 6}, {'shop': 2, 'mon': 7, 'tue': None}]
        """
        (key,) = self._names(column_name(on, "pivot on"), "pivot on")
        cells = self._names(values, "pivot")
        others = [name for name in self.schema.names if name != key and name not in cells]
        lines = others if index is None else self._names(index, "pivot index")
        if agg is None:
            raise SchemaError(
                "pivot: say what becomes of several values of one cell: agg='sum', agg='first' or another"
            )
        if not cells or not lines or key in lines:
            raise SchemaError(
                "pivot: name the column whose values become columns, the values, and another column as index"
            )
        function = aggregate_function(agg)
        wanted = self.different_values(key) if columns is None else values_given(columns, self.schema.field(key).type)
        held = tuple(NamedExpression(one, function(Expr(ColumnRef(one))).expression) for one in cells)
        made = tuple(NamedExpression(value_name(value), is_value(key, value).expression) for value in wanted)
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

    def describe(self, quantiles: Sequence[float] = ()) -> Self:
        """Return a row about each column: its type, values, nulls, mean, standard deviation, least and greatest value.

        ``min`` and ``max`` are texts, null of columns without an order; mean and deviation are of numbers only.
        ``quantiles``: shares such as ``[0.25, 0.5, 0.75]``, a column each ("25%"), of numbers; values are sorted for
        them.

        >>> rows({"x": [1, 3, None]}).describe().to_arrow().to_pylist()[0]["mean"]
        2.0
        """
        from engine.column_expressions.aggregates import count
        from engine.column_expressions.row_functions import array
        from engine.column_expressions.value_aggregates import share_of

        aggregates: dict[str, Aggregate] = {"rows": count()}
        quantiles = [share_of(one, "describe") for one in quantiles]
        columns = [summary(number, field, aggregates, quantiles) for number, field in enumerate(self.schema)]
        numbers = self.group_by().agg(**aggregates)
        return numbers.select(array(*columns).alias("column")).explode("column").unnest("column")
