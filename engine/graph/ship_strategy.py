"""Ship strategies: how rows travel between two operators, and the channels and buffers for it.

    ShipStrategy            what the optimizer decides: whether rows leave their subtask, and by what
    ResultPartitionType     what the producer keeps: PIPELINED (queues) or BLOCKING (persistent)
    DistributionPattern     which producers feed which consumers: POINTWISE or ALL_TO_ALL
    PartitionerSpec         which channel selector a RecordWriter uses, with its keys
    HeavyKeys               which keys of a hash exchange do not go where their hash says

Source: Flink's ShipStrategyType, ResultPartitionType, DistributionPattern and StreamPartitioner.
"""

from __future__ import annotations

from enum import StrEnum

from engine.errors import PlanError
from engine.graph.exact import Exact
from engine.graph.plan_schema import PlanSchema


class ShipStrategy(StrEnum):
    """Ship strategies with Flink's two properties."""

    NONE = "NONE"
    FORWARD = "FORWARD"
    PARTITION_RANDOM = "PARTITION_RANDOM"
    PARTITION_HASH = "PARTITION_HASH"
    PARTITION_RANGE = "PARTITION_RANGE"
    BROADCAST = "BROADCAST"
    PARTITION_FORCED_REBALANCE = "PARTITION_FORCED_REBALANCE"
    PARTITION_CUSTOM = "PARTITION_CUSTOM"

    @property
    def is_network(self) -> bool:
        """Whether rows may leave their subtask."""
        return self not in (ShipStrategy.NONE, ShipStrategy.FORWARD)


class ResultPartitionType(StrEnum):
    """The type of a producer's result: how its output is stored and sent."""

    BLOCKING = "BLOCKING"
    PIPELINED = "PIPELINED"
    PIPELINED_PERSISTENT = "PIPELINED_PERSISTENT"

    #: True if it is readable again after it was consumed
    is_persistent: bool
    #: True if it is readable before it is finished
    is_pipelined: bool
    #: True if a slow consumer makes the producer wait
    has_back_pressure: bool

    def check_supported(self) -> None:
        """Raise PlanError for the type that is only a name."""
        if self is ResultPartitionType.PIPELINED_PERSISTENT:
            raise PlanError("Unsupported result partition type.")


for _type in ResultPartitionType:
    _type.is_persistent = _type is not ResultPartitionType.PIPELINED
    _type.is_pipelined = _type.has_back_pressure = _type is not ResultPartitionType.BLOCKING


class DistributionPattern(StrEnum):
    """The pattern of an edge: the producer subtasks that feed each consumer subtask."""

    POINTWISE = "POINTWISE"
    ALL_TO_ALL = "ALL_TO_ALL"


#: partitioner of a result that is stored as sorted runs and read by ranges of keys
SORTED_RUNS = "SORTED_RUNS"

#: key as text, one text for each column: Arrow casts it to the column's type
KeyText = tuple[str, ...]


class HeavyKeys(Exact, frozen=True):
    """Keys of one side of a join that have too many rows for one subtask; the other side has them the other way.

    ``spread``: rows go to all channels in turn, but each producer's first row of a key to the channel of its hash.
    ``replicated``: rows go to all channels. The channel of the hash is the key's *home*: it alone knows for certain
    whether a replicated row has a match, because it has a row of the key whenever there is one.
    """

    spread: tuple[KeyText, ...] = ()
    replicated: tuple[KeyText, ...] = ()


class PartitionerSpec(Exact, frozen=True):
    """The channel selector of an output.

    ``kind`` in GLOBAL SHUFFLE REBALANCE RESCALE BROADCAST FORWARD KEYGROUP CUSTOM HASH SORTED_RUNS; ``keys`` are
    column names where it looks at keys. HASH: ``spread_nulls`` sends rows with a null key to all channels in turn (the
    outer side of a join, whose null keys match nothing) instead of to one; ``heavy`` are keys that are split.
    """

    kind: str
    keys: tuple[str, ...] = ()
    spread_nulls: bool = False
    max_parallelism: int = 128
    heavy: HeavyKeys | None = None
    #: True if consumers read the producers one after the other, in the order of their subtasks
    in_order: bool = False

    def travelling(self, schema: PlanSchema) -> PlanSchema:
        """Return the columns that a consumer gets: CUSTOM's only key says where a row goes and stays behind."""
        if self.kind != "CUSTOM":
            return schema
        return schema.select(name for name in schema.names if name not in self.keys)

    @property
    def is_pointwise(self) -> bool:
        """Whether each producer feeds only its own part of the consumers."""
        return self.kind in ("FORWARD", "RESCALE")

    @property
    def pattern(self) -> DistributionPattern:
        """The distribution pattern that follows from the kind."""
        return DistributionPattern.POINTWISE if self.is_pointwise else DistributionPattern.ALL_TO_ALL
