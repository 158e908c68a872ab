"""DataSet: an immutable handle on one node of a program under construction. Every method gives a new one.

    relational   select filter with_columns drop rename distinct union limit sort top join group_by
    functional   map flat_map filter map_batches map_partition co_group with_broadcast (functional.py)
    placement    name set_parallelism    shuffle rebalance rescale broadcast global_ forward key_by
                 partition_by_range partition_custom    replicated (partitioning.py)
    results      write_csv write_parquet write_records write_text (run by env.execute())
                 collect to_arrow to_pandas count show (run at once)
    looking      schema columns explain

Nothing runs before a result is asked for; names and types are checked at once, so that an error points at the line
that made it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec.structs import replace

from engine.api.aggregate_nodes import aggregate_node
from engine.api.expression import Expr
from engine.api.functional import FunctionalCalls
from engine.api.functions import python_function
from engine.api.grouped import GroupedDataSet
from engine.api.joins import JoinKeys, join_node, union_node
from engine.api.logical_node import LogicalNode
from engine.api.partitioning import PartitioningCalls
from engine.api.projections import (
    check_columns,
    column_names,
    flattened,
    project_node,
    renamed,
    to_named,
    with_columns,
)
from engine.api.python_habits import RowsLater, plain_truth
from engine.api.results import format_table, table_to_rows
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.expressions.infer import check_predicate, with_typed_texts
from engine.expressions.schema_bridge import is_key_type
from engine.files.paths import local_path
from engine.functions.first_calls import FIRST_ROWS
from engine.functions.user_function import function_of
from engine.graph.expression import AggregateCall, ColumnRef, NamedExpression, has_window
from engine.graph.plan import Filter, JoinHint, Limit, Operator, PythonFunction, Sink, Sort
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec
from engine.parquet.source import plain_file_schema, stored_schema
from engine.records.python_values import check_times

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

    from engine.api.runner import Runner
    from engine.functions.row import Row

PathLike = str | os.PathLike[str]


#: more rows than there are anywhere, and an int64 with one to spare
_ROWS_MAX = 2**62


def _row_count(count: Any, what: str) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise PlanError(f"{what}({count!r}): a number of rows, 0 or more")
    return min(count, _ROWS_MAX)


class DataSet(FunctionalCalls["DataSet"], PartitioningCalls["DataSet"], RowsLater):
    """Rows that an operator makes."""

    def __init__(self, environment: Runner, node: LogicalNode) -> None:
        self._environment = environment
        self._node = node

    def __repr__(self) -> str:
        return f"<DataSet {', '.join(f'{field.name}: {field.type}' for field in self.schema)}>"

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

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, in order."""
        return self._node.schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.schema.names)

    def _with(self, node: LogicalNode) -> DataSet:
        return DataSet(self._environment, node)

    def _same_rows(self, operator: Operator) -> DataSet:
        return self._with(LogicalNode(operator, (self._node,), self.schema))

    def _partner(self, other: Any, what: str) -> LogicalNode:
        """Return the node of another data set of the same environment."""
        if not isinstance(other, DataSet):
            raise SchemaError(f"{what}: expected a DataSet, got {type(other).__name__}")
        if other._environment is not self._environment:
            raise PlanError(f"{what}: the data sets belong to two environments")
        return other._node

    def _first_results(self, function: PythonFunction, schema: pa.Schema) -> pa.Table:
        first = LogicalNode(Limit(FIRST_ROWS), (self._node,), self.schema)
        return self._environment.sample(LogicalNode(function, (first,), schema, parallelism=1))

    # relational ------------------------------------------------------------------------------------------------

    def select(self, *columns: Any) -> DataSet:
        """Return these columns, names or expressions, in this order."""
        return self._project([to_named(value) for value in flattened(columns)], "select")

    def with_columns(self, *columns: Expr, **named: Any) -> DataSet:
        """Return all columns and these; a new one replaces the column of the same name, in its place.

        Expressions see the columns as they were before.
        """
        return self._project(with_columns(self.schema, columns, named), "with_columns")

    def _project(self, named: list[NamedExpression], what: str) -> DataSet:
        if not any(has_window(one.expression) for one in named):
            return self._with(project_node(self._node, named, what))
        from engine.api.window_nodes import windowed_project  # noqa: PLC0415 - start-up time

        return self._with(windowed_project(self._node, named, what))

    def drop(self, *columns: Any) -> DataSet:
        """Return all columns except these."""
        dropped = column_names(list(columns), "drop")
        check_columns(dropped, self.schema)
        kept = [NamedExpression(name, ColumnRef(name)) for name in self.schema.names if name not in dropped]
        return self._with(project_node(self._node, kept, "drop"))

    def rename(self, names: Mapping[str, str] | None = None, **more: str) -> DataSet:
        """Return the columns under new names: ``rename({"old": "new"})`` or ``rename(old="new")``."""
        return self._with(project_node(self._node, renamed(self.schema, {**(names or {}), **more}), "rename"))

    def filter(self, condition: Any) -> DataSet:
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

    def distinct(self) -> DataSet:
        """Return each different row once; null equals null here."""
        for field in self.schema:
            if not is_key_type(field.type):
                raise SchemaError(f"distinct: column {field.name!r} is {field.type}, which cannot be compared; drop it")
        return self._with(aggregate_node(self._node, tuple(self.schema.names), ()))

    def union(self, *others: DataSet) -> DataSet:
        """Return the rows of all, duplicates too (UNION ALL). Columns are matched by name and widened."""
        nodes = [self._partner(other, "union") for other in flattened(others)]
        return self._with(union_node([self._node, *nodes])) if nodes else self

    def limit(self, count: int) -> DataSet:
        """Return at most ``count`` rows; the first ones after a sort, else any."""
        return self._same_rows(Limit(_row_count(count, "limit")))

    def sort(self, by: Any, descending: bool | list[bool] = False, nulls_last: bool | list[bool] = False) -> DataSet:
        """Return the rows in total order of one or several columns.

        ``descending`` is one value for all keys or one for each; ``nulls_last`` does not depend on it. NaN is the
        largest number.
        """
        return self._same_rows(Sort(self._sort_keys(by, descending, nulls_last, "sort")))

    def top(
        self, count: int, by: Any, descending: bool | list[bool] = True, nulls_last: bool | list[bool] = True
    ) -> DataSet:
        """Return ``count`` rows with the largest values of ``by``, largest first (``descending=False``: smallest)."""
        keys = self._sort_keys(by, descending, nulls_last, "top")
        return self._same_rows(Sort(keys, limit=_row_count(count, "top")))

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

    def join(
        self,
        other: DataSet,
        on: Any = None,
        left_on: Any = None,
        right_on: Any = None,
        how: str = "inner",
        hint: JoinHint | str | None = None,
        condition: Expr | None = None,
        null_aware: bool = False,
    ) -> DataSet:
        """Return the pairs of rows with equal keys; nulls match nothing.

        ``on`` (names on both sides) gives one key column, ``left_on`` and ``right_on`` keep both. ``how`` in inner left
        right full semi anti cross; semi and anti return the left columns, cross has no keys. A pair must also meet
        ``condition``, an expression over the columns of both sides. ``null_aware`` makes ``how="anti"`` SQL's NOT IN.
        """
        right = self._partner(other, "join")
        keys = JoinKeys(on, left_on, right_on)
        return self._with(join_node(self._node, right, how, keys, hint, condition, null_aware))

    def group_by(self, *keys: Any) -> GroupedDataSet[DataSet]:
        """Return the groups of rows with equal keys (names or expressions); without keys, one group."""
        return GroupedDataSet(self._node, keys, self._with)

    # placement -------------------------------------------------------------------------------------------------

    def name(self, name: str) -> DataSet:
        """Return the same rows; their operator is shown under this name."""
        return self._with(replace(self._node, name=str(name)))

    def set_parallelism(self, parallelism: int) -> DataSet:
        """Return the same rows, made by this many subtasks."""
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            raise PlanError(f"set_parallelism({parallelism!r}): a number of subtasks, 1 or more")
        return self._with(replace(self._node, parallelism=parallelism))

    # results ---------------------------------------------------------------------------------------------------

    def write_csv(self, path: PathLike, header: bool = False, delimiter: str = ",", overwrite: bool = False) -> None:
        """Let the next ``env.execute()`` write a folder of ``part-00000.csv`` and so on.

        A null is written as nothing, an empty string as ``""``. A path that exists is an error unless ``overwrite``.
        """
        from engine.csv.writer import check_csv_sink  # noqa: PLC0415 - start-up time

        check_csv_sink(self.schema, delimiter)
        self._add_sink(SinkSpec("csv", local_path(path, "write_csv"), overwrite, header, delimiter))

    def write_parquet(self, path: PathLike, overwrite: bool = False) -> None:
        """Let the next ``env.execute()`` write a folder of ``part-00000.parquet`` and so on.

        A column of a type that Parquet does not have is a SchemaError; seconds (timestamp[s], time32[s]) are written as
        milliseconds, date64 as date32. A path that exists is an error unless ``overwrite``.
        """
        stored_schema(self.schema, "write_parquet")
        self._add_sink(SinkSpec("parquet", local_path(path, "write_parquet"), overwrite))

    def write_records(self, path: PathLike, overwrite: bool = False) -> None:
        """Let the next ``env.execute()`` write a record data set: ``part-00000.parquet`` and so on, and a manifest.

        The manifest (``_manifest.json``) has the schema, rows, bytes and checksums of the parts, and for each column
        its bounds, nulls, heavy values and an estimate of distinct values; ``read_records`` plans with it, and Spark
        reads the same folder. ``read_records`` gives the same types back; one that Parquet does not have is a
        SchemaError. A path that exists is an error unless ``overwrite``, which replaces it at once.
        """
        stored_schema(self.schema, "write_records")
        schema_ipc = plain_file_schema(self.schema).serialize().to_pybytes()
        self._add_sink(SinkSpec("records", local_path(path, "write_records"), overwrite, schema_ipc=schema_ipc))

    def write_text(self, path: PathLike, overwrite: bool = False) -> None:
        r"""Let the next ``env.execute()`` write a folder of ``part-00000.txt`` and so on: a line for each row.

        There must be exactly one column, of strings (SchemaError). As in Spark a null is an empty line, and a value
        with a line end in it reads back as several lines. A path that exists is an error unless ``overwrite``.
        """
        from engine.connectors.text_writer import check_text_sink  # noqa: PLC0415 - start-up time

        check_text_sink(self.schema)
        self._add_sink(SinkSpec("text", local_path(path, "write_text"), overwrite))

    def _add_sink(self, spec: SinkSpec) -> None:
        self._environment.add_sink(LogicalNode(Sink(spec), (self._node,), self.schema))

    def to_arrow(self) -> pa.Table:
        """Run what this data set needs and return its rows; their order follows a sort."""
        return self._environment.run_to_table(self._node)

    def collect(self) -> list[Row]:
        """Run what this data set needs and return its rows: ``row.x``, ``row["x"]``, or unpacked."""
        return table_to_rows(self.to_arrow())

    def to_pandas(self) -> pd.DataFrame:
        """Run what this data set needs and return a pandas frame (pandas must be installed)."""
        table = self.to_arrow()
        for name, column in zip(table.column_names, table.columns, strict=True):
            check_times(name, column)
        return table.to_pandas()

    def count(self) -> int:
        """Run what this data set needs and return the number of rows."""
        counted = aggregate_node(self._node, (), (AggregateCall("count_all", None, "count"),))
        return int(self._environment.run_to_table(counted).column(0)[0].as_py())

    def show(self, count: int = 20) -> None:
        """Run what the first rows need and print them as a table."""
        rows = self.limit(_row_count(count, "show") + 1).to_arrow()
        sys.stdout.write(format_table(rows, count))

    def explain(self, analyze: bool = False, format: str = "text") -> str:  # noqa: A002
        """Return how the data set would be computed: strategies, sizes and their origin, costs, what lost and why.

        analyze: compute it, keep no rows, and return for each operator what was expected beside what happened: rows,
        bytes, its own time, managed memory, what it spilled, processor time of its function.
        format: "text", or "json" with analyze.
        """
        if format not in ("text", "json"):
            known = "not there yet" if format == "html" else "unknown"
            raise NotYetSupportedError(f"explain(format={format!r}): {known}; choose text, or json with analyze=True")
        if analyze:
            return self._environment.analyze_node(self._node, as_json=format == "json")
        if format == "json":
            raise NotYetSupportedError("explain(format='json') without analyze=True; choose text")
        return self._environment.explain_node(self._node)
