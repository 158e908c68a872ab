"""The Plan: what a script built, as declarative data, sinks as roots.

    DataSet calls ──► PlanNode(id, operator, inputs, schema) ... ──► Plan(nodes, sinks) ──► optimizer

Operators are relational or functional and say *what*, never *how*: no ship strategy, no algorithm, no slot. A plan is
immutable, comparable and has a byte form (msgpack), so recovery, SQL, Spark and re-planning work from the same thing.
User functions are opaque bytes inside.

A plan as it is said has ``SAID`` operators, and in expressions windows, values of data sets and users' functions; a
plan as it is optimized has neither.

Source: the Plan of Flink's DataSet API, whose operators hold user objects; ours hold none.
Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from functools import cache

import msgspec

from engine.errors import PlanError
from engine.graph.call_policy import CallPolicy
from engine.graph.expression import AggregateCall, Expression, NamedExpression
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.said_operators import (
    Apply,
    AsofDirection,
    AsofJoinBy,
    GroupBy,
    JoinBy,
    JoinHint,
    JoinType,
    Page,
    Pivot,
    SetOperation,
    SortBy,
)
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec, SourceSpec, SourceStatistics
from engine.graph.window import GroupLimit, SortedCall, WindowCall


class Source(msgspec.Struct, frozen=True, tag="source"):
    """Rows read from outside.

    ``is_replicated``: a hint that every subtask of a join may read all of it. ``rate_limit``: rows per second of all
    subtasks together. ``cuts``: by column, numbers of the splits in front of which all values are less than from there
    on; there are no nulls.
    """

    spec: SourceSpec
    statistics: SourceStatistics
    is_replicated: bool = False
    rate_limit: float | None = None
    cuts: dict[str, tuple[int, ...]] = {}


class Project(msgspec.Struct, frozen=True, tag="project"):
    """New columns, each an expression over the input (select, with_columns, drop, rename)."""

    expressions: tuple[NamedExpression, ...]


class Filter(msgspec.Struct, frozen=True, tag="filter"):
    """Rows for which the predicate is true (not null)."""

    predicate: Expression


class PythonFunction(msgspec.Struct, frozen=True, tag="python"):
    """A user's function: ``kind`` in map flat_map filter map_batches:<format> map_partition column:<format>.

    ``function`` is cloudpickled and opened by workers only. Input 0 is what it is applied to; inputs 1 and up are the
    broadcast data sets, by the names in ``broadcasts``. ``arguments``: columns whose values it is called with; without
    any, with a row or a batch. Kind ``column`` adds a column ``result`` to those of the input. Kind ``partition`` adds
    the channel of each row: what is returned for the values of ``keys`` and ``channel_count``. ``not_null``: columns of
    what it returns for which it may not return null.
    """

    kind: str
    function: bytes
    function_name: str
    file: str
    line: int
    broadcasts: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    result: str = ""
    policy: CallPolicy | None = None
    keys: tuple[str, ...] = ()
    channel_count: int = 0
    not_null: tuple[str, ...] = ()


class GroupReduce(msgspec.Struct, frozen=True, tag="group_reduce"):
    """A function (kind reduce) over the rows of each group; without keys one global group."""

    keys: tuple[str, ...]
    function: PythonFunction


class CoGroup(msgspec.Struct, frozen=True, tag="co_group"):
    """A function (kind co_group) over the rows of inputs 0 (left) and 1 (right) with equal keys; null equals null.

    Both sides are sorted as one, so the plan says how a row of each becomes one of ``pair_schema``: key columns
    ``keys``, the side (0, 1), columns of the left, columns of the right; those of the other side are null. ``views``:
    for left and right rows, (name for the function, column of ``pair_schema``) each.
    """

    keys: tuple[str, ...]
    function: PythonFunction
    left_columns: tuple[NamedExpression, ...]
    right_columns: tuple[NamedExpression, ...]
    pair_schema: PlanSchema
    views: tuple[tuple[tuple[str, str], ...], ...]


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Equality join of inputs 0 (left) and 1 (right); keys are column names of equal types, pairwise.

    Output: all left columns, then the right columns; with ``coalesce_keys`` (``on=``) without the right keys, the
    one key column taking the value of the side that is there. SEMI and ANTI return the left columns. CROSS has no
    keys.

    ``condition`` is what a pair of rows with equal keys must meet besides (SQL's ON ... AND ...); its columns are those
    of both inputs, a name that both have (a coalesced key) is the left one. ``null_aware`` makes ANTI by one key what
    NOT IN is in SQL: nothing when the right has a null key, and a null key on the left only when the right is empty.
    ``ordered``: why the joins below are not in the order as written; "" for those that are. ``implied``: what keys of
    this join, and of those that were ordered with it, are filtered by, because the keys that they are equal to are.
    """

    how: JoinType
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    coalesce_keys: bool
    hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES
    condition: Expression | None = None
    null_aware: bool = False
    ordered: str = ""
    implied: tuple[str, ...] = ()


class AsofJoin(msgspec.Struct, frozen=True, tag="asof_join"):
    """Each row of input 0 (left), beside it the row of input 1 (right) that is nearest to it in time; nulls where none.

    Rows are compared by ``left_on`` and ``right_on``, which have equal types, among those equal in ``left_by`` and
    ``right_by``. ``is_strict``: a row at the very time does not count. ``tolerance``: how far away it may be, in whole
    units of the column (a float of floats). Output: all left columns, then the right columns that ``schema`` has; a
    name that both sides have is the left one's.
    """

    left_by: tuple[str, ...]
    right_by: tuple[str, ...]
    left_on: str
    right_on: str
    direction: AsofDirection = AsofDirection.BACKWARD
    is_strict: bool = False
    tolerance: int | float | None = None

    @property
    def left_keys(self) -> tuple[str, ...]:
        """Sort keys of the left input."""
        return (*self.left_by, self.left_on)

    @property
    def right_keys(self) -> tuple[str, ...]:
        """Sort keys of the right input."""
        return (*self.right_by, self.right_on)


class Aggregate(msgspec.Struct, frozen=True, tag="aggregate"):
    """Groups by key columns; without keys one global group. ``distinct`` is an aggregate with no calls.

    The planner splits it in two phases and has no types of its own, so the plan brings those of the way between:
    ``argument_schema`` is the input of the first phase (key columns, then for each call that has an argument a column
    ``__arg{i}``, i its index in ``calls``), ``state_schema`` its output (key columns, then each call's states
    ``__state{i}_{k}``), as ``engine.accumulators.aggregate_functions`` gives them.
    """

    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    state_schema: PlanSchema
    argument_schema: PlanSchema
    #: True if rows are states already, of a ``PartialAggregate``
    of_states: bool = False


class PartialAggregate(msgspec.Struct, frozen=True, tag="partial_aggregate"):
    """States of groups, as ``Aggregate.state_schema`` has them; a group may come out several times.

    Only rules of the optimizer make it, no user does. ``of_states``: its rows are states too, of finer groups;
    ``argument_schema`` is then empty. ``why``: what it is good for.
    """

    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    argument_schema: PlanSchema
    of_states: bool = False
    why: str = ""


class Union(msgspec.Struct, frozen=True, tag="union"):
    """UNION ALL of two or more inputs with equal schemas (the API aligns columns by name and widens types)."""


class Partition(msgspec.Struct, frozen=True, tag="partition"):
    """The same rows, spread over subtasks as the user says; ``broadcast`` alone multiplies them.

    ``kind`` in SHUFFLE REBALANCE RESCALE BROADCAST GLOBAL FORWARD KEYGROUP RANGE CUSTOM, the last three with ``keys``.
    CUSTOM: ``function`` (kind "partition") gives each row its channel in a column, ``channel_column``, that the
    producer's writer takes off again.
    """

    kind: str
    keys: tuple[str, ...] = ()
    function: PythonFunction | None = None
    channel_column: ColumnInfo | None = None


class Sort(msgspec.Struct, frozen=True, tag="sort"):
    """Total order; ``limit`` keeps the first rows only (top).

    ``is_paged``: above some of the rows are taken by their place, so that those with equal keys must have one order in
    every run of the plan. ``ties``: what the planner orders them by then, beside the order of the input.
    """

    keys: tuple[SortKey, ...]
    limit: int | None = None
    is_paged: bool = False
    ties: tuple[SortKey, ...] = ()

    @property
    def has_settled_ties(self) -> bool:
        """Whether rows with equal keys have one order: it decides which rows a limit takes."""
        return self.is_paged or self.limit is not None


class Window(msgspec.Struct, frozen=True, tag="window"):
    """The same rows with a column behind theirs for each call: functions of other rows of their partition.

    Rows of a partition are equal in ``partition_by`` (null equals null), in ``order_by`` they are ordered; a call may
    use the first order keys only.
    """

    partition_by: tuple[str, ...]
    order_by: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]
    #: limit beyond which rows are not needed, and may be missing
    top: GroupLimit | None = None


class Explode(msgspec.Struct, frozen=True, tag="explode"):
    """A row for each element of a list, which stands in the place of the list; of a map, an entry (key, value).

    ``position``: name of a column behind the others, the element's place from 0; "" for none. ``keep_empty``: a row
    with null, and null as its place, where the list is null or has no element; else there is none.
    """

    column: str
    position: str = ""
    keep_empty: bool = True
    #: number of rows beyond which rows are not needed, and may be missing
    wanted: int | None = None


class SortedAggregate(msgspec.Struct, frozen=True, tag="sorted_aggregate"):
    """Groups by ``keys`` whose rows are looked at in an order: aggregates that no state of bounded size has.

    Without keys there is one group, also of no rows.
    """

    keys: tuple[str, ...]
    order_by: tuple[SortKey, ...]
    calls: tuple[SortedCall, ...]


class Limit(msgspec.Struct, frozen=True, tag="limit"):
    """A limit: at most ``count`` rows, over all subtasks; the first ones when the input is ordered.

    ``is_first``: those of files too, however many; without it a limit of very many rows has any.
    """

    count: int
    is_first: bool = False


class Sink(msgspec.Struct, frozen=True, tag="sink"):
    """Rows written outside: staged by subtasks, decided and published once by the JobMaster."""

    spec: SinkSpec


Operator = (
    Source
    | Project
    | Filter
    | PythonFunction
    | GroupReduce
    | CoGroup
    | Join
    | AsofJoin
    | Aggregate
    | PartialAggregate
    | Union
    | Partition
    | Sort
    | Window
    | Explode
    | SortedAggregate
    | Limit
    | Sink
    | GroupBy
    | JoinBy
    | AsofJoinBy
    | SortBy
    | Page
    | SetOperation
    | Pivot
    | Apply
)


class SaidForm(msgspec.Struct, frozen=True):
    """The operator that a user said, of which a node is the lowered form, and the ids of its inputs."""

    operator: Operator
    inputs: tuple[int, ...]


class PlanNode(msgspec.Struct, frozen=True):
    """One operator of a plan. ``inputs`` are ids of earlier nodes; ``id`` is its index in ``Plan.nodes``."""

    id: int
    operator: Operator
    inputs: tuple[int, ...]
    schema: PlanSchema
    #: name that the user gave, or "" (then the operator's own is shown)
    name: str = ""
    #: parallelism that the user set, or None: the plan's default, or the input's for row-wise operators
    parallelism: int | None = None
    said: SaidForm | None = None


class Plan(msgspec.Struct, frozen=True):
    """A whole program: nodes in topological order; ``sinks`` are the ids of its roots."""

    nodes: tuple[PlanNode, ...]
    sinks: tuple[int, ...]
    name: str = ""
    #: requests, bytes read and bytes written that making the plan took, by store
    stores: dict[str, tuple[int, int, int]] = {}

    @property
    def has_functions(self) -> bool:
        """Whether Python workers are needed: a user's function maps, reduces or partitions rows."""
        operators = (node.operator for node in self.nodes)
        return any(
            isinstance(each, PythonFunction | GroupReduce | CoGroup)
            or (isinstance(each, Partition) and each.function is not None)
            for each in operators
        )

    def node(self, node_id: int) -> PlanNode:
        """Return the node of that id."""
        return self.nodes[node_id]

    def consumers_of(self, node_id: int) -> tuple[PlanNode, ...]:
        """Return the nodes that read a node's output, in order."""
        return tuple(node for node in self.nodes if node_id in node.inputs)

    def validate(self) -> None:
        """Raise PlanError when ids, order or sinks are inconsistent."""
        for position, node in enumerate(self.nodes):
            if node.id != position or any(not 0 <= source < position for source in node.inputs):
                raise PlanError(f"node {node.id} at position {position} reads {node.inputs}: not topological")
        if not self.sinks:
            raise PlanError("the plan has no sink: call write_csv, write_parquet or another write_* first")


_encoder = msgspec.msgpack.Encoder()


@cache
def _decoder() -> msgspec.msgpack.Decoder[Plan]:
    # Made when it is needed: it looks at the types of all operators.
    return msgspec.msgpack.Decoder(Plan)


def encode_plan(plan: Plan) -> bytes:
    """Return the byte form of a plan."""
    return _encoder.encode(plan)


def decode_plan(data: bytes) -> Plan:
    """Return the plan of its byte form; malformed bytes raise PlanError."""
    try:
        return _decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"not a plan: {error}") from error
