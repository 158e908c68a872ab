"""What a task runs: physical operators as data, made by the optimizer and opened by ``engine.operators``.

Each says *how*: which algorithm, which side is built, which phase of an aggregate. A vertex holds a chain of them;
the first is its head (a source, or a driver over one or two inputs), the others take Arrow batches from the one
before.
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import AggregateCall, Expression, NamedExpression
from engine.graph.plan import JoinType
from engine.graph.plan_schema import PlanSchema
from engine.graph.ship_strategy import HeavyKeys
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec, SourceSpec


class SourceOperator(msgspec.Struct, frozen=True, tag="source"):
    """Head: reads the splits assigned to the subtask.

    ``is_replicated``: every subtask is assigned all splits. ``rate_limit``: rows per second of all subtasks together.
    """

    spec: SourceSpec
    is_replicated: bool = False
    rate_limit: float | None = None


class IdentityOperator(msgspec.Struct, frozen=True, tag="identity"):
    """Head: passes its input's batches on (a union, a repartitioning without work)."""


class ProjectOperator(msgspec.Struct, frozen=True, tag="project"):
    """Evaluates expressions."""

    expressions: tuple[NamedExpression, ...]


class FilterOperator(msgspec.Struct, frozen=True, tag="filter"):
    """Keeps rows for which the predicate is true."""

    predicate: Expression


class PythonOperator(msgspec.Struct, frozen=True, tag="python"):
    """Runs a user's function in a worker process: ``kind`` as in ``engine.graph.plan.PythonFunction``, or "partition".

    "partition" calls the function with the values of ``keys`` and ``channel_count`` and appends what it returns as an
    int32 column ``__channel``.
    """

    kind: str
    function: bytes
    function_name: str
    file: str
    line: int
    #: partition: columns that the function is given; reduce, co_group: columns whose equal values make a group
    keys: tuple[str, ...] = ()
    #: partition: how many channels there are
    channel_count: int = 0
    #: co_group: for left and right rows, (name for the function, column of the input) each
    views: tuple[tuple[tuple[str, str], ...], ...] = ()
    #: names of the broadcast data sets, which are inputs 1 and up
    broadcasts: tuple[str, ...] = ()


class HashJoinOperator(msgspec.Struct, frozen=True, tag="hash_join"):
    """Hybrid hash join. Input 0 is left, 1 is right; ``build_left`` says which one is built.

    ``output``: for each output column, the side it is taken from (0 left, 1 right) and its index there.
    ``condition`` and ``null_aware``: as in the plan's Join. ``heavy``: keys that are split, as the left side has them.
    """

    how: JoinType
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    build_left: bool
    output: tuple[tuple[int, int], ...]
    condition: Expression | None = None
    null_aware: bool = False
    heavy: HeavyKeys | None = None

    @property
    def first_input(self) -> int:
        """The input that is read to its end before the other one."""
        return 0 if self.build_left else 1


class SortMergeJoinOperator(msgspec.Struct, frozen=True, tag="sort_merge_join"):
    """Head: sorts both inputs by their keys and merges them. Fields as in HashJoinOperator.

    ``left_share``: what the sort of the left gets of the memory for both.
    """

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


#: heads with two inputs
JoinOperator = HashJoinOperator | SortMergeJoinOperator


class SortOperator(msgspec.Struct, frozen=True, tag="sort"):
    """External sort; ``limit`` keeps the first rows only."""

    keys: tuple[SortKey, ...]
    limit: int | None = None


class GroupedStates(msgspec.Struct, frozen=True):
    """Rows are partial states of groups: those of one group become one wherever they meet."""

    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]


class SortRunsOperator(msgspec.Struct, frozen=True, tag="sort_runs"):
    """Last of a chain: sorts its subtask's rows into runs, which consumers read by ranges of keys."""

    keys: tuple[SortKey, ...]
    limit: int | None = None
    groups: GroupedStates | None = None


class MergeRunsOperator(msgspec.Struct, frozen=True, tag="merge_runs"):
    """Head: merges one range of the sorted runs of all producers; of groups it emits results."""

    keys: tuple[SortKey, ...]
    groups: GroupedStates | None = None


class HashAggregateOperator(msgspec.Struct, frozen=True, tag="hash_aggregate"):
    """Hash aggregation.

    ``phase``: "partial" emits states and may emit a group twice, "final" merges states, "single" does both. The
    columns of partial states are documented in ``engine.aggregate.functions``. ``is_sorted_next``: partial states go
    straight into a sort, where a state costs more than in an exchange.
    """

    phase: str
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    is_sorted_next: bool = False


class LimitOperator(msgspec.Struct, frozen=True, tag="limit"):
    """At most ``count`` rows of this subtask."""

    count: int


class SinkOperator(msgspec.Struct, frozen=True, tag="sink"):
    """Last of a chain: stages files for the commit."""

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
    | SortOperator
    | SortRunsOperator
    | MergeRunsOperator
    | HashAggregateOperator
    | LimitOperator
    | SinkOperator
)

#: pages with which every driver runs correctly
DRIVER_PAGES_MIN = 6


class OperatorDescriptor(msgspec.Struct, frozen=True):
    """One operator of a chain with its schemas and its wish for managed memory.

    ``memory_weight`` 0: uses no managed memory; else the operators that run at one time in a slot share its pages in
    proportion to their weights, each with at least DRIVER_PAGES_MIN.
    """

    node_id: int
    name: str
    operator: PhysicalOperator
    input_schemas: tuple[PlanSchema, ...]
    output_schema: PlanSchema
    memory_weight: float = 0.0
