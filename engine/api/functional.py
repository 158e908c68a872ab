"""The functional calls of DataSet: Python functions over rows, batches, subtasks and groups, and where rows go.

    map flat_map map_batches map_partition     one input         filter(callable): relational_calls.py
    group_by(k).reduce                         grouped.py        co_group(other, on, fn, schema)
    with_broadcast(name=data_set)              behind any of them: data sets that every subtask sees whole

A function is a callable, or an object with a method named like the call; engine.functions.user_function says what
``open(context)`` and ``close()`` of such an object are given. ``schema`` is that of the rows returned.

Partitionings say how rows are spread over the subtasks of what comes next.

    call                        a row goes to                                            shown as
    shuffle()                   a random subtask                                         SHUFFLE
    rebalance()                 the next subtask, from a random one on                   REBALANCE
    rescale()                   the next one of the subtasks nearby                      RESCALE
    broadcast()                 every subtask                                            BROADCAST
    global_()                   subtask 0                                                GLOBAL
    forward()                   the subtask of its own number                            FORWARD
    key_by(*keys)               the subtask of its key's key group, as in Flink          KEYGROUP
    partition_by_range(*keys)   the subtask of its range of keys                         RANGE
    partition_custom(fn, *keys) the subtask that fn says                                 CUSTOM

A partitioning is followed, never optimised away, and of two in a row the last one counts. The number of subtasks is
that of ``set_parallelism`` behind it, or of the operator it leads into, or the default. No call given: rows stay in
their subtask where both sides have the same number of them, and go in turn where they have not.

Only ``broadcast`` changes which rows there are: what reads it sees each row once in each of its subtasks.

Held by: tests/api/test_data_set.py
Held by: tests/integration/test_partitioning.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from msgspec.structs import replace

from engine.api.calls import Calls
from engine.column_expressions.data_types import output_schema
from engine.column_expressions.named_columns import column_names
from engine.errors import PlanError, SchemaError
from engine.expressions.schema_bridge import to_column_info
from engine.graph.call_policy import ERROR_COLUMNS, CallPolicy
from engine.graph.plan import Partition, PythonFunction, Source
from engine.lowering.logical_node import LogicalNode
from engine.records.key_types import is_key_type, key_remedy

if TYPE_CHECKING:
    from engine.choices import BatchFormat, OnError


def _refuse_nulls_of_errors(kind: str, policy: CallPolicy, not_null: tuple[str, ...]) -> None:
    """Raise SchemaError where a row that fails has nulls in place of what the function returns, and may not."""
    if not_null and policy.on_error in ("null", "collect"):
        raise SchemaError(
            f"{kind}: on_error={policy.on_error!r} gives nulls for a row that fails, and column {not_null[0]!r} is not"
            " nullable; leave nullable=False out of the schema"
        )


def _with_errors(schema: pa.Schema, given: pa.Schema, kind: str) -> pa.Schema:
    """Return the schema of what a function returns with ERROR_COLUMNS behind; ``given``: that of its input."""
    for name in ERROR_COLUMNS:
        if name in schema.names:
            raise SchemaError(
                f"{kind}: on_error='collect' adds a column {name!r}, which the schema has; rename it there"
            )
    types = (pa.string(), pa.string(), pa.struct(list(given)))
    return pa.schema([*schema, *map(pa.field, ERROR_COLUMNS, types)])


class FunctionalCalls(Calls):
    """Base of DataSet with the calls that take Python functions, and those that say where rows go."""

    def map(
        self,
        fn: Any,
        schema: pa.Schema | None = None,
        columns: Any = None,
        *,
        concurrency: int | None = None,
        retries: int = 0,
        retry_delay: float = 0.0,
        on_error: OnError = "fail",
    ) -> Self:
        """Return one row (tuple, dict, dataclass object or row) for each row, made by a Python function.

        With ``columns``, a name or a list of them, the function is called with the values of these instead of a row.
        Where ``schema`` has one column, a plain value is a row too.

        Without ``schema``, the function's return type says it (a NamedTuple, ``tuple[int, str]``), or the
        function is called with the first rows, in a small job that runs at once, and a warning says what they gave.

        An ``async`` function has at most ``concurrency`` calls (16) in flight in each subtask; results keep the order
        of the rows. A call that fails is made ``retries`` times again, ``retry_delay`` seconds later. A row that still
        fails, or whose result does not fit, fails the job, or with ``on_error``: "null" has a row of nulls, "skip" has
        none, "collect" has nulls and says why in three more columns, which are null where the function did well:
        ``error`` ("ValueError: ..."), ``error_place`` ("FILE, line N"), and ``error_input``, a struct of the columns
        of the input row. The job's counters say how many rows failed.

        >>> halves = rows({"x": [4, 0]}).map(lambda x: 8 // x, pa.schema([("y", pa.int64())]), "x", on_error="collect")
        >>> halves.select("y", "error_input").collect()
        [Row(y=2, error_input=None), Row(y=None, error_input={'x': 0})]
        """
        from engine.functions.python_functions import call_policy

        policy = call_policy("map", fn, concurrency, retries, retry_delay, on_error)
        return self._python("map", fn, schema, columns, policy)

    def flat_map(
        self,
        fn: Any,
        schema: pa.Schema | None = None,
        columns: Any = None,
        *,
        concurrency: int | None = None,
        retries: int = 0,
        retry_delay: float = 0.0,
        on_error: OnError = "fail",
    ) -> Self:
        """Return any number of rows for each row: the function gives an iterable of them. Arguments as of ``map``.

        An ``async`` function returns the iterable, or is an asynchronous generator. Of a call that fails nothing is
        kept, with ``on_error="null"`` or "collect" one row of nulls; a row that does not fit fails by itself.

        >>> words = rows({"line": ["a b", "c"]}).flat_map(str.split, pa.schema([("word", pa.string())]), "line")
        >>> words.collect()
        [Row(word='a'), Row(word='b'), Row(word='c')]
        """
        from engine.functions.python_functions import call_policy

        policy = call_policy("flat_map", fn, concurrency, retries, retry_delay, on_error)
        return self._python("flat_map", fn, schema, columns, policy)

    def split_errors(self) -> tuple[Self, Self]:
        """Return the results of ``on_error="collect"``, and the rows that failed: error, place and input.

        Both are data sets: where one job writes both, the function is called once for each row.

        >>> halves = rows({"x": [4, 0]}).map(lambda x: 8 // x, pa.schema([("y", pa.int64())]), "x", on_error="collect")
        >>> good, failed = halves.split_errors()
        >>> good.collect(), failed.select("error_input").collect()
        ([Row(y=2)], [Row(error_input={'x': 0})])
        """
        missing = [name for name in ERROR_COLUMNS if name not in self.schema.names]
        if missing:
            raise SchemaError(
                f"split_errors: there is no column {missing[0]!r}; call it right behind map or flat_map with"
                " on_error='collect'"
            )
        from engine.column_expressions.expressions import col

        data: Any = self
        failed = col(ERROR_COLUMNS[0]).is_not_null()
        return data.filter(~failed).drop(*ERROR_COLUMNS), data.filter(failed).select(*ERROR_COLUMNS)

    def map_batches(self, fn: Any, schema: pa.Schema, format: BatchFormat = "arrow") -> Self:  # noqa: A002
        """Return the rows of the batch, or of the iterable of batches, that a function gives for each batch.

        format: "arrow" (pyarrow.RecordBatch), "pandas" or "polars" (DataFrame) or "numpy" (dict of arrays), in and out.
        """
        from engine.functions.batch_formats import FORMATS

        if format not in FORMATS:
            raise SchemaError(f"map_batches: format {format!r} is none of {', '.join(FORMATS)}")
        return self._python(f"map_batches:{format}", fn, schema)

    def map_partition(self, fn: Any, schema: pa.Schema | None = None) -> Self:
        """Return the rows of the iterable that a function gives for an iterator over all rows of a subtask.

        The function is called once in each subtask. It may read as far as it likes and return rows while it reads;
        nothing is collected on the way.
        """
        return self._python("map_partition", fn, schema)

    def co_group(self, other: Self, on: Any, fn: Any, schema: pa.Schema | None = None) -> Self:
        """Return the rows that a function gives for the left and the right rows of each key that either side has.

        ``fn(left_rows, right_rows)`` is given two iterators that read on demand; reading left rows first is cheapest.
        ``on`` names columns of both sides, whose types are widened as in a join; rows with null keys are one group.
        """
        from engine.functions.python_functions import python_function
        from engine.functions.schema_inference import function_schema
        from engine.lowering.function_nodes import co_group_node

        right = self._partner(other, "co_group")
        plain, not_null = output_schema(function_schema("co_group", fn, schema, _no_results), "co_group")
        function = replace(python_function("co_group", fn), not_null=not_null)
        return self._with(co_group_node(self._node, right, column_names(on, "co_group on"), function, plain))

    def with_broadcast(self, *unnamed: Any, **data_sets: Self) -> Self:
        """Return this data set; the function that computes it gets whole data sets: ``broadcast(name)``.

        Goes right behind a functional call, whose function is an object with ``open(context)``;
        ``context.broadcast("name")`` is the list of all rows. Each subtask holds its own copy, so these data sets must
        be small: at most a quarter of the budget of pages, else the job fails with MemoryBudgetError.
        """
        from engine.lowering.function_nodes import with_broadcasts

        if unnamed:
            raise SchemaError("with_broadcast: the function asks for a data set by its name: write name=data")
        nodes = {name: self._partner(data_set, "with_broadcast") for name, data_set in data_sets.items()}
        return self._with(with_broadcasts(self._node, nodes))

    def _python(
        self,
        kind: str,
        function: Any,
        schema: pa.Schema | None,
        columns: Any = None,
        policy: CallPolicy | None = None,
    ) -> Self:
        from engine.functions.python_functions import python_function
        from engine.functions.schema_inference import function_schema

        arguments = () if columns is None else tuple(self._names(columns, f"{kind} columns"))
        if columns is not None and not arguments:
            raise SchemaError(f"{kind}: columns= has no columns")
        whole = function_schema(kind, function, schema, self._first_results, arguments, policy)
        plain, not_null = output_schema(whole, kind)
        if policy is not None:
            _refuse_nulls_of_errors(kind, policy, not_null)
        if policy is not None and policy.is_collecting:
            plain = _with_errors(plain, self.schema, kind)
        operator = replace(python_function(kind, function), arguments=arguments, policy=policy, not_null=not_null)
        return self._with(LogicalNode(operator, (self._node,), plain))

    def shuffle(self) -> Self:
        """Send each row to a random subtask: uniform, independent, different at each run."""
        return self._same_rows(Partition("SHUFFLE"))

    def rebalance(self) -> Self:
        """Distribute rows in turn: from each producer, subtasks get equally many, give or take one."""
        return self._same_rows(Partition("REBALANCE"))

    def rescale(self) -> Self:
        """Distribute rows in turn among the subtasks nearby: less traffic than ``rebalance``.

        From 2 to 4 subtasks each producer feeds two of its own, from 4 to 2 two producers feed one.
        """
        return self._same_rows(Partition("RESCALE"))

    def broadcast(self) -> Self:
        """Return every row once in each subtask: with p subtasks what follows sees p copies of each row.

        Made for ``map_partition`` and its like, each subtask of which then has all rows. A join needs none of this: it
        broadcasts a small side by itself.
        """
        return self._same_rows(Partition("BROADCAST"))

    def global_(self) -> Self:
        """Send all rows to subtask 0; the other subtasks have none."""
        return self._same_rows(Partition("GLOBAL"))

    def forward(self) -> Self:
        """Keep each row in the subtask of the number that it came from.

        Raises: PlanError, when the plan is made, if what follows has another parallelism.
        """
        return self._same_rows(Partition("FORWARD"))

    def key_by(self, *keys: Any) -> Self:
        """Send equal keys to one subtask, by Flink's key groups (128 of them up to 85 subtasks).

        Args:
            keys: names of columns, one or more; a ``group_by`` of them that follows needs no exchange of its own.

        Raises: SchemaError for a column that is not there or cannot be a key; the job fails with DataError for a row
        with a null key.
        """
        return self._same_rows(Partition("KEYGROUP", self._partition_keys(keys, "key_by")))

    def partition_by_range(self, *keys: Any) -> Self:
        """Partition by ranges: subtask i has smaller keys than subtask i + 1, equal ones in one; nulls come first.

        The bounds come from samples of all rows, so subtasks get about equally many. It is done by a sort: inside a
        subtask rows are in order, too.

        Args:
            keys: names of columns, one or more, compared in this order.

        Raises: SchemaError for a column that is not there or has no order.
        """
        return self._same_rows(Partition("RANGE", self._partition_keys(keys, "partition_by_range")))

    def partition_custom(self, fn: Any, *keys: Any) -> Self:
        """Send each row to the subtask that a Python function returns.

        Args:
            fn: called for each row as ``fn(key, ..., count)`` with the values of the keys (None for null) and the
                number of subtasks; returns an int, 0 <= subtask < count. It runs in a worker process.
            keys: names of columns, one or more, of any type.

        Raises: SchemaError for a column that is not there; the job fails with the function's name, file and line for
        an exception in it or for what is no subtask.
        """
        from engine.functions.python_functions import python_function

        names = tuple(self._names(list(keys), "partition_custom"))
        if not names:
            raise SchemaError("partition_custom: no key; name the columns that the function is to see")
        from engine.functions.function_body import CHANNEL_COLUMN

        if CHANNEL_COLUMN in self._node.schema.names:
            raise SchemaError(f"partition_custom: a column is called {CHANNEL_COLUMN!r}, a name in use; rename it")
        channel = to_column_info(pa.field(CHANNEL_COLUMN, pa.int32()))
        return self._same_rows(Partition("CUSTOM", names, python_function("partition", fn), channel))

    def replicated(self) -> Self:
        """Allow each subtask of a join to read all of these rows by itself.

        A hint for a small side that is read from outside (behind it only ``select``, ``filter`` and their like): such
        a join needs no exchange. It never changes the result: whatever else reads the rows reads them once.

        Raises: PlanError when this is not a source.
        """
        operator = self._node.operator
        if not isinstance(operator, Source):
            raise PlanError("replicated() is for a source: call it right behind read_csv, from_arrow and so on")
        source = Source(operator.spec, operator.statistics, is_replicated=True, rate_limit=operator.rate_limit)
        return self._with(replace(self._node, operator=source))

    def _partition_keys(self, keys: tuple[Any, ...], what: str) -> tuple[str, ...]:
        names = tuple(self._names(list(keys), what))
        if not names or len(set(names)) < len(names):
            raise SchemaError(f"{what}: no key, or one given twice: {', '.join(names)}")
        for name in names:
            data_type = self._node.schema.field(name).type
            if not is_key_type(data_type):
                raise SchemaError(f"{what}: column {name!r} is {data_type}, which is no key: {key_remedy(data_type)}")
        return names


def _no_results(_function: PythonFunction, schema: pa.Schema) -> pa.Table:
    """Return nothing: the first rows of two data sets need not have a key in common."""
    return schema.empty_table()
