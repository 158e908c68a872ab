"""The relational calls of DataSet: columns, rows, their order and their groups.

    select with_columns drop rename        projections.py
    filter distinct union limit sort top   operators of the plan
    group_by                               grouped.py

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from engine.api.aggregate_nodes import aggregate_node
from engine.api.calls import Calls, row_count
from engine.api.expression import Expr
from engine.api.functions import python_function
from engine.api.grouped import GroupedDataSet
from engine.api.joins import union_node
from engine.api.projections import (
    check_columns,
    column_names,
    flattened,
    project_node,
    renamed,
    to_named,
    with_columns,
)
from engine.api.python_habits import plain_truth
from engine.errors import SchemaError
from engine.expressions.infer import check_predicate, with_typed_texts
from engine.expressions.schema_bridge import is_key_type
from engine.functions.user_function import function_of
from engine.graph.expression import ColumnRef, NamedExpression, has_window
from engine.graph.plan import Filter, Limit, Sort
from engine.graph.sort_key import SortKey


class RelationalCalls(Calls):
    """Base of DataSet with the calls that SQL has too."""

    def __getitem__(self, item: Any) -> Any:
        """Return the column of that name as an expression, or with a list of names these columns as a data set."""
        if isinstance(item, str):
            check_columns([item], self.schema)
            return Expr(ColumnRef(item))
        if isinstance(item, list | tuple):
            return self.select(*item)
        if isinstance(item, Expr):
            raise SchemaError(f"data_set[{item!r}]: rows are chosen with data_set.filter(...)")
        raise SchemaError(
            f"data_set[{item!r}]: rows have no numbers; data_set.limit(n) has the first rows, data_set.collect() all"
        )

    def select(self, *columns: Any) -> Self:
        """Return these columns, names or expressions, in this order."""
        return self._project([to_named(value) for value in flattened(columns)], "select")

    def with_columns(self, *columns: Expr, **named: Any) -> Self:
        """Return all columns and these; a new one replaces the column of the same name, in its place.

        Expressions see the columns as they were before.
        """
        return self._project(with_columns(self.schema, columns, named), "with_columns")

    def _project(self, named: list[NamedExpression], what: str) -> Self:
        if not any(has_window(one.expression) for one in named):
            return self._with(project_node(self._node, named, what))
        from engine.api.window_nodes import windowed_project  # noqa: PLC0415 - start-up time

        return self._with(windowed_project(self._node, named, what))

    def drop(self, *columns: Any) -> Self:
        """Return all columns except these."""
        dropped = column_names(list(columns), "drop")
        check_columns(dropped, self.schema)
        kept = [NamedExpression(name, ColumnRef(name)) for name in self.schema.names if name not in dropped]
        return self._with(project_node(self._node, kept, "drop"))

    def rename(self, names: Mapping[str, str] | None = None, **more: str) -> Self:
        """Return the columns under new names: ``rename({"old": "new"})`` or ``rename(old="new")``."""
        return self._with(project_node(self._node, renamed(self.schema, {**(names or {}), **more}), "rename"))

    def filter(self, condition: Any) -> Self:
        """Return the rows for which a condition is true: an expression of bools, or a Python function of the row.

        ``col("a") is None`` is decided by Python and is always False; write ``col("a").is_null()``.
        """
        if isinstance(condition, Expr) and has_window(condition.expression):
            from engine.api.window_nodes import windowed_filter  # noqa: PLC0415 - start-up time

            return self._with(windowed_filter(self._node, condition.expression))
        if isinstance(condition, Expr):
            check_predicate(condition.expression, self.schema)
            return self._same_rows(Filter(with_typed_texts(condition.expression, self.schema)))
        if isinstance(condition, bool):
            raise plain_truth(condition, "filter")
        if function_of("filter", condition) is None:
            raise SchemaError(f"filter({condition!r}): expected an expression such as col('a') > 1, or a function")
        return self._same_rows(python_function("filter", condition))

    def distinct(self) -> Self:
        """Return each different row once; null equals null here."""
        for field in self.schema:
            if not is_key_type(field.type):
                raise SchemaError(f"distinct: column {field.name!r} is {field.type}, which cannot be compared; drop it")
        return self._with(aggregate_node(self._node, tuple(self.schema.names), ()))

    def union(self, *others: Self) -> Self:
        """Return the rows of all, duplicates too (UNION ALL). Columns are matched by name and widened."""
        nodes = [self._partner(other, "union") for other in flattened(others)]
        return self._with(union_node([self._node, *nodes])) if nodes else self

    def limit(self, count: int) -> Self:
        """Return at most ``count`` rows; the first ones after a sort, else any."""
        return self._same_rows(Limit(row_count(count, "limit")))

    def sort(self, by: Any, descending: bool | list[bool] = False, nulls_last: bool | list[bool] = False) -> Self:
        """Return the rows in total order of one or several columns.

        ``descending`` is one value for all keys or one for each; ``nulls_last`` does not depend on it. NaN is the
        largest number.
        """
        return self._same_rows(Sort(self._sort_keys(by, descending, nulls_last, "sort")))

    def top(
        self, count: int, by: Any, descending: bool | list[bool] = True, nulls_last: bool | list[bool] = True
    ) -> Self:
        """Return ``count`` rows with the largest values of ``by``, largest first (``descending=False``: smallest)."""
        keys = self._sort_keys(by, descending, nulls_last, "top")
        return self._same_rows(Sort(keys, limit=row_count(count, "top")))

    def _sort_keys(
        self, by: Any, descending: bool | list[bool], nulls_last: bool | list[bool], what: str
    ) -> tuple[SortKey, ...]:
        names = column_names(by, what)
        check_columns(names, self.schema)
        if not names or len(set(names)) < len(names):
            raise SchemaError(f"{what}: no key, or one given twice: {', '.join(names)}")
        for name in names:
            if not is_key_type(self.schema.field(name).type):
                raise SchemaError(f"{what}: column {name!r} is {self.schema.field(name).type}, which has no order")
        flags = []
        for option, value in (("descending", descending), ("nulls_last", nulls_last)):
            values = list(value) if isinstance(value, list | tuple) else [value] * len(names)
            if len(values) != len(names) or not all(isinstance(flag, bool) for flag in values):
                raise SchemaError(f"{what}: {option}={value!r}: a bool, or one for each of {', '.join(names)}")
            flags.append(values)
        return tuple(SortKey(*key) for key in zip(names, *flags, strict=True))

    def group_by(self, *keys: Any) -> GroupedDataSet[Self]:
        """Return the groups of rows with equal keys (names or expressions); without keys, one group."""
        return GroupedDataSet(self._node, keys, self._with)

    def agg(self, *aggregates: Any, **named: Any) -> Self:
        """Return aggregates of all rows, as one row: ``agg(total=sum_("x"))`` is ``group_by().agg(total=...)``."""
        return self.group_by().agg(*aggregates, **named)
