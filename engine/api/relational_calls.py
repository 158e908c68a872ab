"""The relational calls of DataSet: columns, rows and their order.

    select with_columns drop rename        projections.py
    filter distinct union limit sort top   operators of the plan

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from engine.api.calls import Calls, row_count
from engine.api.expression import Expr
from engine.api.other_options import with_other_options
from engine.api.projections import column_name, column_names, flattened, renamed, selected, with_columns
from engine.api.python_habits import plain_truth
from engine.errors import SchemaError
from engine.expressions.text import expression_text
from engine.graph.expression import (
    ColumnRef,
    Expression,
    NamedExpression,
    OrderedBy,
    has_data_set,
)
from engine.graph.plan import Explode, Filter, Limit, Page, Project, PythonFunction, Sort, SortBy, Source, Window
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import check_columns, project_node
from engine.lowering.said_nodes import lowered
from engine.records.key_types import is_key_type, key_remedy
from engine.user_warnings import warn_user


def _has_order(node: LogicalNode) -> bool:
    """Whether the rows of a node are in the order of a sort, of files or of a number."""
    while isinstance(node.operator, Project | Filter | PythonFunction | Explode | Limit):
        node = node.inputs[0]
    return isinstance(node.operator, Sort | Source | Window)


@with_other_options
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

    def select(self, *columns: Any, **named: Any) -> Self:
        """Select these columns, names or expressions, in this order; named ones come last.

        >>> rows({"k": [1], "x": [2]}).select("k", double=col("x") * 2).collect()
        [Row(k=1, double=4)]
        """
        return self._project(selected(columns, named), "select")

    def with_columns(self, *columns: Expr, **named: Any) -> Self:
        """Return all columns and these; a new one replaces the column of the same name, in its place.

        Expressions see the columns as they were before.
        """
        return self._project(with_columns(self.schema, columns, named), "with_columns")

    def _project(self, named: list[NamedExpression], what: str) -> Self:
        found, others = self._with_inputs([one.expression for one in named])
        if others:
            named = [NamedExpression(one.name, value) for one, value in zip(named, found, strict=True)]
        return self._with(lowered(Project(tuple(named)), (self._node, *others), what))

    def _with_inputs(self, expressions: list[Expression]) -> tuple[list[Expression], list[LogicalNode]]:
        """Return expressions that speak of data sets by their places among inputs, and the nodes of these."""
        if not any(map(has_data_set, expressions)):
            return expressions, []
        from engine.lowering.data_set_values import with_inputs

        return with_inputs(expressions, self._environment.node_of)

    def drop(self, *columns: Any) -> Self:
        """Return all columns except these."""
        dropped = column_names(list(columns), "drop")
        check_columns(dropped, self.schema)
        kept = [NamedExpression(name, ColumnRef(name)) for name in self.schema.names if name not in dropped]
        return self._with(project_node(self._node, kept, "drop"))

    def rename(self, names: Mapping[str, str] | None = None, **more: str) -> Self:
        """Return the columns under new names: ``rename({"old": "new"})`` or ``rename(old="new")``."""
        return self._with(project_node(self._node, renamed(self.schema, {**(names or {}), **more}), "rename"))

    def filter(self, condition: Any, columns: Any = None) -> Self:
        """Return the rows for which a condition is true: an expression of bools, or a Python function of the row.

        With ``columns``, a name or a list of them, the function is called with the values of these instead of a row.

        ``col("a") is None`` is decided by Python and is always False; write ``col("a").is_null()``.
        """
        if isinstance(condition, Expr):
            (predicate,), others = self._with_inputs([condition.expression])
            return self._with(lowered(Filter(predicate), (self._node, *others)))
        if isinstance(condition, bool):
            raise plain_truth(condition, "filter")
        from engine.api.python_functions import python_function
        from engine.functions.user_function import function_of

        if function_of("filter", condition) is None:
            raise SchemaError(f"filter({condition!r}): expected an expression such as col('a') > 1, or a function")
        if columns is None:
            return self._same_rows(python_function("filter", condition))
        return self._filtered_by_call(condition, column_names(columns, "filter columns"))

    def _filtered_by_call(self, function: Any, names: list[str]) -> Self:
        """Return the rows for whose values in some columns a Python function is true."""
        from engine.api.udfs import truth_of

        check_columns(names, self.schema)
        return self.filter(truth_of(function, names))

    def distinct(self, subset: Any = None) -> Self:
        """Return each different row once; null equals null here.

        With ``subset``, names of columns: one row, any, of those that are equal in them (see ``drop_duplicates``).
        """
        from engine.lowering.aggregate_nodes import aggregate_node

        if subset is not None:
            return self._one_of_each(column_names(subset, "distinct"))
        for field in self.schema:
            if not is_key_type(field.type):
                raise SchemaError(
                    f"distinct: column {field.name!r} is {field.type}, which cannot be compared; drop it, or "
                    + key_remedy(field.type)
                )
        return self._with(aggregate_node(self._node, tuple(self.schema.names), ()))

    def _one_of_each(self, keys: list[str], order: Sequence[OrderedBy] = ()) -> Self:
        """Return the first row of those with equal keys, in an order."""
        from engine.api.windows import over_keys, row_number

        if not keys:
            raise SchemaError("distinct: subset= has no columns")
        return self.filter(row_number().over(keys, *over_keys(order)) == 1)

    def union(self, *others: Self) -> Self:
        """Return the rows of all, duplicates too (UNION ALL). Columns are matched by name and widened."""
        from engine.lowering.joins import union_node

        nodes = [self._partner(other, "union") for other in flattened(others)]
        return self._with(union_node([self._node, *nodes])) if nodes else self

    def limit(self, count: int | None, offset: int = 0) -> Self:
        """Return up to ``count`` rows after the first ``offset``: the first ones of a sort or of files, else any.

        None: all that are left. Pages of a sort fit together, also where keys are equal: each row is in one page, in
        every run and with any parallelism; columns without an order (lists, structs, maps) tell no rows apart. Rows
        that are passed over are counted in one task.

        >>> rows({"k": [1, 1, 1], "x": [3, 4, 5]}).sort("k").limit(2, offset=1).collect()
        [Row(k=1, x=4), Row(k=1, x=5)]
        """
        most = None if count is None else row_count(count, "limit")
        passed = row_count(offset, "limit offset")
        if not passed:
            return self if most is None else self._same_rows(Limit(most))
        if not _has_order(self._node):
            warn_user(
                f"limit(offset={passed}): rows behind a join, a group, a union or an exchange have no order, so that "
                "pages of them may have a row twice or never; sort() them first (in SQL: ORDER BY)"
            )
        return self._with(lowered(Page(most, passed), (self._node,)))

    def sort(self, by: Any, descending: bool | list[bool] = False, nulls_last: bool | list[bool] = False) -> Self:
        """Return the rows in total order of one or several keys, names of columns or expressions.

        ``descending`` is one value for all keys or one for each; ``nulls_last`` does not depend on it. NaN is the
        largest number. Rows with equal keys keep the order of files; behind a join, a group or an exchange they have
        any, but where a limit takes some of them.
        """
        return self._sorted(by, descending, nulls_last, None, "sort")

    def top(
        self, count: int, by: Any, descending: bool | list[bool] = True, nulls_last: bool | list[bool] = True
    ) -> Self:
        """Return ``count`` rows with the largest values of ``by``, largest first (``descending=False``: smallest)."""
        return self._sorted(by, descending, nulls_last, row_count(count, "top"), "top")

    def _sorted(
        self, by: Any, descending: bool | list[bool], nulls_last: bool | list[bool], count: int | None, what: str
    ) -> Self:
        """Return the rows in order, or the first of them."""
        keys = [
            key.expression if isinstance(key, Expr) else ColumnRef(column_name(key, what)) for key in flattened([by])
        ]
        flags = []
        for option, value in (("descending", descending), ("nulls_last", nulls_last)):
            values = list(value) if isinstance(value, list | tuple) else [value] * len(keys)
            if len(values) != len(keys) or not all(isinstance(flag, bool) for flag in values):
                names = ", ".join(map(expression_text, keys))
                raise SchemaError(f"{what}: {option}={value!r}: a bool, or one for each of {names}")
            flags.append(values)
        found, others = self._with_inputs(keys)
        said = SortBy(tuple(OrderedBy(*key) for key in zip(found, *flags, strict=True)), count)
        return self._with(lowered(said, (self._node, *others), what))
