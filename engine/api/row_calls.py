"""The calls of DataSet that choose rows or number them, and those that people know from data frames.

    head tail sample             some of the rows
    drop_nulls fill_null         nulls
    drop_duplicates              one row of those that are equal in some columns
    with_row_index               a number for each row
    pipe transform               functions of data sets, in a chain of calls

All of them are made of other operators. The order of a data set, which some of these speak of, is the order in which
``collect()`` gives its rows: that of a sort, else that of the source as its splits are read, else any.

Held by: tests/integration/test_row_calls.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

import pyarrow as pa

from engine.api.calls import row_count
from engine.api.other_options import with_other_options
from engine.api.projections import column_names, flattened
from engine.api.relational_calls import RelationalCalls
from engine.errors import PlanError, SchemaError
from engine.expressions.column_names import check_column_name
from engine.graph.expression import ROW_PLACE, OrderedBy
from engine.lowering.projections import check_columns, free_name

P = ParamSpec("P")
R = TypeVar("R")

_KEEP: Final = ("first", "last", "any")


@with_other_options
class RowCalls(RelationalCalls):
    """Base of DataSet with the calls that choose rows."""

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
        from engine.api.row_functions import row_place

        place = free_name("__place", self.schema)
        last = self.with_columns(**{place: row_place()}).top(row_count(count, "tail"), place)
        return last.sort(place).drop(place)

    def with_row_index(self, name: str = "index", offset: int = 0) -> Self:
        """Return all columns behind one with the number of each row, from ``offset`` on and without gaps.

        Numbers follow the order of the data set; the rows are sorted by their places to be counted.

        >>> rows({"x": ["a", "b"]}).with_row_index("n", offset=1).to_arrow().to_pylist()
        [{'n': 1, 'x': 'a'}, {'n': 2, 'x': 'b'}]
        """
        from engine.api.row_functions import row_place
        from engine.api.windows import row_number

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
        from engine.api.expressions import col
        from engine.api.row_functions import rand

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
        from engine.api.expressions import col

        names = self.schema.names if subset is None else column_names(subset, "drop_nulls")
        check_columns(names, self.schema)
        found = self
        for name in names:
            found = found.filter(col(name).is_not_null())
        return found

    def fill_null(self, values: Any) -> Self:
        """Return the rows with values in place of nulls: by name of the column, or one for all columns of its kind.

        A value may be an expression. One value for all goes to the columns that can hold it. A constant gets the type
        of its column; one that does not fit, such as 0.5 for integers, is an error: cast the column first.

        >>> rows({"x": [1, None], "y": ["a", None]}).fill_null({"x": 0}).to_arrow().to_pylist()
        [{'x': 1, 'y': 'a'}, {'x': 0, 'y': None}]
        """
        from engine.api.expressions import col

        if not isinstance(values, Mapping):
            values = {name: values for name in self.schema.names if self._can_hold(name, values)}
            if not values:
                raise SchemaError("fill_null: no column can hold the value")
        check_columns(values, self.schema)
        filled = {name: col(name).fill_null(self._constant_of(name, value)) for name, value in values.items()}
        return self.with_columns(**filled)

    def _constant_of(self, name: str, value: Any) -> Any:
        """Return a value for a column; what tells too little of itself, as one of the type of the column."""
        from engine.api.expressions import lit

        data_type = self.schema.field(name).type
        is_nested = pa.types.is_nested(data_type) and isinstance(value, list | tuple | dict)
        return lit(value, data_type) if is_nested or isinstance(data_type, pa.BaseExtensionType) else value

    def _can_hold(self, name: str, value: Any) -> bool:
        """Whether a column keeps its type with a value in place of nulls."""
        from engine.api.expressions import col
        from engine.expressions.infer import infer_type

        try:
            filled = infer_type(col(name).fill_null(self._constant_of(name, value)).expression, self.schema)
        except SchemaError:
            return False
        return bool(filled == self.schema.field(name).type)

    def drop_duplicates(
        self, subset: Any = None, keep: str = "first", order_by: Any = None, nulls_last: bool | list[bool] = False
    ) -> Self:
        """Return one row of those that are equal in the columns of ``subset``, or in all; null equals null.

        keep: "first" or "last" of ``sort(order_by, nulls_last=...)`` (names or expressions), without ``order_by`` in
        the order of the data set, in which rows are that are equal in ``order_by``, too; "any" is cheapest.

        >>> rows({"k": [1, 1], "day": [3, 4]}).drop_duplicates("k", keep="last", order_by="day").collect()
        [Row(k=1, day=4)]
        """
        from engine.api.windows import order_keys

        names = self.schema.names if subset is None else column_names(subset, "drop_duplicates")
        check_columns(names, self.schema)
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
