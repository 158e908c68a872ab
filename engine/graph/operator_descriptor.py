"""Physical operators as data: made by the optimizer, and opened by ``engine.operators`` in a task.

Each says *how*: which algorithm, which side is built, which phase of an aggregate. A vertex holds a chain of them;
the first is its head (a source, or a driver over one or two inputs), the others take Arrow batches from the one
before. What planning and recovery ask of an operator, whatever it does, is in its ``traits``; an operator that says
nothing gets answers that are always right.

Held by: tests/optimizer/test_registry.py
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from engine.graph.call_policy import CallPolicy
from engine.graph.exact import Exact
from engine.graph.expression import ORDER_DEPENDENT_AGGREGATES, AggregateCall, Expression, NamedExpression
from engine.graph.function_table import is_deterministic
from engine.graph.plan_schema import PlanSchema
from engine.graph.range_condition import RangeCondition
from engine.graph.runtime_filter import RuntimeFilter, TopThreshold
from engine.graph.said_operators import AsofDirection, JoinType
from engine.graph.ship_strategy import HeavyKeys
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec, SourceSpec
from engine.graph.window import GroupLimit, SortedCall, WindowCall


class Traits(msgspec.Struct, frozen=True):
    """The properties of an operator."""

    #: True if it is always the first of its vertex: it reads splits or several inputs itself
    is_head: bool = False
    #: True if it leads a chain, and is not a step of one
    is_driver: bool = False
    #: True if its rows may come in any distribution; else an exchange before it stays as planned
    takes_any_rows: bool = False
    #: True if its output has as many rows as its input, or a known number
    keeps_size: bool = False
    #: True if its result does not depend on the order of rows; else its consumers run again with it
    is_repeatable: bool = False
    #: True if it takes all of its input before it emits, so that later operators never block the producer
    absorbs: bool = False


class SourceOperator(Exact, frozen=True, tag="source"):
    """Head: reads the splits assigned to the subtask.

    ``is_replicated``: every subtask is assigned all splits. ``rate_limit``: rows per second of all subtasks together.
    ``filters``: made by joins while the job runs. ``top``: rows are wanted that may be among the first. ``in_runs``: a
    batch has rows of one split alone, no two splits share a group, and the aggregate behind it is told of each split.
    ``threads``: number of threads that read for a subtask, its own included. ``is_small``: to read it takes less than a
    task of its own does.
    """

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True, is_repeatable=True)

    spec: SourceSpec
    is_replicated: bool = False
    rate_limit: float | None = None
    filters: tuple[RuntimeFilter, ...] = ()
    top: TopThreshold | None = None
    in_runs: bool = False
    threads: int = 1
    is_small: bool = False


class IdentityOperator(Exact, frozen=True, tag="identity"):
    """Head: passes its input's batches on (a union, a repartitioning without work)."""

    traits: ClassVar[Traits] = Traits(is_head=True, takes_any_rows=True, keeps_size=True, is_repeatable=True)


class ProjectOperator(Exact, frozen=True, tag="project"):
    """Evaluates expressions."""

    expressions: tuple[NamedExpression, ...]

    @property
    def traits(self) -> Traits:
        """Repeatable unless an expression has another value each time."""
        is_repeatable = all(is_deterministic(named.expression) for named in self.expressions)
        return Traits(takes_any_rows=is_repeatable, keeps_size=True, is_repeatable=is_repeatable)


class FilterOperator(Exact, frozen=True, tag="filter"):
    """Keeps rows for which the predicate is true."""

    traits: ClassVar[Traits] = Traits(takes_any_rows=True, is_repeatable=True)

    predicate: Expression


class PythonOperator(Exact, frozen=True, tag="python"):
    """Runs a user's function in a worker process: ``kind`` as in ``engine.graph.plan.PythonFunction``, or "partition".

    "partition" calls the function with the values of ``keys`` and ``channel_count`` and appends what it returns as an
    int32 column ``__channel``.
    """

    kind: str
    function: bytes
    function_name: str
    file: str
    line: int
    #: keys. partition: arguments of the function; reduce, co_group: columns whose equal values make a group
    keys: tuple[str, ...] = ()
    #: number of channels of a partition function
    channel_count: int = 0
    #: views of co_group's left and right rows: (name for the function, column of the input) each
    views: tuple[tuple[tuple[str, str], ...], ...] = ()
    #: names of broadcast data sets, which are inputs from 1 on
    broadcasts: tuple[str, ...] = ()
    #: columns whose values are the function's arguments; none: it is called with a row or a batch
    arguments: tuple[str, ...] = ()
    policy: CallPolicy | None = None
    #: columns of the result for which null is an error
    not_null: tuple[str, ...] = ()

    @property
    def traits(self) -> Traits:
        """Traits of a function that may do anything, and sees row by row or batch by batch by its kind."""
        is_row_wise = self.kind in ("map", "flat_map", "filter") or self.kind.startswith(("map_batches", "column"))
        return Traits(takes_any_rows=is_row_wise)


class HashJoinOperator(Exact, frozen=True, tag="hash_join"):
    """Hybrid hash join. Input 0 is left, 1 is right; ``build_left`` says which one is built.

    ``output``: for each output column, the side it is taken from (0 left, 1 right) and its index there.
    ``condition`` and ``null_aware``: as in the plan's Join. ``heavy``: keys that are split, as the left side has them.
    ``filters``: that it makes of its build side for the source of its probe side. ``passes``: those of joins behind it
    for the same source. ``shares_marks``: which rows of a broadcast build side were matched is known of all subtasks
    together, which run in one process at one time.
    """

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True, is_repeatable=True)

    how: JoinType
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    build_left: bool
    output: tuple[tuple[int, int], ...]
    condition: Expression | None = None
    null_aware: bool = False
    heavy: HeavyKeys | None = None
    filters: tuple[RuntimeFilter, ...] = ()
    passes: tuple[RuntimeFilter, ...] = ()
    shares_marks: bool = False

    @property
    def first_input(self) -> int:
        """The input that is read to its end before the other one."""
        return 0 if self.build_left else 1


class SortMergeJoinOperator(Exact, frozen=True, tag="sort_merge_join"):
    """Head: sorts both inputs by their keys and merges them. Fields as in HashJoinOperator.

    ``left_share``: what the sort of the left gets of the memory for both.
    """

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True, is_repeatable=True)

    how: JoinType
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    output: tuple[tuple[int, int], ...]
    condition: Expression | None = None
    left_share: float = 0.5

    @property
    def first_input(self) -> int:
        """The input that is read to its end before the other one."""
        return 0


class RangeJoinOperator(Exact, frozen=True, tag="range_join"):
    """Head: sorts both inputs by their keys and what ``range`` compares, and merges them; ``condition`` is the rest.

    The other fields as in SortMergeJoinOperator.
    """

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True, is_repeatable=True)

    how: JoinType
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    range: RangeCondition
    output: tuple[tuple[int, int], ...]
    condition: Expression | None = None
    left_share: float = 0.5

    @property
    def first_input(self) -> int:
        """The input that is read to its end before the other one."""
        return 0


class AsofJoinOperator(Exact, frozen=True, tag="asof_join"):
    """Head: sorts both inputs by their keys, the last of which is the time, and merges them.

    ``direction``, ``is_strict`` and ``tolerance`` as in the plan's AsofJoin, the other fields as in
    SortMergeJoinOperator. Which of several right rows at one time is taken depends on their order.
    """

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True)

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    direction: AsofDirection
    is_strict: bool
    tolerance: int | float | None
    output: tuple[tuple[int, int], ...]
    left_share: float = 0.5

    @property
    def first_input(self) -> int:
        """The input that is read to its end before the other one."""
        return 0


class PartitionedAsofOperator(AsofJoinOperator, frozen=True, tag="partitioned_asof"):
    """Head: parts both inputs by their keys beside the time, of which there are some, and joins part by part."""

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True)


#: joins: heads with two inputs
JoinOperator = HashJoinOperator | SortMergeJoinOperator | RangeJoinOperator | AsofJoinOperator


class SortOperator(Exact, frozen=True, tag="sort"):
    """External sort; ``limit`` keeps the first rows only."""

    traits: ClassVar[Traits] = Traits(takes_any_rows=True, keeps_size=True, is_repeatable=True, absorbs=True)

    keys: tuple[SortKey, ...]
    limit: int | None = None
    #: limit beyond which rows may be left out
    top: GroupLimit | None = None


class GroupedStates(Exact, frozen=True):
    """Rows are partial states of groups: those of one group become one wherever they meet."""

    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]


class SortRunsOperator(Exact, frozen=True, tag="sort_runs"):
    """Last of a chain: sorts its subtask's rows into runs, which consumers read by ranges of keys."""

    traits: ClassVar[Traits] = Traits(is_repeatable=True, absorbs=True)

    keys: tuple[SortKey, ...]
    limit: int | None = None
    groups: GroupedStates | None = None


class MergeRunsOperator(Exact, frozen=True, tag="merge_runs"):
    """Head: merges one range of the sorted runs of all producers; of groups it emits results."""

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True, is_repeatable=True)

    keys: tuple[SortKey, ...]
    groups: GroupedStates | None = None


class RangeWindowsOperator(Exact, frozen=True, tag="range_windows"):
    """Head: merges one range of the sorted runs of all producers, with window functions over the rows of all ranges."""

    traits: ClassVar[Traits] = Traits(is_head=True, is_driver=True)

    keys: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]


class HashAggregateOperator(Exact, frozen=True, tag="hash_aggregate"):
    """Hash aggregation.

    ``phase``: "partial" emits states and may emit a group twice, "combine" does so of states, "final" merges states,
    "single" does both. The columns of states are documented in ``engine.accumulators.aggregate_functions``.
    ``is_sorted_next``: partial states go straight into a sort, where a state costs more than in an exchange.
    ``expects_no_fewer``: the plan expects as many partial states as rows, so that few rows say whether that is so.
    ``rows_expected``: number of rows that a subtask of a partial aggregate is expected to get, so that it goes on where
    these will be far more than the groups, however many of the first rows are new ones; 0: the first rows decide.
    ``by_run``: rows come from a source in the same task, and groups are complete with its run
    (``SourceOperator.in_runs``).
    ``threads``: number of threads that merge groups of a subtask where they are many, its own included.
    ``takes_whole_groups``: a final one whose groups are those of one first phase, where what is between leaves them
    whole: then states are results of a group each, and given out at once.
    """

    phase: str
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    is_sorted_next: bool = False
    by_run: bool = False
    expects_no_fewer: bool = False
    threads: int = 1
    rows_expected: int = 0
    takes_whole_groups: bool = False

    @property
    def traits(self) -> Traits:
        """Traits of its phase and functions: first and last values depend on the order of rows."""
        is_partial = self.phase in ("partial", "combine")
        is_repeatable = not any(call.function in ORDER_DEPENDENT_AGGREGATES for call in self.calls)
        return Traits(
            takes_any_rows=is_partial, is_repeatable=is_repeatable, absorbs=not (is_partial or self.takes_whole_groups)
        )


class WindowOperator(Exact, frozen=True, tag="window"):
    """Window functions over rows that come sorted by ``partition_by``, then ``order_by``."""

    traits: ClassVar[Traits] = Traits(keeps_size=True)

    partition_by: tuple[str, ...]
    order_by: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]


class ExplodeOperator(Exact, frozen=True, tag="explode"):
    """A row for each element of a list; fields as in the plan's Explode."""

    traits: ClassVar[Traits] = Traits(takes_any_rows=True, is_repeatable=True)

    column: str
    position: str
    keep_empty: bool


class SortedAggregateOperator(Exact, frozen=True, tag="sorted_aggregate"):
    """Aggregates of rows that come sorted by ``keys``, then in the order that their calls want."""

    keys: tuple[str, ...]
    calls: tuple[SortedCall, ...]

    @property
    def traits(self) -> Traits:
        """Repeatable where the order of equal rows cannot be seen."""
        return Traits(is_repeatable=all(call.function == "quantile" for call in self.calls))


class PartitionedAggregateOperator(Exact, frozen=True, tag="partitioned_aggregate"):
    """A SortedAggregateOperator for rows in any order: ``order_by`` is that of rows within a group.

    Columns of the order are of types that have ``window.has_order_of_words``. ``threads``: number of threads that
    work on partitions of a subtask's groups, its own included.
    """

    keys: tuple[str, ...]
    order_by: tuple[SortKey, ...]
    calls: tuple[SortedCall, ...]
    threads: int = 1

    @property
    def traits(self) -> Traits:
        """Traits of the sorted one; it takes all rows before it returns one."""
        return Traits(is_repeatable=all(call.function == "quantile" for call in self.calls), absorbs=True)


class KeyFilterOperator(Exact, frozen=True, tag="key_filter"):
    """Makes filters of key columns of all rows that a subtask has, as rows of ``FILTER_ROWS``; none of too many rows.

    ``number``: its own in the optimized plan, by which sources name it. ``sharers``: subtasks whose filters are merged.
    """

    traits: ClassVar[Traits] = Traits(takes_any_rows=True, is_repeatable=True, absorbs=True)

    number: int
    columns: tuple[str, ...]
    rows_max: int
    sharers: int


class LimitOperator(Exact, frozen=True, tag="limit"):
    """A limit: at most ``count`` rows of this subtask."""

    traits: ClassVar[Traits] = Traits(takes_any_rows=True, keeps_size=True)

    count: int


class SinkOperator(Exact, frozen=True, tag="sink"):
    """Last of a chain: stages files for the commit."""

    traits: ClassVar[Traits] = Traits(takes_any_rows=True, keeps_size=True, is_repeatable=True)

    sink_index: int
    spec: SinkSpec


PhysicalOperator = (
    SourceOperator
    | IdentityOperator
    | ProjectOperator
    | FilterOperator
    | PythonOperator
    | HashJoinOperator
    | SortMergeJoinOperator
    | RangeJoinOperator
    | AsofJoinOperator
    | PartitionedAsofOperator
    | SortOperator
    | SortRunsOperator
    | MergeRunsOperator
    | RangeWindowsOperator
    | HashAggregateOperator
    | WindowOperator
    | ExplodeOperator
    | SortedAggregateOperator
    | PartitionedAggregateOperator
    | KeyFilterOperator
    | LimitOperator
    | SinkOperator
)


class OperatorDescriptor(Exact, frozen=True):
    """One operator of a chain with its schemas; ``memory_weight``: among those that divide a slot's pages."""

    node_id: int
    name: str
    operator: PhysicalOperator
    input_schemas: tuple[PlanSchema, ...]
    output_schema: PlanSchema
    memory_weight: float = 0.0
