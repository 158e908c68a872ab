"""The calls of DataSet that look at it: what it has, how often, as Python values.

    to_dict to_dicts             all rows as Python values
    glimpse                      a line for each column, with its first values
    null_count value_counts      how many nulls, how many rows of each value
    assert_schema                names and types, or an error

Held by: tests/integration/test_looking_calls.py
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import Any, Final, Self

import pyarrow as pa

from engine.api.calls import row_count
from engine.api.other_options import with_other_options
from engine.api.row_calls import RowCalls
from engine.column_expressions.data_types import to_data_type
from engine.errors import SchemaError
from engine.graph.plan import Limit
from engine.lowering.projections import free_name

#: width of a line where the output is no terminal
_WIDTH: Final = 100


@with_other_options
class LookingCalls(RowCalls):
    """Base of DataSet with the calls that look at it."""

    def to_dict(self) -> dict[str, list[Any]]:
        """Run what this data set needs and return its columns as lists of Python values.

        >>> rows({"x": [1, 2]}).to_dict()
        {'x': [1, 2]}
        """
        found: dict[str, list[Any]] = self._environment.run_to_table(self._node).to_pydict()
        return found

    def to_dicts(self) -> list[dict[str, Any]]:
        """Run what this data set needs and return its rows as dicts.

        >>> rows({"x": [1, 2]}).to_dicts()
        [{'x': 1}, {'x': 2}]
        """
        found: list[dict[str, Any]] = self._environment.run_to_table(self._node).to_pylist()
        return found

    def glimpse(self, count: int = 5, width: int | None = None) -> None:
        """Run what the first rows need, and print a line for each column: name, type, first values.

        >>> rows({"x": [1, 2], "name": ["a", None]}).glimpse()
        x     int64   1, 2
        name  string  'a', None
        """
        most = shutil.get_terminal_size((_WIDTH, 0)).columns if width is None else row_count(width, "glimpse width")
        first = self._environment.run_to_table(self._same_rows(Limit(row_count(count, "glimpse")))._node)
        names, types = self.schema.names, [str(field.type) for field in self.schema]
        left, middle = max(map(len, names), default=0), max(map(len, types), default=0)
        for name, data_type, column in zip(names, types, first.columns, strict=True):
            line = f"{name:<{left}}  {data_type:<{middle}}  {', '.join(map(repr, column.to_pylist()))}"
            sys.stdout.write(f"{line if len(line) <= most else line[: max(most - 3, 0)] + '...'}\n")

    def null_count(self) -> Self:
        """Return one row: how many nulls each column has.

        >>> rows({"x": [1, None], "y": [None, None]}).null_count().to_dicts()
        [{'x': 1, 'y': 2}]
        """
        from engine.column_expressions.aggregates import count_if
        from engine.column_expressions.expressions import col

        return self.agg(**{name: count_if(col(name).is_null()) for name in self.schema.names})

    def value_counts(self, *columns: Any, name: str = "count", normalize: bool = False, sort: bool = True) -> Self:
        """Return the different values of some columns and how many rows have them, the most frequent first.

        Null is a value. ``normalize``: the share of all rows instead. ``sort=False`` leaves the order open, which is
        cheaper.

        >>> rows({"x": ["a", "b", "a"]}).value_counts("x").to_dicts()
        [{'x': 'a', 'count': 2}, {'x': 'b', 'count': 1}]
        """
        from engine.column_expressions.aggregates import count, sum_
        from engine.column_expressions.expressions import col

        keys = self._names(list(columns), "value_counts")
        if not keys:
            raise SchemaError("value_counts(): name the columns, or cs.all()")
        found = self.group_by(*keys).agg(**{name: count()})
        if normalize:
            found = found.with_columns(**{name: col(name) / sum_(name).over()})
        return found.sort([name, *keys], descending=[True, *([False] * len(keys))]) if sort else found

    def assert_schema(
        self, schema: pa.Schema | Mapping[str, Any], *, ordered: bool = True, allow_more: bool = False
    ) -> Self:
        """Return this data set as it is; SchemaError naming each difference where it has other columns or types.

        ``schema`` is pyarrow's, or types by name; ``allow_more``: it may have further columns; ``ordered=False``: in
        any order. It is checked where the plan is built; nothing runs.

        >>> rows({"x": [1], "y": ["a"]}).assert_schema({"x": "int64", "y": str}).columns
        ['x', 'y']
        """
        given = {field.name: field.type for field in schema} if isinstance(schema, pa.Schema) else dict(schema)
        wanted = {name: to_data_type(data_type) for name, data_type in given.items()}
        have = {field.name: field.type for field in self.schema}
        wrong = [f"{name!r} is missing" for name in wanted if name not in have]
        wrong += [
            f"{name!r} is {have[name]}, not {wanted[name]}"
            for name in wanted
            if have.get(name, wanted[name]) != wanted[name]
        ]
        wrong += [f"{name!r} is one too many" for name in have if name not in wanted and not allow_more]
        if ordered and not wrong and [name for name in have if name in wanted] != list(wanted):
            wrong.append(f"the order is {', '.join(have)}, not {', '.join(wanted)}")
        if wrong:
            raise SchemaError(f"assert_schema: {'; '.join(wrong)}")
        return self

    def merge_sorted(self, other: Self, by: Any, descending: bool | list[bool] = False) -> Self:
        """Return the rows of both in the order of ``by``: a union that is sorted, whether the inputs were or not.

        >>> rows({"x": [1, 4]}).merge_sorted(rows({"x": [2, 5]}), "x").to_dict()
        {'x': [1, 2, 4, 5]}
        """
        try:
            both = self.union(other)
        except SchemaError as error:
            raise SchemaError(f"merge_sorted: {str(error).removeprefix('union: ')}") from None
        return both.sort(by, descending=descending)

    def _free(self, wanted: str) -> str:
        return free_name(f"__{wanted}", self.schema)
