"""DataSet: an immutable handle on one node of a program under construction. Every method gives a new one.

    relational   select filter with_columns drop rename distinct union limit sort top group_by agg join asof_join
                 intersect except_ (relational_calls.py)
    rows         head tail sample drop_nulls fill_null drop_duplicates with_row_index pipe transform explode unnest
                 unpivot pivot describe (row_calls.py)
    time         group_by_dynamic rolling upsample (time_groups.py)
    functional   map flat_map map_batches map_partition co_group with_broadcast    shuffle rebalance rescale broadcast
                 global_ forward key_by partition_by_range partition_custom replicated (functional.py)
    outputs      write_csv write_parquet and the like, run by env.execute(); merge_into (output_calls.py)
    results      collect to_dict to_dicts to_arrow to_pandas to_polars to_spark count show, run at once; to_batches
                 iter_rows, while the job runs (result_stream.py); cache, for later jobs (cached_rows.py); explain
    looking      glimpse null_count value_counts assert_schema merge_sorted
    placement    name set_parallelism
    schema       schema columns (calls.py)

Nothing runs before a result is asked for; names and types are checked at once, so that an error points at the line
that made it.

Held by: tests/api/test_data_set.py
Held by: tests/api/test_environment.py
Held by: tests/integration/test_looking_calls.py
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
from msgspec.structs import replace

from engine.api.calls import row_count
from engine.api.functional import FunctionalCalls
from engine.api.other_options import with_other_options
from engine.api.output_calls import OutputCalls
from engine.api.results import format_table, html_of_rows, table_to_rows
from engine.api.row_calls import RowCalls
from engine.api.time_groups import DynamicGroups, RollingGroups, dynamic_groups, rolling_groups, upsampled
from engine.client.notebook_progress import display_html, is_notebook
from engine.column_expressions.data_types import to_data_type
from engine.errors import EngineError, NotYetSupportedError, PlanError, SchemaError
from engine.graph.expression import AggregateCall, ColumnRef, NamedExpression
from engine.graph.plan import Limit
from engine.lowering.logical_node import CachedRows
from engine.lowering.projections import project_node
from engine.records.python_values import check_times
from engine.shown_html import folded_html

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    import polars as pl

    from engine.api.result_stream import ResultStream
    from engine.choices import ExplainFormat, WindowEnds, WindowLabel
    from engine.functions.row import Row


#: width of a line where the output is no terminal, of tables and of ``glimpse``
_WIDTH: Final = 120
_GLIMPSE_WIDTH: Final = 100


@with_other_options
class DataSet(RowCalls, FunctionalCalls, OutputCalls):
    """Rows that an operator makes."""

    def __repr__(self) -> str:
        return f"<DataSet {', '.join(f'{field.name}: {field.type}' for field in self.schema)}>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: columns, and the plan when it is unfolded; nothing runs."""
        from engine.shown_html import folded_html, headed_html, table_html

        try:
            plan = self.explain()
        except EngineError as error:
            plan = str(error)
        fields = table_html(("column", "type"), [(field.name, field.type) for field in self.schema])
        return headed_html("DataSet", fields, folded_html("plan", plan))

    def name(self, name: str) -> Self:
        """Return this data set under a name, by which its operator is shown."""
        return self._with(replace(self._node, name=str(name)))

    def set_parallelism(self, parallelism: int) -> Self:
        """Return this data set, computed by that number of subtasks."""
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            raise PlanError(f"set_parallelism({parallelism!r}): a number of subtasks, 1 or more")
        return self._with(replace(self._node, parallelism=parallelism))

    def to_arrow(self) -> pa.Table:
        """Run what this data set needs and return its rows; their order follows a sort."""
        return self._environment.run_to_table(self._node)

    def collect(self) -> list[Row]:
        """Run what this data set needs and return its rows: ``row.x``, ``row["x"]``, or unpacked."""
        return table_to_rows(self.to_arrow())

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

    def to_batches(self) -> ResultStream:
        """Run what this data set needs and return its rows as Arrow batches, while the job runs.

        The job waits for the reader, so that a result of any size passes through little memory. Leaving early
        (``close()``, ``with``, an error) cancels the job. Sorted rows come in their order.

        >>> with env.from_arrow(pa.table({"n": [1, 2, 3]})).to_batches() as batches:
        ...     print(sum(batch.num_rows for batch in batches))
        3
        """
        return self._environment.stream(self._node)

    def iter_rows(self) -> Iterator[Row]:
        """Run what this data set needs and return an iterator of its rows, while the job runs.

        As ``to_batches``: ``close()`` of the iterator, or its end, cancels the job.

        >>> for row in env.from_arrow(pa.table({"n": [1, 2]})).iter_rows():
        ...     print(row.n)
        1
        2
        """
        with self.to_batches() as batches:
            for batch in batches:
                yield from table_to_rows(pa.Table.from_batches([batch]))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Run what this data set needs and stream its rows as they come: Polars, DuckDB, pyarrow take them."""
        reader = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> pl.DataFrame:
        """Run what this data set needs and return a Polars frame (polars must be installed)."""
        from engine.records.frame_columns import check_polars, frame_library, polars_table

        polars = frame_library("polars", "to_polars()")
        check_polars(self.schema, "to_polars")
        frame: pl.DataFrame = polars.from_arrow(polars_table(self.to_arrow()))
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Run what this data set needs and return a pandas frame (pandas must be installed)."""
        from engine.records.frame_columns import frame_library, pandas_frame

        frame_library("pandas", "to_pandas()")
        table = self.to_arrow()
        for name, column in zip(table.column_names, table.columns, strict=True):
            check_times(name, column)
        return pandas_frame(table)

    def to_spark(self, spark: Any) -> Any:
        """Run what this data set needs and return its rows as a DataFrame of a Spark session.

        A large result lies in a temporary folder of the environment, and can be read until that is closed. Types that
        Spark has not are widened (unsigned numbers) or a SchemaError.

        >>> env.from_rows([(1, "a")], schema).to_spark(spark).collect()  # doctest: +SKIP
        [Row(k=1, t='a')]
        """
        from engine.api.spark_frames import frame_maker

        return frame_maker()(self._environment, self._node, spark)

    def count(self) -> int:
        """Run what this data set needs and return the number of rows."""
        from engine.lowering.aggregate_nodes import aggregate_node

        counted = aggregate_node(self._node, (), (AggregateCall("count_all", None, "count"),))
        return int(self._environment.run_to_table(counted).column(0)[0].as_py())

    def show(self, count: int = 20, width: int | None = None) -> None:
        """Run what the first rows need and print them as a table; a notebook shows it below the cell.

        width: places of a line, those of the terminal where it is None, 120 where the output is no terminal. Columns
        in the middle that have no room are left out, and the last line says so.
        """
        most = _line_width(width, _WIDTH, "show")
        rows = self._same_rows(Limit(row_count(count, "show") + 1)).to_arrow()
        if is_notebook():
            display_html(html_of_rows(rows, count))
        else:
            sys.stdout.write(format_table(rows, count, most))

    def group_by_dynamic(
        self,
        index: Any,
        every: Any,
        period: Any = None,
        offset: Any = None,
        by: Any = None,
        closed: WindowEnds = "left",
        label: WindowLabel = "left",
    ) -> DynamicGroups[Self]:
        """Return windows of time, one each ``every``, for ``agg``; those without rows are left out.

        ``every`` and ``period`` (the length of a window, ``every`` by default) are lengths such as "15 min", "1 day",
        "2 weeks" (from Monday), "1 month", "1 quarter", "1 year", a ``timedelta``, or a number for a column of whole
        numbers. Windows begin at multiples of ``every`` since 1970, ``offset`` later. ``closed``: which ends belong to
        a window, "left", "right", "both" or "none". ``label``: the time that stands for it, "left" or "right". ``by``:
        further keys. Of a zone, days and longer windows are those of its clocks.

        >>> data = rows({"n": [1, 4, 12], "x": [1, 2, 3]})
        >>> data.group_by_dynamic("n", 10).agg(total=sum_("x")).sort("n").collect()
        [Row(n=0, total=3), Row(n=10, total=3)]
        """
        return dynamic_groups(self, index, every, period, offset, by, closed, label)

    def rolling(
        self, index: Any, period: Any, offset: Any = None, by: Any = None, closed: WindowEnds = "right"
    ) -> RollingGroups[Self]:
        """Return the rows of a span of time up to each row, for ``agg``: (time - period, time].

        ``closed``: which ends belong to the span, "left", "right", "both" or "none". ``offset``: where it begins,
        counted from the row's time; ``-period`` by default. ``by``: keys that must be equal. Rows at the same time are
        all within. A day has 24 hours, also where clocks change.

        >>> data = rows({"n": [1, 4, 12], "x": [1, 2, 3]})
        >>> data.rolling("n", 5).agg(total=sum_("x")).sort("n").collect()
        [Row(n=1, total=1), Row(n=4, total=3), Row(n=12, total=3)]
        """
        return rolling_groups(self, index, period, offset, by, closed)

    def upsample(self, index: Any, every: Any, by: Any = None) -> Self:
        """Return rows at each ``every`` from the first time to the last, nulls where there was none, in no order.

        ``every`` is a step as in ``sequence``: "1 day" and "1 month" of the calendar, in a zone by its clocks, "24
        hours" of elapsed time, or a number for a column of whole numbers. ``by``: keys, each with its own first and
        last time. Rows at other times are left out; a time that is null ends the job.
        ``forward_fill`` fills the gaps.

        >>> rows({"n": [1, 3], "x": [5, 7]}).upsample("n", 1).sort("n").to_dicts()
        [{'n': 1, 'x': 5}, {'n': 2, 'x': None}, {'n': 3, 'x': 7}]
        """
        return upsampled(self, index, every, by)

    def glimpse(self, count: int = 5, width: int | None = None) -> None:
        """Run what the first rows need, and print a line for each column: name, type, first values.

        >>> rows({"x": [1, 2], "name": ["a", None]}).glimpse()
        x     int64   1, 2
        name  string  'a', None
        """
        most = (
            shutil.get_terminal_size((_GLIMPSE_WIDTH, 0)).columns
            if width is None
            else row_count(width, "glimpse width")
        )
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

    def cache(self) -> Self:
        """Cache the rows on disk: the first job that needs them stores them, later jobs read them there.

        The files are in the Environment's temporary folder (``TMPDIR``) and go when it is closed. On a cluster the
        folder must be one that client and cluster share. Nothing is computed before a job needs it.

        >>> kept = rows({"x": [1, 2, 3]}).map(lambda row: (row.x * row.x,), pa.schema([("y", pa.int64())])).cache()
        >>> (kept.count(), kept.agg(total=sum_("y")).collect())
        (3, [Row(total=14)])
        """
        named = [NamedExpression(name, ColumnRef(name)) for name in self.schema.names]
        return self._with(replace(project_node(self._node, named, "cache"), name="cache", cached=CachedRows()))

    def explain(
        self,
        logical: bool = False,
        analyze: bool = False,
        format: ExplainFormat = "text",  # noqa: A002
    ) -> str:
        """Explain the plan: strategies, sizes and their origin, costs, rejected alternatives with reasons.

        logical: the operators as the program says them, before they are lowered and optimized.
        analyze: compute it, keep no rows, and return for each operator what was expected beside what happened: rows,
        bytes, its own time, pages, what it spilled, processor time of its function.
        format: "text", "html", or "json" with analyze. With analyze "html" is the page of the job, whole, which a
        notebook shows and a file keeps: the cause of the time in one sentence, the plan, attempts over time. "json" is
        the profile that this page is made of.
        """
        if format not in ("text", "html", "json"):
            raise PlanError(f"explain(format={format!r}): choose text, html, or json with analyze=True")
        if format == "json" and not analyze:
            raise NotYetSupportedError("explain(format='json') without analyze=True; choose text")
        if logical and analyze:
            raise PlanError("explain(logical=True, analyze=True): choose one; what runs is the optimized plan")
        if analyze:
            return self._environment.analyze_node(self._node, form=format)
        plan = self._environment.explain_said(self._node) if logical else self._environment.explain_node(self._node)
        return folded_html("plan", plan, is_open=True) if format == "html" else plan


def _line_width(width: int | None, default: int, what: str) -> int:
    """Return the width of printed lines: the one given, else that of the terminal, else the default."""
    return shutil.get_terminal_size((default, 0)).columns if width is None else row_count(width, f"{what} width")
