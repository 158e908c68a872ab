"""The functional calls of DataSet: Python functions over rows, batches, subtasks and groups.

    map flat_map map_batches map_partition     one input         filter(callable): relational_calls.py
    group_by(k).reduce                         grouped.py        co_group(other, on, fn, schema)
    with_broadcast(name=data_set)              behind any of them: data sets that every subtask sees whole

A function is a callable, or an object with a method named like the call; engine.functions.user_function says what
``open(context)`` and ``close()`` of such an object are given. ``schema`` is that of the rows returned.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec
import pyarrow as pa

from engine.api.calls import Calls
from engine.api.data_types import declared_schema
from engine.api.projections import column_names
from engine.errors import SchemaError
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.call_policy import ERROR_COLUMNS, CallPolicy
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.plan import CoGroup, GroupReduce, PythonFunction
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import cast_node, check_columns

if TYPE_CHECKING:
    from engine.api.schema_inference import FirstResults


def output_schema(schema: Any, what: str) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return the schema of what a function returns, without nullability and metadata, and the columns without nulls.

    Raises: SchemaError if it is none.
    """
    what = what.partition(":")[0]
    if not isinstance(schema, pa.Schema) or not schema.names:
        raise SchemaError(f"{what}: schema must be a pyarrow.Schema of what the function returns")
    schema = declared_schema(schema, what)
    to_plan_schema(schema)
    plain = pa.schema([pa.field(field.name, field.type) for field in schema])
    return plain, tuple(field.name for field in schema if not field.nullable)


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
    """Base of DataSet with the calls that take Python functions."""

    def map(
        self,
        fn: Any,
        schema: pa.Schema | None = None,
        columns: Any = None,
        *,
        concurrency: int | None = None,
        retries: int = 0,
        retry_delay: float = 0.0,
        on_error: str = "fail",
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
        from engine.api.python_functions import call_policy

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
        on_error: str = "fail",
    ) -> Self:
        """Return any number of rows for each row: the function gives an iterable of them. Arguments as of ``map``.

        An ``async`` function returns the iterable, or is an asynchronous generator. Of a call that fails nothing is
        kept, with ``on_error="null"`` or "collect" one row of nulls; a row that does not fit fails by itself.

        >>> words = rows({"line": ["a b", "c"]}).flat_map(str.split, pa.schema([("word", pa.string())]), "line")
        >>> words.collect()
        [Row(word='a'), Row(word='b'), Row(word='c')]
        """
        from engine.api.python_functions import call_policy

        policy = call_policy("flat_map", fn, concurrency, retries, retry_delay, on_error)
        return self._python("flat_map", fn, schema, columns, policy)

    def map_batches(self, fn: Any, schema: pa.Schema, format: str = "arrow") -> Self:  # noqa: A002
        """Return the rows of the batch, or of the iterable of batches, that a function gives for each batch.

        format: "arrow" (pyarrow.RecordBatch), "pandas" (DataFrame) or "numpy" (dict of arrays), in and out.
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
        right = self._partner(other, "co_group")
        return self._with(co_group_node(self._node, right, column_names(on, "co_group on"), fn, schema))

    def with_broadcast(self, *unnamed: Any, **data_sets: Self) -> Self:
        """Return this data set; the function that computes it gets whole data sets: ``broadcast(name)``.

        Goes right behind a functional call, whose function is an object with ``open(context)``;
        ``context.broadcast("name")`` is the list of all rows. Each subtask holds its own copy, so these data sets must
        be small: at most a quarter of the budget of pages, else the job fails with MemoryBudgetError.
        """
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
        from engine.api.python_functions import python_function
        from engine.api.schema_inference import function_schema

        arguments = () if columns is None else tuple(column_names(columns, f"{kind} columns"))
        check_columns(arguments, self.schema)
        if columns is not None and not arguments:
            raise SchemaError(f"{kind}: columns= has no columns")
        whole = function_schema(kind, function, schema, self._first_results, arguments, policy)
        plain, not_null = output_schema(whole, kind)
        if policy is not None:
            _refuse_nulls_of_errors(kind, policy, not_null)
        if policy is not None and policy.is_collecting:
            plain = _with_errors(plain, self.schema, kind)
        operator = msgspec.structs.replace(
            python_function(kind, function), arguments=arguments, policy=policy, not_null=not_null
        )
        return self._with(LogicalNode(operator, (self._node,), plain))


def _no_results(_function: PythonFunction, schema: pa.Schema) -> pa.Table:
    """Return nothing: the first rows of two data sets need not have a key in common."""
    return schema.empty_table()


def reduce_node(
    source: LogicalNode, keys: tuple[str, ...], fn: Any, schema: pa.Schema | None, first_results: FirstResults
) -> LogicalNode:
    """Return the node of a function over the groups of a node by columns; ``first_results``: of the node."""
    from engine.api.python_functions import python_function
    from engine.api.schema_inference import function_schema

    plain, not_null = output_schema(function_schema("reduce", fn, schema, first_results, keys), "reduce")
    function = msgspec.structs.replace(python_function("reduce", fn), not_null=not_null)
    return LogicalNode(GroupReduce(keys, function), (source,), plain)


def co_group_node(
    left: LogicalNode, right: LogicalNode, keys: list[str], fn: Any, schema: pa.Schema | None
) -> LogicalNode:
    """Return the node of a function over the groups of two nodes."""
    from engine.api.python_functions import python_function
    from engine.api.schema_inference import function_schema
    from engine.expressions.infer import infer_schema
    from engine.lowering.exact_keys import compared_type

    plain, not_null = output_schema(function_schema("co_group", fn, schema, _no_results), "co_group")
    if not keys or len(set(keys)) < len(keys):
        raise SchemaError(f"co_group: no key, or one given twice: {', '.join(keys)}")
    for side in (left, right):
        check_columns(keys, side.schema)
    fields = {key: (left.schema.field(key), right.schema.field(key)) for key in keys}
    types = {key: compared_type(*pair, is_total=True, call="co_group") for key, pair in fields.items()}
    left, right = cast_node(left, types), cast_node(right, types)
    names = tuple(f"__key{index}" for index in range(len(keys)))
    views = (_view(left.schema, keys, names, "left"), _view(right.schema, keys, names, "right"))
    pairs = [_pair_columns(side, (left.schema, right.schema), views) for side in (0, 1)]
    pair_schema = infer_schema(pairs[0], left.schema)
    function = msgspec.structs.replace(python_function("co_group", fn), not_null=not_null)
    operator = CoGroup(names, function, tuple(pairs[0]), tuple(pairs[1]), to_plan_schema(pair_schema), views)
    return LogicalNode(operator, (left, right), plain)


def _view(schema: pa.Schema, keys: list[str], names: tuple[str, ...], side: str) -> tuple[tuple[str, str], ...]:
    """Return (name, name in the output where both sides are one) for each column of a side."""
    key_names = dict(zip(keys, names, strict=True))
    return tuple((name, key_names.get(name, f"__{side}{index}")) for index, name in enumerate(schema.names))


def _pair_columns(
    side: int, schemas: tuple[pa.Schema, pa.Schema], views: Sequence[tuple[tuple[str, str], ...]]
) -> list[NamedExpression]:
    """Return the columns of both sides as expressions over one: keys, the side's number, own columns, nulls."""
    from engine.functions.group_rows import SIDE

    own = {column: name for name, column in views[side]}
    keys = sorted(column for column in own if column.startswith("__key"))
    columns = [NamedExpression(key, ColumnRef(own[key])) for key in keys]
    columns.append(NamedExpression(SIDE, make_literal(side, pa.int8())))
    for index, (schema, view) in enumerate(zip(schemas, views, strict=True)):
        for name, column in view:
            if column not in keys:
                value = ColumnRef(name) if index == side else make_literal(None, schema.field(name).type)
                columns.append(NamedExpression(column, value))
    return columns


def with_broadcasts(node: LogicalNode, data_sets: dict[str, LogicalNode]) -> LogicalNode:
    """Return a function's node with more broadcast data sets; SchemaError when it is none, or a name is taken."""
    operator = node.operator
    function = operator.function if isinstance(operator, GroupReduce | CoGroup) else operator
    if not isinstance(function, PythonFunction):
        raise SchemaError("with_broadcast: goes right behind map, flat_map, filter(function), reduce and the like")
    taken = sorted(set(function.broadcasts) & set(data_sets))
    if taken or not data_sets:
        raise SchemaError(f"with_broadcast: {f'{taken[0]!r} is there already' if taken else 'no data set is given'}")
    names = (*function.broadcasts, *data_sets)
    from engine.functions.worker_protocol import BROADCASTS_MAX

    if len(names) > BROADCASTS_MAX:
        raise SchemaError(f"with_broadcast: {len(names)} data sets; at most {BROADCASTS_MAX}")
    function = msgspec.structs.replace(function, broadcasts=names)
    changed = (
        msgspec.structs.replace(operator, function=function)
        if isinstance(operator, GroupReduce | CoGroup)
        else function
    )
    return LogicalNode(changed, (*node.inputs, *data_sets.values()), node.schema, node.name, node.parallelism)
